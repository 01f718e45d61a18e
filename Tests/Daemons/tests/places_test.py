"""Invented nodes behind one link try to occupy all slots for sealed sessions, and honest nodes still get slots."""
# seconds: 80
import struct
import threading
import time
import unittest

from branch import Branch, invent
from client import ADVERTISEMENT, INTERACTIVE, SEALED, SEALED_FLAG, TOPOLOGY, frame
from conversation import HANDSHAKE
from daemons import DaemonsTest, wait
from member import PING, PONG, Key, Member, advertisement, topology

HOSTILE_ADDRESS, OTHER_HOSTILE_ADDRESS = "127.9.0.1", "127.9.0.2"
# A hub is an invented node with many links. The advertisement of a hub lists the member and as many nodes as fit.
HUBS, BEHIND_HUB = 3, 60
REQUESTS_A_SECOND = 1_000


class PlacesTest(DaemonsTest):
    def branch(self, box, count, stops, address=HOSTILE_ADDRESS):
        """Start a branch: invented nodes behind a hostile member. A thread serves them until the end of the test."""
        identities = invent(count, bytes.fromhex(box.id), stops)
        branch = Branch(Member(box.port, address), identities, stops)
        self.addCleanup(branch.member.stream.close)
        branch.announce()
        branch.begin()
        ended = threading.Event()

        def serve():
            while not ended.is_set():
                branch.serve(0.05)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ended.set)
        return branch

    def linked(self):
        box = self.daemon("box").start()
        others = [self.daemon(name, box).start() for name in ("ann", "bob")]
        wait("they are linked", lambda: box.neighbours() == ["ann", "bob"])
        return box, others

    def pings(self, one, other):
        """Check that a first message from `one` to `other`, which opens the session, is answered within five
        seconds."""
        start = time.monotonic()
        code, out, err = one.run("ping", other.id, "--count", "1")
        self.assertEqual(code, 0, out + err)
        self.assertLess(time.monotonic() - start, 5)

    def test_sixty_nodes_that_begin_a_handshake_and_stop(self):
        box, (ann, bob) = self.linked()
        self.branch(box, 60, stops=True)
        self.pings(ann, box)
        self.pings(box, bob)
        self.pings(ann, bob)
        for one, other in ((ann, box), (box, bob)):
            self.assertEqual(one.run("explain", other.id)[0], 0)

    def test_sixty_four_nodes_with_sessions(self):
        box, (ann, bob) = self.linked()
        branch = self.branch(box, 72, stops=False)
        wait("most of them have a session", lambda: branch.open >= 60, 60)
        self.pings(ann, box)
        self.pings(box, bob)
        # A new session first replaces a session with a node that has not proven its key, without a notice to that node.
        # There are at most twelve sessions with unproven nodes, so a later session replaces one that is open.
        for number in range(13):
            if branch.refused:
                break
            late = self.daemon(f"late {number}", box).start()
            wait("it is linked", lambda: late.name in box.neighbours())
            self.pings(late, box)
        self.assertGreater(len(branch.refused), 0, "one with a session is told that it gave way")

    def test_nodes_that_had_sessions_stop_in_the_next_handshake(self):
        box, (ann, _) = self.linked()
        branches = [self.branch(box, 16, False, each) for each in (HOSTILE_ADDRESS, OTHER_HOSTILE_ADDRESS)]
        wait("they have sessions", lambda: all(each.open == 16 for each in branches), 60)
        for each in branches:
            each.stop()
        time.sleep(1)
        # This node is new to the box, so the box has no session with the node and no proof of its key.
        late = self.daemon("late", box).start()
        wait("it is linked", lambda: "late" in box.neighbours())
        self.pings(late, box)
        self.pings(box, ann)

    def test_requests_in_many_names(self):
        """Requests for sessions, and records that nobody can open, from invented nodes. Their ids are above the box's,
        so the box is the DTLS client and must begin each handshake."""
        box, (ann, bob) = self.linked()
        flood = Requests(box)
        self.addCleanup(flood.stop)
        time.sleep(4)
        self.pings(ann, box)
        self.pings(box, bob)
        self.assertEqual(box.neighbours().count("ann") + box.neighbours().count("bob"), 2)
        sent = flood.sent
        self.assertGreater(sent, 1_000)
        # The box allows a link 128 handshakes at once, and ten per second after these.
        wait("all but these are refused", lambda: box.status["box"]["refusals"].get("too-many", 0) > sent - 128 - 10 * 20)


class Requests:
    """A hostile member, whose invented nodes request sessions from the box. It runs in a thread."""

    def __init__(self, box):
        self.member, self.sent, self.box_epoch = Member(box.port, HOSTILE_ADDRESS), 0, None
        self.names = self._announce()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._ended.set()
        self._thread.join()
        self.member.stream.close()

    def _announce(self):
        me, hubs, names = self.member, [Key() for _ in range(HUBS)], []
        while len(names) < HUBS * BEHIND_HUB:
            key = Key()
            if key.id > me.box:
                names.append(key)
        self._tell(me.identity, [me.box, *(hub.id for hub in hubs)])
        for number, hub in enumerate(hubs):
            part = names[number::HUBS]
            self._tell(hub, [me.identity.id, *(key.id for key in part)])
            for key in part:
                self._tell(key, [hub.id])
        end = time.monotonic() + 10
        while self.box_epoch is None:
            assert time.monotonic() < end, "the box does not advertise its links"
            self._read(0.1)
        return names

    def _tell(self, who, neighbours):
        self.member.stream.send(advertisement(who, TOPOLOGY, 1, topology(neighbours)))
        # This pause is as long as the box takes to verify one advertisement, by its limit for one link.
        self._read(0.01)

    def _read(self, seconds):
        me = self.member
        for each, _ in me.stream.receive(seconds):
            if each[1] == PING:
                me.stream.send(frame(PONG, each[48:], me.identity.id))
            elif each[1] == ADVERTISEMENT and each[24:40] == me.box and each[48] == TOPOLOGY:
                self.box_epoch = each[52:60]

    def _run(self):
        start = time.monotonic()
        while not self._ended.is_set():
            due = min(int((time.monotonic() - start) * REQUESTS_A_SECOND) - self.sent, 100)
            if due > 0:
                self.member.stream.send(b"".join(self._next() for _ in range(due)))
            self._read(0.01)

    def _next(self):
        self.sent += 1
        key, number = self.names[self.sent % len(self.names)], struct.pack(">Q", self.sent)
        if self.sent // len(self.names) % 2:
            return frame(SEALED, bytes([23, 254, 253]) + bytes(57), key.id, number, self.member.box, SEALED_FLAG, INTERACTIVE)
        return frame(HANDSHAKE, self.box_epoch + key.epoch, key.id, number, self.member.box, 0, INTERACTIVE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
