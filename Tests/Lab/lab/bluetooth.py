"""The virtual Bluetooth air, and the kernel's Bluetooth sockets for scenarios that act as a peer themselves.

Python cannot express L2CAP addresses with an LE address type, so bind and connect are called in the C library."""

import ctypes
import json
import os
import select
import socket
import struct
import threading
import time

from .process import Process, run
from .story import CheckFailed, wait_until

CONTROL_SOCKET = "/run/air"

AF_BLUETOOTH = 31
BTPROTO_L2CAP, BTPROTO_HCI = 0, 1
SOL_BLUETOOTH = 274
BT_SECURITY, BT_SNDMTU, BT_RCVMTU, BT_MODE = 4, 12, 13, 15
BT_SECURITY_LOW = 1
BT_MODE_LE_FLOWCTL = 3
LE_PUBLIC, LE_RANDOM = 1, 2
ATT_CHANNEL = 4

_libc = ctypes.CDLL(None, use_errno=True)


class BluetoothAir:
    """The process behind the controllers hci0, hci1, ... Each name in `sockets` adds a controller at the unix socket
    /run/air-NAME, for a host other than this kernel."""

    def __init__(self, controllers=3, sockets=(), legacy=False, rate=None, forget_duplicates=None, wait=True):
        run("modprobe", "hci_vhci", timeout=120)
        self.controllers = controllers
        command = ["python3", "-m", "air", "--control", CONTROL_SOCKET, "--controllers", controllers]
        for name in sockets:
            command += ["--socket", self.socket_path(name)]
        if legacy:
            command.append("--legacy")
        if rate:
            command += ["--rate", rate]
        if forget_duplicates is not None:
            command += ["--forget-duplicates", forget_duplicates]
        self.process = Process("air", *command)
        self._control = None
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=180):
        """Wait until the kernel has initialised all controllers. The air takes seconds to start. With wait=False in the
        constructor a scenario can do other work before this call."""

        def started():
            if not self.process.is_running():
                raise CheckFailed(f"the air ended: {self.process.output()}")
            return os.path.exists(CONTROL_SOCKET)

        wait_until("the air is up", started, timeout)
        with Management() as management:
            wait_until("the kernel has its controllers", lambda: len(management.indexes()) >= self.controllers, timeout)

    @staticmethod
    def socket_path(name):
        return f"/run/air-{name}"

    def command(self, text):
        """Send a command to the control socket of the air (see air/control.py). Returns the answer."""
        if not self._control:
            self._control = socket.socket(socket.AF_UNIX)
            self._control.settimeout(10)
            self._control.connect(CONTROL_SOCKET)
        self._control.sendall(text.encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            line += self._control.recv(65536)
        answer = json.loads(line)
        if not answer.pop("ok"):
            raise CheckFailed(f"air: {text}: {answer['error']}")
        return answer

    def set_range(self, a, b, distance):
        """Set the signal between two controllers in both directions: "far" (out of range), "near", or a strength in
        dBm."""
        self.command(f"range {a} {b} {distance}")

    def set_range_one_way(self, sender, receiver, distance):
        self.command(f"range {sender}>{receiver} {distance}")

    def cut(self, a, b):
        """End the links between two controllers as after a long time out of range. Returns the number of links."""
        return self.command(f"cut {a} {b}")["cut"]

    def nodes(self):
        return self.command("nodes")["nodes"]

    def links(self):
        return self.command("links")["links"]

    def address(self, node):
        return self.nodes()[node]["address"]

    def set_rate(self, bits_per_second):
        self.command(f"rate {bits_per_second or 'none'}")

    def set_events(self, are_on):
        """Set whether data waits for the next connection event of its link. This requires a rate."""
        self.command(f"events {'on' if are_on else 'off'}")


def address_bytes(text):
    return bytes.fromhex(text.replace(":", ""))[::-1]


def address_text(raw):
    return ":".join(f"{byte:02X}" for byte in raw[::-1])


class Management:
    """The kernel's Bluetooth management socket. A thread collects the replies and events."""

    READ_INDEX_LIST, READ_INFO = 0x0003, 0x0004
    SET_POWERED, SET_CONNECTABLE, SET_BONDABLE, SET_LE = 0x0005, 0x0007, 0x0009, 0x000D
    DISCONNECT, GET_CONNECTIONS = 0x0014, 0x0015
    START_DISCOVERY, STOP_DISCOVERY = 0x0023, 0x0024
    ADD_ADVERTISING, REMOVE_ADVERTISING = 0x003E, 0x003F

    COMPLETE, STATUS = 0x0001, 0x0002
    INDEX_ADDED, INDEX_REMOVED = 0x0004, 0x0005
    CONNECTED, DISCONNECTED, CONNECT_FAILED, FOUND, DISCOVERING = 0x000B, 0x000C, 0x000D, 0x0012, 0x0013
    ADVERTISING_ADDED, ADVERTISING_REMOVED = 0x0023, 0x0024

    LE_ADDRESSES = b"\x06"                           # address types of a discovery: public and random LE addresses
    NO_INDEX = 0xFFFF

    def __init__(self):
        self._socket = socket.socket(AF_BLUETOOTH, socket.SOCK_RAW | socket.SOCK_CLOEXEC, BTPROTO_HCI)
        control_channel = 3
        _bind(self._socket, struct.pack("<HHH", AF_BLUETOOTH, self.NO_INDEX, control_channel))
        self._changed = threading.Condition()
        self._replies, self._events = {}, []
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _receive(self):
        while True:
            try:
                if not select.select([self._socket], [], [], 0.5)[0]:
                    continue
                packet = self._socket.recv(4096)
            except (OSError, ValueError):            # the socket was closed
                return
            event, index, _ = struct.unpack_from("<HHH", packet)
            parameters = packet[6:]
            with self._changed:
                if event in (self.COMPLETE, self.STATUS):
                    opcode, status = struct.unpack_from("<HB", parameters)
                    self._replies[opcode, index] = status, parameters[3:]
                else:
                    self._events.append((event, index, parameters))
                self._changed.notify_all()

    def command(self, opcode, index=NO_INDEX, parameters=b"", check=True, timeout=10):
        """Send a command. Returns the return parameters, or (status, return parameters) with check=False."""
        with self._changed:
            self._replies.pop((opcode, index), None)
            self._socket.send(struct.pack("<HHH", opcode, index, len(parameters)) + parameters)
            if not self._changed.wait_for(lambda: (opcode, index) in self._replies, timeout):
                raise CheckFailed(f"management command 0x{opcode:04x}: no answer")
            status, result = self._replies.pop((opcode, index))
        if not check:
            return status, result
        if status:
            raise CheckFailed(f"management command 0x{opcode:04x} on hci{index}: status 0x{status:02x}")
        return result

    def wait_event(self, event, index=None, predicate=lambda parameters: True, timeout=10):
        """Wait for an event. Returns the parameters of the first matching event that no earlier call has returned."""

        def take():
            for position, (number, where, parameters) in enumerate(self._events):
                if number == event and index in (None, where) and predicate(parameters):
                    return self._events.pop(position)
            return None

        deadline = time.monotonic() + timeout
        with self._changed:
            while not (found := take()):
                if not self._changed.wait(max(0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise CheckFailed(f"no management event 0x{event:02x} on hci{index} within {timeout} s")
            return found[2]

    def forget_events(self):
        with self._changed:
            self._events.clear()

    # --- commands ----------------------------------------------------------------------------------------------------

    def indexes(self):
        result = self.command(self.READ_INDEX_LIST)
        count = struct.unpack_from("<H", result)[0]
        return sorted(struct.unpack_from(f"<{count}H", result, 2))

    def address(self, index):
        return address_text(self.command(self.READ_INFO, index)[:6])

    def settings(self, index):
        """The supported settings and the current settings of a controller, each as a bit mask."""
        return struct.unpack_from("<II", self.command(self.READ_INFO, index), 9)

    def power_on(self, index):
        """Enable LE, disable bonding, switch the controller's power on, and make it connectable."""
        for opcode, value in (
            (self.SET_LE, 1), (self.SET_BONDABLE, 0), (self.SET_POWERED, 1), (self.SET_CONNECTABLE, 1),
        ):
            self.command(opcode, index, bytes([value]))

    def power_off(self, index):
        self.command(self.SET_POWERED, index, b"\0")

    def advertise(self, index, data, response=b"", instance=1):
        """Advertise this data as a connectable and discoverable device."""
        connectable, discoverable, managed_flags = 1, 2, 8
        head = struct.pack(
            "<BIHHBB", instance, connectable | discoverable | managed_flags, 0, 0, len(data), len(response)
        )
        self.command(self.ADD_ADVERTISING, index, head + data + response)

    def start_discovery(self, index):
        self.command(self.START_DISCOVERY, index, self.LE_ADDRESSES)

    def stop_discovery(self, index):
        self.command(self.STOP_DISCOVERY, index, self.LE_ADDRESSES, check=False)

    def discover(self, index, address, timeout=20):
        """Scan until a device with this address is found. Returns the strength of its signal and its advertising
        data."""
        deadline = time.monotonic() + timeout
        self.forget_events()
        while True:
            self.start_discovery(index)
            try:                                     # the kernel ends each discovery after ten seconds
                left = min(10.5, deadline - time.monotonic())
                found = self.wait_event(self.FOUND, index, lambda p: p[:6] == address_bytes(address), left)
                return struct.unpack_from("b", found, 7)[0], found[14:]
            except CheckFailed:
                if time.monotonic() > deadline:
                    raise
            finally:
                self.stop_discovery(index)

    def connections(self, index):
        """The addresses of the devices that have a link with the controller."""
        result = self.command(self.GET_CONNECTIONS, index)
        count = struct.unpack_from("<H", result)[0]
        return [address_text(result[2 + 7 * number :][:6]) for number in range(count)]

    def disconnect(self, index, address, address_type=LE_PUBLIC):
        self.command(self.DISCONNECT, index, address_bytes(address) + bytes([address_type]))

    def wait_disconnected(self, index, address, timeout=10):
        """Wait for the end of a link. Returns the reason: 1 timeout, 2 local host, 3 remote host."""
        return self.wait_event(self.DISCONNECTED, index, lambda p: p[:6] == address_bytes(address), timeout)[7]


# --- L2CAP -----------------------------------------------------------------------------------------------------------


def _check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _bind(unbound, address):
    _check(_libc.bind(unbound.fileno(), address, len(address)))


def _l2cap_address(address, psm=0, channel=0, address_type=LE_PUBLIC):
    return struct.pack("<HH6sHBx", AF_BLUETOOTH, psm, address_bytes(address), channel, address_type)


def _l2cap_socket(own_address, psm=0, channel=0, mtu=None):
    new = socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET, BTPROTO_L2CAP)
    new.setsockopt(SOL_BLUETOOTH, BT_SECURITY, struct.pack("BB", BT_SECURITY_LOW, 0))
    _bind(new, _l2cap_address(own_address, psm, channel))
    if not channel:                                  # the mode of a credit-based channel can be set only after bind
        new.setsockopt(SOL_BLUETOOTH, BT_MODE, bytes([BT_MODE_LE_FLOWCTL]))
        new.setsockopt(SOL_BLUETOOTH, BT_RCVMTU, struct.pack("<H", mtu or 2048))
    return new


def listen_channel(own_address, psm, mtu=2048, backlog=8):
    """Listen for LE credit-based channels at this PSM."""
    listener = _l2cap_socket(own_address, psm, mtu=mtu)
    listener.listen(backlog)
    return listener


def att_listener(own_address, backlog=8):
    """Listen for the ATT channel. The listener must exist before a link is up, or it never gets the channel of that
    link."""
    listener = _l2cap_socket(own_address, channel=ATT_CHANNEL)
    listener.listen(backlog)
    return listener


def accept(listener, timeout=20):
    if not select.select([listener], [], [], timeout)[0]:
        raise CheckFailed(f"nobody connected within {timeout} s")
    descriptor = _check(_libc.accept(listener.fileno(), None, None))
    accepted = socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET, BTPROTO_L2CAP, fileno=descriptor)
    accepted.settimeout(20)
    return accepted


def begin_connect(own_address, address, psm=0, channel=0, address_type=LE_PUBLIC, mtu=2048):
    """Start to connect. The socket becomes writable when the attempt has succeeded or failed (see finish_connect)."""
    connecting = _l2cap_socket(own_address, channel=channel, mtu=mtu)
    connecting.setblocking(False)
    target = _l2cap_address(address, psm, channel, address_type)
    if _libc.connect(connecting.fileno(), target, len(target)) < 0 and ctypes.get_errno() != 115:     # EINPROGRESS
        number = ctypes.get_errno()
        connecting.close()
        raise OSError(number, os.strerror(number))
    return connecting


def finish_connect(connecting, timeout=20):
    if not select.select([], [connecting], [], timeout)[1]:
        connecting.close()
        raise CheckFailed(f"connecting took longer than {timeout} s")
    if number := connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        connecting.close()
        raise OSError(number, os.strerror(number))
    connecting.settimeout(20)
    return connecting


def connect_channel(own_address, address, psm, address_type=LE_PUBLIC, mtu=2048, timeout=20):
    """Connect an LE credit-based channel to a peer. The kernel makes the link if there is none."""
    return finish_connect(begin_connect(own_address, address, psm, address_type=address_type, mtu=mtu), timeout)


def connect_att(own_address, address, address_type=LE_PUBLIC, timeout=20):
    """Connect the ATT channel to a peer."""
    connecting = begin_connect(own_address, address, channel=ATT_CHANNEL, address_type=address_type)
    return finish_connect(connecting, timeout)


def close_hard(*sockets):
    """Close sockets at once and discard their pending data."""
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        each.close()
