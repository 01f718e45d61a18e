"""Addresses in a Wi-Fi group, requested by the DHCP client of BusyBox.

A real daemon serves the addresses. A virtual cable replaces the radio. Needs root and busybox."""
import os
import re
import subprocess
import sys
import unittest

from daemons import DaemonsTest
from group import ADDRESS, Owner

# udhcpc runs this script for each of its events, and does not set the address itself.
SCRIPT = """#!/bin/sh
[ "$1" = bound ] && ip address replace "$ip/$mask" dev "$interface"
echo "$1 $ip/$mask router=$router dns=$dns server=$serverid lease=$lease"
"""
# Sends one DHCP message from wlan0 over a raw socket, as udhcpc does. The arguments are the source Ethernet address,
# the message type, the hardware address in the message (chaddr), the client's address and the wanted address.
CLIENT = """import socket, struct, sys
source, kind, hardware, has, wanted = sys.argv[1:]
mac = lambda text: bytes.fromhex(text.replace(":", ""))
address = lambda text: socket.inet_aton(text)
message = struct.pack(">BBBBIHH4s12x16s192xI", 1, 1, 6, 0, 7, 0, 0, address(has), mac(hardware), 0x63825363)
message += bytes([53, 1, int(kind), 50, 4]) + address(wanted) + b"\\xff"
message = message.ljust(300, b"\\0")
udp = struct.pack(">HHHH", 68, 67, 8 + len(message), 0) + message
head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, address(has), address("255.255.255.255"))
total = sum(struct.unpack(">10H", head))
total = (total & 0xFFFF) + (total >> 16)
head = head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("wlan0", 0))
raw.send(b"\\xff" * 6 + mac(source) + b"\\x08\\x00" + head + udp)
"""
DECLINE, RELEASE = 4, 7
LISTEN = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('0.0.0.0',67))\nprint('bound',flush=True)\ntime.sleep(60)"


class DHCPTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.script = self.path("lease.sh")
        with open(self.script, "w") as file:
            file.write(SCRIPT)
        os.chmod(self.script, 0o755)

    def owner(self, extra="", start=True):
        owner = Owner(self.root, "attic", extra=extra)
        self.addCleanup(owner.stop)
        return owner.start() if start else owner

    def ask(self, owner, *options):
        """Run udhcpc. Returns its exit status, which is 0 if it got an address, and the line of its last event."""
        command = owner.phone.command("busybox", "udhcpc", "-i", "wlan0", "-f", "-n", "-q", "-t", "4", "-T", "1", "-s", self.script, *options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return done.returncode, done.stdout.splitlines()[-1] if done.stdout else ""

    def test_a_station_gets_an_address_and_no_way_elsewhere(self):
        owner = self.owner()
        code, told = self.ask(owner)
        self.assertEqual((code, told), (0, f"bound 192.168.49.201/24 router= dns= server={ADDRESS} lease=3600"))
        owner.phone.run("busybox", "ping", "-c", "1", "-W", "2", ADDRESS)

    def test_it_gets_the_same_one_again_and_another_station_another_one(self):
        owner = self.owner()
        self.ask(owner)
        self.assertIn("bound 192.168.49.201/", self.ask(owner)[1])
        owner.phone.run("ip", "link", "set", "wlan0", "address", "02:00:00:00:07:07")
        self.assertIn("bound 192.168.49.202/", self.ask(owner)[1])

    def test_who_asks_for_the_address_that_it_had_gets_it_from_a_box_that_was_started_again(self):
        owner = self.owner()
        self.assertIn("bound 192.168.49.222/", self.ask(owner, "-r", "192.168.49.222")[1])

    def send(self, owner, source, kind, hardware, has="0.0.0.0", wanted="0.0.0.0"):
        owner.phone.run(sys.executable, "-c", CLIENT, source, kind, hardware, has, wanted)

    def test_nobody_gives_up_the_address_of_another_station(self):
        owner = self.owner()
        first, second = "02:00:00:00:07:01", "02:00:00:00:07:02"
        owner.phone.run("ip", "link", "set", "wlan0", "address", first)
        self.assertIn("bound 192.168.49.201/", self.ask(owner)[1])
        # A second station sends RELEASE and DECLINE messages that contain the first station's hardware address.
        self.send(owner, second, RELEASE, first, has="192.168.49.201")
        self.send(owner, second, DECLINE, first, wanted="192.168.49.201")
        owner.phone.run("ip", "link", "set", "wlan0", "address", second)
        self.assertIn("bound 192.168.49.202/", self.ask(owner, "-r", "192.168.49.201")[1])
        owner.phone.run("ip", "link", "set", "wlan0", "address", first)
        self.assertIn("bound 192.168.49.201/", self.ask(owner)[1])
        # The first station releases its own address, so another station may get it.
        self.send(owner, first, RELEASE, first, has="192.168.49.201")
        owner.phone.run("ip", "link", "set", "wlan0", "address", "02:00:00:00:07:03")
        self.assertIn("bound 192.168.49.201/", self.ask(owner, "-r", "192.168.49.201")[1])

    def test_the_configuration_can_leave_it_out(self):
        owner = self.owner(extra="dhcp = no")
        self.assertIsNone(owner.bearer("dhcp"))
        self.assertEqual(self.ask(owner, "-t", "2")[0], 1)

    def test_another_server_is_left_alone_and_that_is_no_fault(self):
        owner = self.owner(start=False)
        other = subprocess.Popen(owner.network.command(sys.executable, "-c", LISTEN), stdout=subprocess.PIPE)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        other.stdout.readline()
        owner.start()
        dhcp = owner.bearer("dhcp")
        self.assertEqual(dhcp["state"], "off")
        self.assertRegex(dhcp["problem"], re.compile("another program listens on UDP port 67"))


if __name__ == "__main__":
    unittest.main()
