"""wpa_supplicant and its control sockets.

wpa_supplicant reports events of Wi-Fi Direct at its global socket and at that of p2p-dev-wlanN, but not at that of
wlanN. At the global socket, the events of a group have the prefix IFNAME=p2p-wlanN-M."""

import itertools
import os
import re
import select
import socket
import time

from .story import CheckFailed, wait_until

CONTROL_DIRECTORY = "/run/wpa_supplicant"

CONFIGURATION = """\
ctrl_interface=DIR={directory} GROUP=netdev
update_config=0
device_name={device_name}
device_type=1-0050F204-1
manufacturer=Causeway
model_name=lab
config_methods=virtual_push_button
persistent_reconnect=0
p2p_go_intent=7
p2p_go_ht40=0
country=US
ip_addr_go=192.168.49.1
ip_addr_mask=255.255.255.0
ip_addr_start=192.168.49.10
ip_addr_end=192.168.49.200
"""


class WPAControl:
    """A control socket of wpa_supplicant or hostapd: sends commands and collects events."""

    _numbers = itertools.count()

    def __init__(self, path, events=True):
        wait_until(f"control socket {path}", lambda: os.path.exists(path))
        self.path = str(path)
        self.events = []                             # events that no call has returned or dropped yet, the oldest first
        self._commands = self._connect()
        self._events = self._connect() if events else None
        if events:
            answer = self._ask(self._events, "ATTACH")
            if answer != "OK":
                raise CheckFailed(f"{self.path}: ATTACH: {answer}")

    def _connect(self):
        own = f"/tmp/wpa-client-{os.getpid()}-{next(self._numbers)}"
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        connected.bind(own)

        def connect():
            try:
                connected.connect(self.path)
            except (ConnectionRefusedError, FileNotFoundError):
                return False                         # a killed process left the file, or no process is bound yet
            return True

        wait_until(f"control socket {self.path} answers", connect)
        connected.settimeout(15)
        return connected

    def _ask(self, connected, command):
        connected.send(command.encode())
        while True:
            answer = connected.recv(65536).decode(errors="replace")
            if not answer.startswith("<"):
                return answer.rstrip("\n")
            self.events.append(answer)

    def request(self, command):
        """Send a command. Returns the answer, which may be an error."""
        return self._ask(self._commands, command)

    def command(self, command):
        """Send a command that must succeed. Returns the answer."""
        answer = self.request(command)
        if answer.startswith(("FAIL", "UNKNOWN COMMAND")):
            raise CheckFailed(f"{self.path}: {command}: {answer}")
        return answer

    def status(self):
        """Send the command STATUS. Returns its answer as a dictionary."""
        return dict(line.split("=", 1) for line in self.request("STATUS").splitlines() if "=" in line)

    def wait_event(self, pattern, timeout=30):
        """Wait for the next event that matches the regular expression. Returns the match. Earlier events are
        dropped."""
        deadline = time.monotonic() + timeout
        while True:
            while self.events:
                if match := re.search(pattern, self.events.pop(0)):
                    return match
            left = deadline - time.monotonic()
            if left <= 0:
                raise CheckFailed(f"{self.path}: no event {pattern!r} within {timeout} s")
            if select.select([self._events], [], [], left)[0]:
                self.events.append(self._events.recv(65536).decode(errors="replace"))


class Supplicant:
    """wpa_supplicant on a box that has a radio, configured for Wi-Fi Direct. Its sockets are in the box's
    /run/wpa_supplicant, the default: one per interface, and `global`. `device_name` is the name that other devices see.
    The name of a Causeway group owner begins with "Causeway"."""

    def __init__(self, box, interface, device_name=None, configuration=""):
        self.box = box
        self.interface = interface
        self.device_name = device_name or f"Causeway {box.name}"
        file = f"/tmp/wpa-{box.name}.conf"
        with open(file, "w") as output:
            output.write(CONFIGURATION.format(directory=CONTROL_DIRECTORY, device_name=self.device_name))
            output.write(configuration)
        self._command = (
            "wpa_supplicant", "-t", "-Dnl80211", f"-i{interface}", f"-c{file}", f"-g{CONTROL_DIRECTORY}/global", "-Gnetdev",
        )
        box.run("mkdir", "-p", CONTROL_DIRECTORY)
        self.start()

    def start(self):
        self.process = self.box.spawn("wpa_supplicant", *self._command)
        self.control("global", events=False)
        self.control(self.interface, events=False)

    def control(self, name="global", events=True):
        """Connect to one of the control sockets: that of an interface, or "global"."""
        return WPAControl(self.box.path(f"{CONTROL_DIRECTORY}/{name}"), events)


def group_started(control, timeout=30):
    """Wait for the start of a group. Returns its interface, the own role, and the event's pairs of key and value."""
    match = control.wait_event(r"P2P-GROUP-STARTED (\S+) (GO|client) (.*)", timeout)
    fields = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', match[3]))
    return match[1], match[2], fields


def find_device(control, name, frequency=2437):
    """Search for the P2P device whose name matches the regular expression. Returns its device address."""
    control.command(f"P2P_FIND 15 freq={frequency}")
    return control.wait_event(rf"P2P-DEVICE-FOUND .*p2p_dev_addr=(\S+) .*name='{name}'", 20)[1]


def join_group(owner, member, frequency=2437):
    """Form a group of two Supplicants by push button. The first one opens its own group, and the second one joins it.
    Returns the interfaces of owner and member, which then have addresses."""
    host, guest = owner.control(), member.control()
    host.command("P2P_SET disallow_freq 5000-6000")  # only 2.4 GHz, so that scans are short
    guest.command("P2P_SET disallow_freq 5000-6000")
    host.command(f"P2P_GROUP_ADD freq={frequency}")
    owner_interface, _, fields = group_started(host)
    owner.box.run("ip", "address", "add", "192.168.49.1/24", "dev", owner_interface)
    owner.control(owner_interface, events=False).command("WPS_PBC")
    guest.command(f"P2P_CONNECT {find_device(guest, re.escape(owner.device_name), frequency)} pbc join")
    member_interface, _, fields = group_started(guest)
    member.box.run("ip", "address", "add", f"{fields['ip_addr']}/24", "dev", member_interface)
    return owner_interface, member_interface
