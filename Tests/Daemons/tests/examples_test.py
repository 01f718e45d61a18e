"""The examples in Python, tested with the causeway binary.

Real daemons run on the loopback interface. The programs of Examples/python are started as their users start them.
Applications with the Python client exchange files with each other and with the commands."""
# seconds: 60
import html
import os
import re
import struct
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request
import zlib

import resources
from causeway import CausewayError, Node
from daemons import DaemonsTest, wait
from people import Command

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Examples/python")
MEBIBYTE = 1 << 20
SCHEDULING_SECONDS = 0.05


def png(width, height, pixel):
    """A picture in the format PNG. `pixel` returns the red, green and blue values of a position."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Timed(Command):
    """A command that stores each line with the time of its arrival in front of the line."""

    def shown(self, line):
        return f"{time.monotonic():.6f} {line}"


class ExamplesTest(DaemonsTest):
    def daemons(self, *names, display=None):
        """Start daemons. All but the first one dial the first one."""
        all = [self.daemon(names[0]).start()]
        for name in names[1:]:
            all.append(self.daemon(name, all[0], display=(display or {}).get(name)).start())
        for daemon in all[1:]:
            wait("they are neighbours", lambda: all[0].name in daemon.neighbours())
        return all

    def program(self, name, daemon, *words, kind=Command):
        command = kind(None, command=[sys.executable, f"{EXAMPLES}/{name}.py", *words, "--socket", f"{daemon.directory}/run/api.sock"])
        self.addCleanup(command.close)
        return command

    def file(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    # The photo wall

    def wall(self, daemon):
        """Start the photo wall on a daemon. Returns its folder and its URL."""
        folder = self.path("wall")
        return folder, self.program("photowall", daemon, "show", folder, "--port", "0").wait("^http://127.0.0.1")

    def push(self, daemon, *paths):
        sender = self.program("photowall", daemon, "push", *paths)
        sender.wait("pictures are on the wall of", 30)
        return sender

    def fetch(self, address, **headers):
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read(), answer.headers

    def test_the_wall_shows_pictures_of_two_senders(self):
        alice, bob, carol = self.daemons("alice", "bob", "carol")
        folder, address = self.wall(alice)
        pictures = {name: png(40, 30, lambda x, y: (shade, 4 * x, 8 * y)) for shade, name in
                    ((0, "sea.png"), (90, "hill.png"), (200, "cat.png"))}
        self.push(bob, self.file("b/sea.png", pictures["sea.png"]), self.file("b/hill.png", pictures["hill.png"]))
        self.push(carol, self.file("c/cat.png", pictures["cat.png"]))
        page, headers = self.fetch(address)
        page = page.decode()
        self.assertIn("<h1>3 pictures, 0 arriving</h1>", page)
        self.assertEqual(re.findall("<figcaption><b>(.*?)</b> (.*?)<", page), [
            ("bob", "hill.png"), ("bob", "sea.png"), ("carol", "cat.png")])
        self.assertRegex(page, rf"bob <small>{bob.id[:8]}</small> <b>2</b> · carol <small>{carol.id[:8]}</small> <b>1</b>")
        self.assertIn("default-src 'none'; img-src 'self'", headers["Content-Security-Policy"])
        for name, place in zip(("hill.png", "sea.png", "cat.png"), re.findall('src="(.*?)"', page), strict=True):
            data, headers = self.fetch(address + place[1:])
            self.assertEqual(data, pictures[name])
            self.assertEqual((headers["Content-Type"], headers["X-Content-Type-Options"]), ("image/png", "nosniff"))
        self.assertEqual(sorted(os.listdir(folder)), ["cat.png", "hill.png", "sea.png"])

    def test_names_of_others_are_no_markup_and_only_pictures_are_served(self):
        alice, bob = self.daemons("alice", "bob", display={"bob": "<script>bob"})
        _, address = self.wall(alice)
        self.push(bob, self.file("b/<script>alert(1)<.png", png(4, 4, lambda x, y: (1, 2, 3))),
                  self.file("b/page.png", b"<script>alert(2)</script>"))
        page = self.fetch(address)[0].decode()
        self.assertNotIn("<script", page)
        self.assertIn(html.escape("<script>alert(1)<.png"), page)
        self.assertIn(html.escape("<script>bob"), page)
        self.assertIn("<h1>1 pictures", page)
        first = re.search('src="/(.*?)/0/0"', page)[1]
        for place in (f"{first}/0/1", f"{first}/1/0", f"{first}/0/9999", f"{first}/../photowall.py", "photowall.py", "../conf", "0/0/0"):
            with self.subTest(place), self.assertRaises(urllib.error.HTTPError) as refused:
                self.fetch(address + place)
            refused.exception.close()
            self.assertEqual(refused.exception.code, 404)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.fetch(address, Host="evil.example")
        refused.exception.close()
        self.assertEqual(refused.exception.code, 421)

    # The metronome

    def test_two_metronomes_tick_together_and_know_how_wrong_they_may_be(self):
        boxes = self.daemons("alice", "bob")
        ahead = {"alice": 0.0, "bob": 3.7}
        beat = re.compile(r"^([\d.]+) beat (\d+): (?:skew ([-+][\d.]+) s, at most ([\d.]+) ms wrong)?")
        programs = {box.name: self.program("metronome", box, "--every", "0.25", "--beats", "40", "--ahead", str(ahead[box.name]),
                                           kind=Timed) for box in boxes}
        heard = {}
        for name, program in programs.items():
            self.assertEqual(program.end(40), 0, program.heard)
            heard[name] = [beat.match(line) for line in program.heard]
            self.assertNotIn(None, heard[name], program.heard)
        # One of the two metronomes sets its beat by the other one. Only the lines of this follower have a skew.
        follower, = [name for name in heard if any(line[3] for line in heard[name])]
        leader, = set(heard) - {follower}
        there = {int(line[2]): float(line[1]) for line in heard[leader]}
        skews, apart = [], []
        for line in heard[follower]:
            if line[3]:
                wrong, bound = float(line[3]) - (ahead[follower] - ahead[leader]), float(line[4]) / 1e3
                skews.append((abs(wrong), bound))
                self.assertLessEqual(abs(wrong), bound + 2e-6)
                if int(line[2]) in there:
                    apart.append(abs(float(line[1]) - there[int(line[2])]))
        self.assertGreater(len(skews), 20)
        # On a busy machine single beats may be late, so the test compares the median.
        self.assertLess(sorted(apart)[len(apart) // 2], max(bound for _, bound in skews) + SCHEDULING_SECONDS)
        print(f"metronome: {skews[-1][0] * 1e6:.0f} us wrong, and at most {skews[-1][1] * 1e6:.0f} by its own word", flush=True)

    # Resources in Python

    def transfers(self, daemon, service="files", **options):
        """An application that sends and receives files, in a session with auto-join: it joins all applications of its
        service."""
        node = Node.connect("application", f"{daemon.directory}/run/api.sock")
        self.addCleanup(node.close)
        session = node.open_session(service, members_max=64)
        transfers = resources.Transfers(session, **options).start()
        session.gather()
        return node, session, transfers

    def pair(self, a, b, accept):
        """Connect a sender on daemon a with a receiver on daemon b. Returns both, and the receiver's address."""
        os.makedirs(self.path("in"), exist_ok=True)
        sender, receiver = self.transfers(a, "pair"), self.transfers(b, "pair", directory=self.path("in"), accept=accept)
        for node, *_ in (sender, receiver):
            node.advertise("pair")
        address = receiver[1].address
        wait("they have met", lambda: address in sender[1].connected())
        return sender[2], sender[1], address

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_files_go_from_the_client_to_a_command_and_back(self):
        a, b = self.daemons("a", "b")
        data = {"big": os.urandom(3 * MEBIBYTE + 5), "empty": b"", "leaf": os.urandom(MEBIBYTE)}
        paths = [self.file(f"out/{name}", bytes) for name, bytes in data.items()]
        os.makedirs(self.path("there"))
        command = Command(b, "receive", self.path("there"), "--from", a.id, "--count", "1")
        self.addCleanup(command.close)
        node, session, transfers = self.transfers(a)
        node.advertise("files")
        wait("the command is there", session.connected)
        self.assertEqual(transfers.send(paths, session.connected()[0]), [resources.STORED] * 3)
        self.assertEqual(command.end(), 0, command.heard)
        for name, bytes in data.items():
            self.assertEqual(self.read(f"there/{name}"), bytes)

        os.makedirs(self.path("back"))
        taken = []
        node, session, transfers = self.transfers(b, directory=self.path("back"), accept=taken.append)
        node.advertise("files")
        code, out, err = a.run("send", "--wait", "20", *paths, "b")
        self.assertEqual(code, 0, err)
        wait("it is over", lambda: taken[0].is_over)
        self.assertIsNone(taken[0].error)
        for name, bytes in data.items():
            self.assertEqual(self.read(f"back/{name}"), bytes)

    def test_a_name_that_is_taken_gets_a_number_and_none_is_hidden(self):
        a, b = self.daemons("a", "b")
        sender, _, address = self.pair(a, b, lambda incoming: None)
        self.file("in/cat.png", b"mine")
        self.assertEqual(sender.send([self.file("out/cat.png", b"theirs"), self.file("out/.profile", b"x")], address), [0, 0])
        self.assertEqual(sorted(os.listdir(self.path("in"))), ["_profile", "cat-2.png", "cat.png"])
        self.assertEqual((self.read("in/cat.png"), self.read("in/cat-2.png")), (b"mine", b"theirs"))

    def test_an_offer_is_declined_with_a_word(self):
        a, b = self.daemons("a", "b")
        sender, _, address = self.pair(a, b, lambda incoming: f"no {incoming.name}")
        with self.assertRaises(resources.Refused) as refused:
            sender.send([self.file("out/cat.png", b"x")], address)
        self.assertEqual(refused.exception.text, "no cat.png")
        self.assertEqual(os.listdir(self.path("in")), [])

    def test_after_a_break_the_rest_is_sent_without_another_question(self):
        relay, a, b = self.daemons("relay", "a", "b")
        taken, sent = [], []
        sender, session, address = self.pair(a, b, taken.append)
        data = os.urandom(24 * MEBIBYTE)
        path = self.file("out/big", data)
        original = resources.record

        def counted(kind, *fields):
            if kind == resources.BYTES:
                sent.append(len(fields[0]))
            return original(kind, *fields)

        resources.record = counted
        self.addCleanup(setattr, resources, "record", original)
        results = []
        thread = threading.Thread(target=lambda: results.append(sender.send([path], address)))
        thread.start()
        wait("a part is there", lambda: taken and taken[0].files and taken[0].files[0].received > 4 * MEBIBYTE, 30)
        relay.process.kill()
        relay.process.wait(10)
        wait("the member is away", lambda: address not in session.connected())
        relay.start()
        thread.join(90)
        self.assertEqual(results, [[resources.STORED]])
        self.assertEqual((len(taken), self.read("in/big")), (1, data))
        again = sum(sent) - len(data)
        print(f"after a break: {again} bytes sent again", flush=True)
        self.assertLess(again, MEBIBYTE)
        self.assertEqual(os.listdir(self.path("in")), ["big"])

    def test_a_member_that_breaks_the_rules_leaves_nothing(self):
        a, b = self.daemons("a", "b")
        taken = []
        sender, _, address = self.pair(a, b, taken.append)
        path = self.file("out/x", b"x" * 100_000)
        for name in ("../x", "a/b", "..", "a\nb", ""):
            with self.subTest(name), self.assertRaises(CausewayError):
                sender._attempt([(name.encode(), 1)], [path], address)
        # A changed sender sends more bytes than it has offered, which the receiver must refuse.
        original = resources.Transfers._send_file

        def more(self, stream, number, path, size, *held):
            original(self, stream, number, path, 100_000, *held)

        resources.Transfers._send_file = more
        self.addCleanup(setattr, resources.Transfers, "_send_file", original)
        with self.assertRaises(resources.Refused) as refused:
            sender._attempt([(b"y", 10)], [path], address)
        self.assertIn("more bytes than the file has", refused.exception.text)
        wait("its end is told", lambda: taken[-1].error)
        self.assertEqual(os.listdir(self.path("in")), [])


if __name__ == "__main__":
    unittest.main()
