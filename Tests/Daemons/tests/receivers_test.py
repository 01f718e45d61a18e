"""Offers that stall at a receiver, and several receivers on one box, with real daemons."""
# seconds: 105
import os
import pathlib
import re
import tempfile
import threading
import time
import unittest
import zlib

from daemons import Daemon, wait
from people import PeopleTest
from causeway import CausewayError, Outcome, StreamError
from stranger import STORED, Offer, leaf


class ReceiversTest(PeopleTest):
    def setUp(self):
        self.out, self.into = (pathlib.Path(tempfile.mkdtemp(dir=self.root.name)) for _ in range(2))

    @property
    def type(self):
        return f"t{zlib.crc32(self._testMethodName.encode())}"

    def file(self, name, size=100_000):
        path = self.out / name
        path.write_bytes(os.urandom(size))
        return path

    def receive(self, into, *words, type=None, senders=None):
        wanted = [word for sender in senders or [self.a_id] for word in ("--from", sender)]
        return self.command(self.b, "receive", into, *wanted, "--type", type or self.type, *words)

    def send(self, path, daemon=None, type=None):
        return self.command(daemon or self.a, "send", path, "bob", "--type", type or self.type, "--wait", "60")

    def test_two_receivers_on_one_box_each_get_what_is_theirs(self):
        types = [f"{self.type[:13]}-{letter}" for letter in "ab"]
        folders = [self.into / letter for letter in "ab"]
        for folder in folders:
            folder.mkdir()
        receivers = [self.receive(folder, "--count", "1", type=type) for folder, type in zip(folders, types)]
        files = [self.file(name, 2_000_000) for name in ("one", "two")]
        senders = [self.send(path, type=type) for path, type in zip(files, types)]
        for command in senders + receivers:
            self.assertEqual(command.end(60), 0, command.heard)
        for folder, path in zip(folders, files):
            self.assertEqual([(there.name, there.read_bytes()) for there in folder.iterdir()], [(path.name, path.read_bytes())])

    def test_a_second_receiver_of_one_type_is_refused_and_the_first_one_works_on(self):
        first = self.receive(self.into, "--count", "1")
        wait("it is there", lambda: self.type in self.a.run("browse", "--for", "1")[1])
        second = self.receive(self.into)
        self.assertNotEqual(second.end(), 0, second.heard)
        self.assertTrue(any("--name" in line for line in second.heard), second.heard)
        sender = self.send(self.file("x"))
        self.assertEqual((sender.end(60), first.end(60)), (0, 0), (sender.heard, first.heard))

    def test_as_many_senders_of_one_box_as_there_are_places_all_come_through(self):
        receiver = self.receive(self.into, "--count", "15")
        wait("it is there", lambda: self.type in self.a.run("browse", "--for", "1")[1])
        files = [self.file(f"f{number}", 3_000_000) for number in range(15)]
        senders = [self.send(path) for path in files]
        for command in senders:
            self.assertEqual(command.end(120), 0, command.heard)
        self.assertEqual(receiver.end(60), 0, receiver.heard)
        for path in files:
            self.assertEqual((self.into / path.name).read_bytes(), path.read_bytes())

    def test_offers_that_stall_keep_nobody_else_out(self):
        carol = Daemon(self.root.name, "carol", [self.b])
        self.addCleanup(carol.stop)
        carol.start()
        self.receive(self.into, senders=[self.a_id, carol.id])
        wait("it is there", lambda: self.type in carol.run("browse", "--for", "1")[1])
        stalled = []
        for number in range(9):
            try:
                stalled.append(Offer(self.application(self.a, f"stalls {number}"), self.type, f"f{number}", [f"f{number}"], 3))
            except Exception:                       # the limit of offers from one box is reached
                break
        self.assertGreaterEqual(len(stalled), 3)
        sender = self.send(self.file("x"), daemon=carol)
        self.assertEqual(sender.end(60), 0, sender.heard)
        self.assertEqual((self.into / "x").read_bytes(), (self.out / "x").read_bytes())

    def another(self, name):
        daemon = Daemon(self.root.name, name, [self.b])
        self.addCleanup(daemon.stop)
        daemon.start()
        return daemon

    def stall(self, daemon, letter):
        """Let one member of a session occupy all transfer slots that it can get. It offers files of three bytes, which
        the receiver accepts, and sends none of the bytes."""
        node, offers = self.application(daemon, f"stalls {letter}"), []
        for number in range(15):
            try:
                name = f"{letter}{number}"
                offer = Offer(node, self.type, name, [name], 3, before=offers[0] if offers else None)
                offer.send_manifest()
                offers.append(offer)
            except (AssertionError, CausewayError, StreamError):    # there is no slot for this offer
                break
        return offers

    def test_one_member_that_stalls_what_it_may_keeps_no_other_one_out(self):
        carol = self.another("carol")
        receiver = self.receive(self.into, senders=[self.a_id, carol.id])
        wait("it is there", lambda: self.type in carol.run("browse", "--for", "1")[1])
        self.assertGreaterEqual(len(self.stall(self.a, "a")), 8)
        begun = time.monotonic()
        sender = self.send(self.file("x"), daemon=carol)
        self.assertEqual(sender.end(60), 0, sender.heard)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual((self.into / "x").read_bytes(), (self.out / "x").read_bytes())
        self.assertIsNone(receiver.process.poll())

    def test_a_transfer_that_gave_its_place_away_goes_on_when_it_comes_again(self):
        carol, dave = self.another("carol"), self.another("dave")
        self.receive(self.into, senders=[self.a_id, carol.id, dave.id])
        for daemon in (carol, dave):
            wait("it is there", lambda: self.type in daemon.run("browse", "--for", "1")[1])
        stalled = [self.stall(self.a, "a"), self.stall(carol, "c")]
        self.assertEqual(sum(map(len, stalled)), 15, "all places")
        sender = self.send(self.file("x"), daemon=dave)
        self.assertEqual(sender.end(60), 0, sender.heard)
        data, again = b"abc", []
        for letter, offers in zip("ac", stalled):
            for number, offer in enumerate(offers):
                try:
                    self.assertEqual(offer.send_bytes(data, leaf(data)), STORED)
                    offer.stream.finish(20)
                except (AssertionError, StreamError):
                    again.append((offer, f"{letter}{number}"))
        self.assertEqual(len(again), 1, "one made place for dave's")
        offer, name = again[0]
        offer = Offer(offer.session._node, self.type, name, [name], 3, before=offer)
        self.assertEqual(offer.send_file(data, leaf(data)), STORED)
        offer.stream.finish(20)
        there = [path for path in self.into.iterdir() if path.name != "x" and not path.name.startswith(".")]
        self.assertEqual([path.read_bytes() for path in there], 15 * [data])

    def test_invitations_that_are_declined_again_and_again_are_one_line(self):
        carol = self.another("carol")
        receiver = self.receive(self.into)
        wait("it is there", lambda: self.type in carol.run("browse", "--for", "1")[1])
        node, outcomes = self.application(carol, "insists"), []
        address, end = self.address(node, self.type), time.monotonic() + 3
        session = node.open_session(self.type)
        while time.monotonic() < end:
            outcomes.append(session.invite(address).wait(20)[0])
        declined = outcomes.count(Outcome.DECLINED)
        print(f"{len(outcomes)} invitations, {declined} declined, {len(receiver.heard)} lines", flush=True)
        self.assertEqual(sum("was not accepted" in line for line in receiver.heard), 1, receiver.heard[:9])
        self.assertLess(declined, 20)

    def test_the_greatest_manifests_wait_until_there_is_memory_for_them(self):
        carol = Daemon(self.root.name, "carol", [self.b])
        self.addCleanup(carol.stop)
        carol.start()
        receiver = self.receive(self.into, senders=[self.a_id, carol.id])
        wait("it is there", lambda: self.type in carol.run("browse", "--for", "1")[1])
        offers = []
        for number in range(6):
            node = self.application((self.a, carol)[number % 2], f"sender {number}")
            offers.append(Offer(node, self.type, f"d{number}", [], 0, files=65_000))
            if number < 4:
                offers[-1].send_manifest()
        said = [threading.Thread(target=offer.send_manifest, daemon=True) for offer in offers[4:]]
        for thread in said:
            thread.start()
        time.sleep(2)
        self.assertTrue(all(thread.is_alive() for thread in said), "they wait")
        for offer, thread in zip(offers, said):
            offer.stream.reset()
            thread.join(60)
            self.assertFalse(thread.is_alive())
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{receiver.process.pid}/status").read_text())[1])
        print(f"receiver's peak: {peak} kB", flush=True)
        self.assertLess(peak, 128 << 10, "MemoryMax of its unit")


if __name__ == "__main__":
    unittest.main()
