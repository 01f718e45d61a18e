"""The status page of a Wi-Fi group, in a browser and with hostile clients.

A real daemon serves the page. A virtual cable replaces the radio, and headless Chromium runs at its other end. With
SCREENSHOT=FILE the test makes the picture of docs/operations/radios.md. Needs root."""
# seconds: 45
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from daemons import DaemonsTest, wait
from group import ADDRESS, PASSPHRASE, SSID, Network, Owner

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), "chromium-headless-shell")
PAGE = f"http://{ADDRESS}/"
# A client that sends each of its arguments as one piece, and prints the complete answer or its first 64 KiB.
CLIENT = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 80), timeout=20)
for piece in sys.argv[2:]:
    s.sendall(piece.encode("latin-1").decode("unicode_escape").encode("latin-1"))
    time.sleep(0.05)
came = b""
try:
    while len(came) < 65536 and (part := s.recv(65536)):
        came += part
except ConnectionResetError:
    came += b"reset"
sys.stdout.buffer.write(came)
"""
# A station that opens some 250 connections per second from eight addresses until it is killed. The station holds the
# last 50 of these connections.
CROWD = """
import socket, time
print("crowd", flush=True)
open = []
for number in range(10**9):
    s = socket.socket()
    s.setblocking(False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
    s.bind((f"192.168.49.{20 + number % 8}", 0))
    s.connect_ex(("192.168.49.1", 80))
    open.append(s)
    if len(open) > 50:
        open.pop(0).close()
    time.sleep(0.004)
"""
LEASE = """#!/bin/sh
[ "$1" = bound ] && ip address replace "$ip/$mask" dev "$interface"
exit 0
"""


class PageTest(DaemonsTest):
    def owner(self, extra="", **options):
        owner = Owner(self.root, "attic", extra=extra, **options)
        self.addCleanup(owner.stop)
        return owner.start()

    def with_address(self, owner):
        owner.phone.run("ip", "address", "replace", "192.168.49.201/24", "dev", "wlan0")
        return owner

    def ask(self, owner, *pieces, address=ADDRESS):
        return owner.phone.run(sys.executable, "-c", CLIENT, address, *pieces)

    def browse(self, owner, *options):
        """Load the page in a browser. Returns the page as HTML after its loading."""
        with tempfile.TemporaryDirectory() as profile:
            return owner.phone.run(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                                   "--window-size=412,915", *options, PAGE)

    def test_a_browser_shows_who_is_there(self):
        owner = self.with_address(self.owner(display="attic <b>&"))
        html = self.browse(owner, "--dump-dom")
        self.assertIn("<h1>attic &lt;b&gt;&amp;</h1>", html)
        self.assertIn(f"<code>{owner.id}</code>", html)
        self.assertIn(SSID, html)
        self.assertNotIn(PASSPHRASE, html)
        self.assertIn("No peers yet.", html)

    def test_the_page_is_drawn_to_its_end(self):
        owner = self.with_address(self.owner())
        path = os.environ.get("SCREENSHOT") or self.path("page.png")
        self.browse(owner, f"--screenshot={path}")
        with open(path, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertGreater(os.path.getsize(path), 10_000, "an empty page")

    def test_it_answers_at_the_address_of_the_group_on_its_interface_alone(self):
        owner = self.with_address(self.owner())
        self.assertIn("200 OK", self.ask(owner, f"GET / HTTP/1.1\\r\\nHost: {ADDRESS}\\r\\n\\r\\n"))
        owner.network.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", owner.phone.keeper.pid)
        for network, address in ((owner.network, "10.9.8.7/24"), (owner.phone, "10.9.8.8/24")):
            network.run("ip", "address", "add", address, "dev", "eth0")
            network.run("ip", "link", "set", "eth0", "up")
        owner.phone.run("ip", "route", "add", f"{ADDRESS}/32", "via", "10.9.8.7")
        for address in ("10.9.8.7", ADDRESS):
            with self.assertRaises(subprocess.CalledProcessError, msg=address):
                self.ask(owner, "GET / HTTP/1.0\\r\\n\\r\\n", address=address)

    def test_a_page_of_another_name_cannot_read_it(self):
        owner = self.with_address(self.owner())
        answer = self.ask(owner, "GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n")
        self.assertTrue(answer.startswith("HTTP/1.1 421 "), answer)
        self.assertNotIn("attic", answer)

    def test_hostile_requests_are_answered_shortly_and_change_nothing(self):
        owner = self.with_address(self.owner())
        before = owner.status
        for pieces, status in (
                (("POST / HTTP/1.1\\r\\nHost: 192.168.49.1\\r\\nContent-Length: 9999999\\r\\n\\r\\n", "x" * 1000), 405),
                (("GET /../../etc/passwd HTTP/1.1\\r\\nHost: 192.168.49.1\\r\\n\\r\\n",), 404),
                (("GET / HTTP/1.1\\r\\nHost: 192.168.49.1\\r\\nHost: a\\r\\n\\r\\n",), 400),
                (("GET / HTTP/1.1\\r\\n" + "A: b\\r\\n" * 700 + "\\r\\n",), 431),
                (("\\x16\\x03\\x01\\x02\\x00\\x01\\x00",), 400), (("\\x00",), 400)):
            answer = self.ask(owner, *pieces)
            self.assertTrue(answer.startswith(f"HTTP/1.1 {status} "), answer)
        after = owner.status
        self.assertEqual([after["box"][key] for key in ("name", "id", "epoch", "trust")],
                         [before["box"][key] for key in ("name", "id", "epoch", "trust")])

    def test_who_reads_nothing_and_who_sends_nothing_holds_up_nobody(self):
        owner = self.with_address(self.owner())
        script = "import socket,time\ns=[socket.create_connection(('192.168.49.1',80)) for _ in range(20)]\ntime.sleep(60)"
        crowd = subprocess.Popen(owner.phone.command(sys.executable, "-c", script))
        self.addCleanup(crowd.wait)
        self.addCleanup(crowd.kill)
        wait("it answers", lambda: "200 OK" in self.ask(owner, f"GET / HTTP/1.1\\r\\nHost: {ADDRESS}\\r\\n\\r\\n"))

    def test_a_station_with_a_lease_gets_the_page_beside_one_with_eight_addresses(self):
        owner, victim = self.owner(), Network()
        self.addCleanup(victim.end)
        for number in range(8):
            owner.phone.run("ip", "address", "add", f"192.168.49.{20 + number}/24", "dev", "wlan0")
        # Two stations share the one cable. The second station has its own Ethernet address.
        owner.phone.run("ip", "link", "add", "link", "wlan0", "name", "victim", "netns", victim.keeper.pid, "type", "macvlan", "mode", "bridge")
        victim.run("ip", "link", "set", "victim", "up")
        script = self.path("lease.sh")
        with open(script, "w") as file:
            file.write(LEASE)
        os.chmod(script, 0o755)
        victim.run("busybox", "udhcpc", "-i", "victim", "-f", "-n", "-q", "-t", "4", "-T", "1", "-s", script)
        crowd = subprocess.Popen(owner.phone.command(sys.executable, "-c", CROWD), stdout=subprocess.PIPE)
        self.addCleanup(crowd.stdout.close)
        self.addCleanup(crowd.wait)
        self.addCleanup(crowd.kill)
        crowd.stdout.readline()
        time.sleep(1)
        for number in range(12):
            answer = victim.run(sys.executable, "-c", CLIENT, ADDRESS, f"GET / HTTP/1.1\\r\\nHost: {ADDRESS}\\r\\n\\r\\n")
            self.assertIn("200 OK", answer, f"request {number}")
            time.sleep(0.2)
        self.assertIsNone(crowd.poll(), "the crowd has ended")

    def test_the_configuration_can_leave_it_out(self):
        owner = self.with_address(self.owner(extra="status-page = no"))
        self.assertIsNone(owner.bearer("status-page"))
        with self.assertRaises(subprocess.CalledProcessError):
            self.ask(owner, "GET / HTTP/1.0\\r\\n\\r\\n")

    def test_a_taken_port_is_told_and_is_no_fault(self):
        owner = Owner(self.root, "attic")
        self.addCleanup(owner.stop)
        script = "import socket,time\ns=socket.socket()\ns.bind(('0.0.0.0',80))\ns.listen()\nprint('bound',flush=True)\ntime.sleep(60)"
        other = subprocess.Popen(owner.network.command(sys.executable, "-c", script), stdout=subprocess.PIPE)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        other.stdout.readline()
        owner.start()
        page = owner.bearer("status-page")
        self.assertEqual((page["state"], page["detail"]), ("off", PAGE))
        self.assertIn("another program listens on port 80", page["problem"])

    def test_join_shows_the_group_of_a_real_daemon(self):
        owner = self.owner()
        code, out, err = owner.run("join")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, re.compile(rf"^network +{SSID}\npassphrase +{PASSPHRASE}\nbox +attic\nfingerprint +{owner.id}\naddress +{ADDRESS}\n"))

    def test_join_without_a_group_says_so(self):
        box = self.daemon("box").start()
        self.assertIn("Wi-Fi Direct is off: set enabled = yes", self.refused(box, "join"))


if __name__ == "__main__":
    unittest.main()
