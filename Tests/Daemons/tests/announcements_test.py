"""Announcements of nodes that do not exist.

The daemons are connected by ports of one bridge, each in its own network namespace. By multicast DNS a stranger
announces 300 services with all their records once a second, or claims every name of a box. Needs root."""
# seconds: 65
import itertools
import os
import socket
import struct
import subprocess
import sys
import time
import unittest

from daemons import BINARY, Daemon, DaemonsTest, wait
from group import Network
from multicast import GROUP, PORT, open_socket

COUNT, SECONDS = 300, 75
PTR, TXT, SRV, A, FLUSH = 12, 16, 33, 1, 0x8000
TYPE = "_causeway._tcp.local"


def labels(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(name, kind, data, flush=FLUSH):
    return labels(name) + struct.pack(">HHIH", kind, 1 | flush, 120, len(data)) + data


def service(number):
    """The DNS records of an invented node. No host has the node's address."""
    instance, host = f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}{number:016x}.{TYPE}", f"invented{number}.local"
    address = socket.inet_aton(f"10.77.{100 + number // 200}.{number % 200 + 1}")
    return [record(TYPE, PTR, labels(instance), 0), record(instance, SRV, struct.pack(">HHH", 0, 0, 7000) + labels(host)),
            record(instance, TXT, b"\x09relay=yes"), record(host, A, address)]


def announce():
    """Announce all services once a second, six services per packet, until standard input is closed."""
    sender = open_socket()
    services = [service(number) for number in range(COUNT)]
    while True:
        for first in range(0, COUNT, 6):
            records = list(itertools.chain.from_iterable(services[first : first + 6]))
            sender.sendto(struct.pack(">HHHHHH", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records), (GROUP, PORT))
            time.sleep(1 / 50)
        print("announced", flush=True)


def join_group():
    """A multicast DNS socket with the address 10.77.0.9, for a machine that claims names of others."""
    udp = open_socket()
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton("10.77.0.9"))
    return udp


def read_name(packet, offset):
    """Return the labels of the name at `offset`, and the offset behind the name."""
    found, end = [], None
    while length := packet[offset]:
        if length >= 0xC0:
            end, offset = end or offset + 2, (length & 0x3F) << 8 | packet[offset + 1]
        else:
            found.append(packet[offset + 1 : offset + 1 + length])
            offset += 1 + length
    return found, end or offset + 1


def read_records(packet):
    """Yield each question and record of a packet as (labels, type, whether it is a question, offset of the data)."""
    _, _, questions, *others = struct.unpack(">6H", packet[:12])
    offset = 12
    for number in range(questions + sum(others)):
        name, offset = read_name(packet, offset)
        kind, = struct.unpack(">H", packet[offset : offset + 2])
        offset += 4 if number < questions else 10
        yield name, kind, number < questions, offset
        if number >= questions:
            offset += struct.unpack(">H", packet[offset - 2 : offset])[0]


def claim():
    """Answer each packet that claims or uses an instance name of our service type. The answer gives the name to another
    host."""
    udp = join_group()
    print("claims", flush=True)
    while True:
        packet, (sender, _) = udp.recvfrom(9000)
        if sender == "10.77.0.9":
            continue
        names = {b"".join(bytes([len(label)]) + label for label in name) + b"\0"
                 for name, kind, asked, _ in read_records(packet) if len(name) == 4 and (kind in (SRV, 255) or not asked)}
        data = struct.pack(">HHH", 0, 0, 9) + labels("rival.local")
        records = [name + struct.pack(">HHIH", SRV, 1 | FLUSH, 120, len(data)) + data for name in names]
        if records:
            udp.sendto(struct.pack(">6H", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records), (GROUP, PORT))


def browse():
    """Print the instance names of our service type that 10.77.0.1 sends within 3 s."""
    udp, found, end = join_group(), set(), time.monotonic() + 3
    udp.sendto(struct.pack(">6H", 0, 0, 1, 0, 0, 0) + labels(TYPE) + struct.pack(">HH", PTR, 1), (GROUP, PORT))
    while (left := end - time.monotonic()) > 0:
        udp.settimeout(left)
        try:
            packet, (sender, _) = udp.recvfrom(9000)
        except TimeoutError:
            break
        if sender == "10.77.0.1":
            found |= {read_name(packet, data)[0][0].decode() for name, kind, asked, data in read_records(packet)
                      if kind == PTR and not asked and name == [label.encode() for label in TYPE.split(".")]}
    print("\n".join(found))


class Box(Daemon):
    """A daemon at a port of the bridge. It has no configured peers, so it finds others only by discovery."""

    def __init__(self, root, name, network):
        self.network = network
        super().__init__(root, name, trust="policy = open")

    def write(self):
        with open(self.config, "w") as file:
            file.write(f"[node]\ndisplay-name = {self.name}\nstate-directory = {self.directory}/state\n"
                       f"runtime-directory = {self.directory}/run\n[discovery]\ndns-sd = embedded\n"
                       "[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n")

    def start(self):
        self.process = subprocess.Popen(
            self.network.command("setpriv", "--pdeathsig", "KILL", BINARY, "run", "--config", self.config), stderr=subprocess.DEVNULL)
        wait(f"{self.name} answers", lambda: self.run("status")[0] == 0)
        return self


class AnnouncementsTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.bridge = self.network()
        self.bridge.run("ip", "link", "add", "bridge", "type", "bridge")
        self.bridge.run("ip", "link", "set", "bridge", "up")

    def network(self):
        network = Network()
        self.addCleanup(network.end)
        return network

    def plug(self, number):
        """A new network namespace that is connected with the bridge by a virtual cable."""
        network = self.network()
        self.bridge.run("ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", network.keeper.pid)
        self.bridge.run("ip", "link", "set", f"port{number}", "master", "bridge", "up")
        network.run("ip", "address", "add", f"10.77.0.{number}/16", "dev", "eth0")
        network.run("ip", "link", "set", "eth0", "up")
        return network

    def box(self, name, number):
        box = Box(self.root, name, self.plug(number))
        self.addCleanup(box.stop)
        return box

    def stranger(self, number):
        """The network namespace of a host that can send multicast but runs no daemon."""
        network = self.plug(number)
        network.run("ip", "route", "add", "224.0.0.0/4", "dev", "eth0")
        return network

    def begin(self, network, mode):
        """Start this file in `mode` in a network namespace, and wait for the first line of its output."""
        other = subprocess.Popen(network.command(sys.executable, os.path.abspath(__file__), BINARY, mode), stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        other.stdout.readline()
        return other

    def test_a_real_box_that_comes_after_three_hundred_invented_ones_is_linked(self):
        self.begin(self.stranger(9), "--announce")
        first, second = self.box("first", 1).start(), self.box("second", 2)
        time.sleep(20)
        begun = time.monotonic()
        second.start()
        wait("the second box is linked", lambda: first.neighbours() == ["second"], SECONDS)
        spent = time.monotonic() - begun
        print(f"linked after {spent:.1f} s", file=sys.stderr)
        self.assertLess(spent, 30)

    def test_a_box_whose_cable_is_plugged_in_is_linked_at_once(self):
        first, second = self.box("first", 1).start(), self.box("second", 2)
        self.bridge.run("ip", "link", "set", "port2", "down")
        second.start()
        # Each box sends a query 15 s after its start, and the next one 31 s after its start.
        time.sleep(17)
        begun = time.monotonic()
        self.bridge.run("ip", "link", "set", "port2", "up")
        wait("the second box is linked", lambda: first.neighbours() == ["second"], SECONDS)
        spent = time.monotonic() - begun
        print(f"linked {spent:.1f} s after its cable was plugged in", file=sys.stderr)
        self.assertLess(spent, 10)

    def test_a_box_whose_every_name_was_claimed_is_announced_again_when_the_rival_has_left(self):
        network, box = self.stranger(9), self.box("first", 1)

        def names():
            return network.run(sys.executable, os.path.abspath(__file__), BINARY, "--browse").split("\n")[:-1]

        def problem():
            return next(bearer["problem"] for bearer in box.status["bearers"] if bearer["name"] == "dns-sd")

        rival = self.begin(network, "--claim")
        box.start()
        wait("every name is claimed", lambda: "claims every service name" in problem(), 60)
        self.assertIn("Disconnect that machine", " ".join(box.run("doctor")[1].split()))
        rival.kill()
        rival.wait()
        left = time.monotonic()
        wait("it is announced again", lambda: any(name.startswith(box.id) for name in names()), 60)
        print(f"announced again {time.monotonic() - left:.1f} s after the rival left", file=sys.stderr)
        self.assertLess(time.monotonic() - left, 60)
        wait("the fault is over", lambda: problem() == "", 30)
        lines = [line for line in box.run("log")[1].splitlines() if "claims every" in line]
        self.assertLessEqual(len(lines), 2, lines)


if __name__ == "__main__":
    if sys.argv[1:] in (["--announce"], ["--claim"], ["--browse"]):
        {"--announce": announce, "--claim": claim, "--browse": browse}[sys.argv[1]]()
        sys.exit()
    unittest.main()
