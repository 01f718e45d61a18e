#!/usr/bin/env python3
"""Invented nodes behind one link want all places for sessions, and honest ones find theirs: places_test.py BINARY"""
import threading
import time
import unittest

from branch import Branch, invent
from daemons import DaemonsTest, wait
from member import Member

HOSTILE_ADDRESS = "127.9.0.1"


class PlacesTest(DaemonsTest):
    def branch(self, box, count, stops):
        """Nodes behind a hostile member, which a thread serves until the end of the test."""
        identities = invent(count, bytes.fromhex(box.id), stops)
        branch = Branch(Member(box.port, HOSTILE_ADDRESS), identities, stops)
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
        """An answer within five seconds to the first message, which opens the session."""
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
        branch = self.branch(box, 64, stops=False)
        wait("most of them have a session", lambda: branch.open >= 60, 60)
        self.pings(ann, box)
        self.pings(box, bob)
        wait("one of them was told that it gave way", lambda: len(branch.refused) > 0)


if __name__ == "__main__":
    unittest.main(argv=["places_test.py"], verbosity=2)
