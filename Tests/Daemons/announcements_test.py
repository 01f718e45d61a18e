#!/usr/bin/env python3
"""Nodes that are announced on a network and do not exist: announcements_test.py BINARY

Daemons behind ports of one bridge, each in a network namespace of its own, and somebody who announces 300 services by multicast
DNS once a second, with all their records. Needs root."""
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

COUNT, GROUP, PORT, SECONDS = 300, "224.0.0.251", 5353, 75
PTR, TXT, SRV, A, FLUSH = 12, 16, 33, 1, 0x8000
TYPE = "_causeway._tcp.local"


def labels(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(name, kind, data, flush=FLUSH):
    return labels(name) + struct.pack(">HHIH", kind, 1 | flush, 120, len(data)) + data


def service(number):
    """The records of an invented node. Nobody is at its address."""
    instance, host = f"{(number * 0x9E3779B97F4A7C15) % 2**64:016x}{number:016x}.{TYPE}", f"invented{number}.local"
    address = socket.inet_aton(f"10.77.{100 + number // 200}.{number % 200 + 1}")
    return [record(TYPE, PTR, labels(instance), 0), record(instance, SRV, struct.pack(">HHH", 0, 0, 7000) + labels(host)),
            record(instance, TXT, b"\x09relay=yes"), record(host, A, address)]


def announce():
    """Announce all of them once a second until standard input is closed; half a dozen in each packet."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sender.bind(("", PORT))
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    services = [service(number) for number in range(COUNT)]
    while True:
        for first in range(0, COUNT, 6):
            records = list(itertools.chain.from_iterable(services[first : first + 6]))
            sender.sendto(struct.pack(">HHHHHH", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records), (GROUP, PORT))
            time.sleep(1 / 50)
        print("announced", flush=True)


class Box(Daemon):
    """A daemon that knows nobody, behind a port of the bridge."""

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
        """A network with a cable to the bridge."""
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

    def flood(self, number):
        network = self.plug(number)
        network.run("ip", "route", "add", "224.0.0.0/4", "dev", "eth0")
        flood = subprocess.Popen(network.command(sys.executable, os.path.abspath(__file__), BINARY, "--announce"), stdout=subprocess.PIPE, text=True)
        self.addCleanup(flood.stdout.close)
        self.addCleanup(flood.wait)
        self.addCleanup(flood.kill)
        flood.stdout.readline()

    def test_a_real_box_that_comes_after_three_hundred_invented_ones_is_linked(self):
        self.flood(9)
        first, second = self.box("first", 1).start(), self.box("second", 2)
        time.sleep(20)
        begun = time.monotonic()
        second.start()
        wait("the second box is linked", lambda: first.neighbours() == ["second"], SECONDS)
        spent = time.monotonic() - begun
        print(f"linked after {spent:.1f} s", file=sys.stderr)
        self.assertLess(spent, 30)


if __name__ == "__main__":
    if sys.argv[1:] == ["--announce"]:
        announce()
    unittest.main()
