"""Radios that are blocked, unplugged and plugged in."""

import os
import pathlib
import socket
import struct

from .process import run
from .story import CheckFailed, check, wait_until

WIFI, BLUETOOTH = 1, 2
_OPERATION_ADD, _OPERATION_CHANGE = 0, 2


def switches(kind):
    """The numbers of the kernel's rfkill switches of one kind of radio, in the order in which the radios appeared."""
    found = []
    descriptor = os.open("/dev/rfkill", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while event := os.read(descriptor, 8):
            number, its_kind, operation, _, _ = struct.unpack("<IBBBB", event)
            if operation == _OPERATION_ADD and its_kind == kind:
                found.append(number)
    except BlockingIOError:
        pass
    os.close(descriptor)
    return found


def block(number, blocked):
    """Block or unblock a radio by its rfkill switch, as the command `rfkill` does."""
    with open("/dev/rfkill", "wb", buffering=0) as switch:
        switch.write(struct.pack("<IBBBB", number, 0, _OPERATION_CHANGE, blocked, 0))


def pull_radio(box, name):
    """Unplug the Wi-Fi radio `name` (phy0, phy1, ...) of a box."""
    box.run("python3", "-m", "lab.hotplug", "del", name)


def plug_radio(box, name, interface):
    """Plug a new Wi-Fi radio into a box. Its interface there is named `interface`."""
    run("python3", "-m", "lab.hotplug", "new", name)
    place = pathlib.Path(f"/sys/class/ieee80211/{name}/device/net")
    own = wait_until(f"{name} has an interface", lambda: place.exists() and [entry.name for entry in place.iterdir()])[0]
    run("iw", "phy", name, "set", "netns", box.pid)
    if own != interface:
        box.run("ip", "link", "set", own, "name", interface)


# --- the driver of the virtual radios, over generic netlink (linux/drivers/net/wireless/virtual/mac80211_hwsim.h) -----

_GENERIC, _CONTROLLER = 16, 16
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_NEW_RADIO, _DEL_RADIO = 4, 5
_CHANNELS, _NO_VIRTUAL_INTERFACE, _RADIO_NAME = 9, 14, 17


def _attribute(kind, value):
    length = 4 + len(value)
    return struct.pack("<HH", length, kind) + value + bytes(-length % 4)


def _attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("<HH", data)
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def _ask(asked, family, command, attributes):
    body = struct.pack("<BBH", command, 1, 0) + attributes
    asked.send(struct.pack("<IHHII", 16 + len(body), family, 5, 1, 0) + body)
    reply = asked.recv(65536)
    if struct.unpack_from("<H", reply, 4)[0] == 2:   # NLMSG_ERROR: an acknowledgement (0), or an errno
        number = -struct.unpack_from("<i", reply, 16)[0]
        if number > 0:
            raise CheckFailed(f"hwsim: {os.strerror(number)}")
        return {}
    asked.recv(65536)
    return _attributes(reply[20:])


def _drive(verb, name):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC) as asked:
        asked.bind((0, 0))
        answer = _ask(asked, _CONTROLLER, _GET_FAMILY, _attribute(_FAMILY_NAME, b"MAC80211_HWSIM\0"))
        family = struct.unpack("<H", answer[_FAMILY_ID])[0]
        radio = _attribute(_RADIO_NAME, name.encode() + b"\0")
        if verb == "new":
            _ask(asked, family, _NEW_RADIO, _attribute(_CHANNELS, struct.pack("<I", 2)) + radio + _attribute(_NO_VIRTUAL_INTERFACE, b""))
        else:
            _ask(asked, family, _DEL_RADIO, radio)


if __name__ == "__main__":
    import sys

    check(sys.argv[1] in ("new", "del"), "new or del")
    _drive(*sys.argv[1:])
