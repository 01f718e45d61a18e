#!/usr/bin/env python3
"""Addresses in a Wi-Fi group, asked for by BusyBox's client: dhcp_test.py BINARY

A real daemon, and a cable in the place of the radio. Needs root and busybox."""
import os
import re
import subprocess
import sys
import unittest

from daemons import DaemonsTest
from group import ADDRESS, Owner

# Of each event of udhcpc, which sets no address itself.
SCRIPT = """#!/bin/sh
[ "$1" = bound ] && ip address replace "$ip/$mask" dev "$interface"
echo "$1 $ip/$mask router=$router dns=$dns server=$serverid lease=$lease"
"""
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
        """What the client told, the last event; with an address in the end it ends with 0."""
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
        self.assertRegex(dhcp["problem"], re.compile("another program listens at UDP port 67"))


if __name__ == "__main__":
    unittest.main()
