"""Boxes: small computers within the lab's machine, and the networks between them.

A box has its own namespaces for network, mounts and host name, and its own /run and /var/lib. So daemons with their
usual paths run in several boxes at once. The /sys of a box shows only the network and radios of the box. All boxes
share /tmp. Bluetooth controllers belong to the machine: every program sees all of them, and its configuration names the
one to use."""

import itertools
import os
import pathlib
import re

from .process import Process, run
from .story import check, wait_until

_subnets = itertools.count(1)
_cable_numbers = itertools.count()


class Box:
    def __init__(self, name):
        self.name = name
        self.address = None                          # the IPv4 address on the first attached network
        self._next_interface = itertools.count()
        script = (
            "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && mount -t sysfs sysfs /sys && "
            f"mkdir -p /run/dbus /run/avahi-daemon && echo {name} > /proc/sys/kernel/hostname && "
            "ip link set lo up && touch /run/box-is-ready && exec sleep infinity"
        )
        self.keeper = Process(f"{name}.box", "unshare", "--net", "--mount", "--uts", "bash", "-c", script)
        self.pid = self.keeper.child.pid
        wait_until(f"box {name} is up", lambda: self.path("/run/box-is-ready").exists())

    def path(self, path):
        """The path of a file of the box as the scenario sees it, for example Box("a").path("/run/x")."""
        return pathlib.Path(f"/proc/{self.pid}/root{path}")

    def _enter(self, bluetooth=False):
        if bluetooth:                                # nsbt enters the network and provides the machine's Bluetooth
            return ["nsenter", "-t", self.pid, "-m", "-u", "nsbt", f"/proc/{self.pid}/ns/net"]
        return ["nsenter", "-t", self.pid, "-m", "-u", "-n"]

    def run(self, *command, check=True, timeout=30, input=None, bluetooth=False):
        """Run a command in the box until it ends. Returns its output."""
        return run(*self._enter(bluetooth), *command, check=check, timeout=timeout, input=input)

    def spawn(self, name, *command, bluetooth=False, environment=None):
        """Start a program in the box. The name of its log consists of the names of the box and the program."""
        return Process(f"{self.name}.{name}", *self._enter(bluetooth), *command, environment=environment)

    def ping(self, address, count=3, interface=None):
        """Whether all of `count` echo requests to the address are answered."""
        options = ["-I", interface] if interface else []
        output = self.run("ping", "-c", count, "-i", "0.2", "-W", "2", *options, address, check=False)
        return bool(re.search(r"\b0% packet loss", output))

    # --- interfaces --------------------------------------------------------------------------------------------------

    def adopt(self, interface, name=None, address=None):
        """Move an interface of the machine into this box, set it up, and give it an address with its prefix length."""
        run("ip", "link", "set", interface, "netns", self.pid)
        name = name or interface
        if name != interface:
            self.run("ip", "link", "set", interface, "name", name)
        self.run("ip", "link", "set", name, "up", "multicast", "on")
        if address:
            self.run("ip", "address", "add", address, "dev", name)
            self.address = self.address or address.split("/")[0]
        return name

    def next_ethernet(self):
        return f"eth{next(self._next_interface)}"

    def set_link(self, interface, up):
        """Set an interface of the box up, or down."""
        self.run("ip", "link", "set", interface, "up" if up else "down")

    def impair(self, interface, *netem):
        """Impair what the interface sends, with arguments of tc-netem: impair("eth0", "loss", "20%"). Without
        arguments: repair it."""
        self.run("tc", "qdisc", "del", "dev", interface, "root", check=False)
        if netem:
            self.run("tc", "qdisc", "add", "dev", interface, "root", "netem", *netem)

    def link_local(self, interface):
        """The IPv6 link-local address of the interface. Waits until duplicate address detection has finished."""

        def find():
            output = self.run("ip", "-6", "-o", "address", "show", "dev", interface, "scope", "link")
            match = re.search(r"inet6 (fe80\S+)/64", output)
            return match and "tentative" not in output and match[1]

        return wait_until(f"{self.name}: link-local address of {interface}", find)

    # --- Wi-Fi -------------------------------------------------------------------------------------------------------

    def take_radio(self, number):
        """Move radio phyN with its interface wlanN into this box. Returns the name of the interface."""
        run("iw", "phy", f"phy{number}", "set", "netns", self.pid)
        return f"wlan{number}"


class Machine(Box):
    """The lab's machine itself as a box, with its own /run and /var/lib. Its network namespace is the first one, to
    which Bluetooth belongs."""

    def __init__(self, name):
        self.name = name
        self.address = None
        self.pid = os.getpid()
        self._next_interface = itertools.count()

    def path(self, path):
        return pathlib.Path(path)

    def _enter(self, bluetooth=False):
        return []


class Lan:
    """An Ethernet switch. Each attached box has an interface for it, named eth0, eth1, ... in the order of
    attachment."""

    _numbers = itertools.count()

    def __init__(self, *boxes, subnet=None):
        self.name = f"lan{next(self._numbers)}"
        self.subnet = subnet or f"10.{next(_subnets)}.0"
        self._hosts = itertools.count(1)
        run("ip", "link", "add", self.name, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        run("ip", "link", "set", self.name, "up")
        self.ports = {}                              # box -> (interface in the box, the switch's end of its cable)
        for box in boxes:
            self.attach(box)

    def attach(self, box, address=None):
        """Connect a box with the switch. Returns the name of the interface in the box."""
        ours, theirs = _make_cable()
        run("ip", "link", "set", ours, "master", self.name, "up")
        address = address or f"{self.subnet}.{next(self._hosts)}/24"
        interface = box.adopt(theirs, box.next_ethernet(), address)
        self.ports[box] = interface, ours
        return interface

    def plug(self, box, connected):
        """Connect or disconnect the cable of a box at the switch. The carrier of the box's interface changes
        accordingly."""
        run("ip", "link", "set", self.ports[box][1], "up" if connected else "down")


def cable(a, b, subnet=None):
    """Connect two boxes with an Ethernet cable. Returns the names of both interfaces."""
    subnet = subnet or f"10.{next(_subnets)}.0"
    end_a, end_b = _make_cable()
    return (
        a.adopt(end_a, a.next_ethernet(), f"{subnet}.1/24"),
        b.adopt(end_b, b.next_ethernet(), f"{subnet}.2/24"),
    )


def _make_cable():
    number = next(_cable_numbers)
    ends = f"cable{number}a", f"cable{number}b"
    run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
    return ends


def load_radios(count):
    """Create Wi-Fi radios phy0, phy1, ... in range of each other. Call this once, before Box.take_radio."""
    # A radio uses two channels at once, because a station may be on one and a group on another channel. The timeout is
    # long, because an emulated processor on a busy host loads kernel modules slowly.
    run("modprobe", "mac80211_hwsim", f"radios={count}", "channels=2", timeout=120)
    run("iw", "reg", "set", "US")
    present = pathlib.Path("/sys/class/ieee80211")
    wait_until("the radios are there", lambda: len(os.listdir(present)) >= count)
    check(sorted(os.listdir(present))[0] == "phy0", "radios are counted from phy0")


def set_radio_range(number, group):
    """Set the group of a radio, a bit mask that is 1 at first. Two radios are in range if their masks have a common
    bit."""
    pathlib.Path(f"/sys/kernel/debug/ieee80211/phy{number}/hwsim/group").write_text(f"{group}\n")
