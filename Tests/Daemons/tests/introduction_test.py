"""Applications that connect by each other's addresses, without a service."""
import tempfile
import time
import unittest

from causeway import Address, CausewayError, Code, Member, Node, Outcome, Result, State
from daemons import Daemon
from local_api import following, path


class IntroductionTest(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory(prefix="causeway-")
        self.addCleanup(root.cleanup)
        self.a = Daemon(root.name, "a")
        self.b = Daemon(root.name, "b", [self.a])
        for daemon in (self.a, self.b):
            self.addCleanup(daemon.stop)
            daemon.start()

    def session(self, daemon, name):
        node = Node.connect(name, path(daemon))
        self.addCleanup(node.close)
        return node.open_session("story")

    def test_a_box_that_is_killed_and_comes_back_leaves_no_ghost(self):
        ours, theirs = self.session(self.a, "ghost"), self.session(self.b, "ghost")
        first = ours.connect(theirs.address)
        theirs.connect(ours.address)
        self.assertEqual(first.wait(20)[0], Outcome.CONNECTED)
        self.b.process.kill()
        self.b.process.wait(10)
        start = time.monotonic()
        self.b.start()
        left = following(ours, Member, state=State.LEFT, address=theirs.address)
        print(f"a box that was killed: its member is gone {time.monotonic() - start:.2f} s after it starts again: ", end="")
        self.assertEqual(left.reason, 2)
        # The second application connects again and has the same address as before.
        again = self.session(self.b, "ghost")
        self.assertEqual(again.address, theirs.address)
        second = ours.connect(again.address)
        again.connect(ours.address)
        self.assertEqual(second.wait(20)[0], Outcome.CONNECTED)

    def test_two_that_know_each_others_addresses_connect_without_a_service(self):
        ours, theirs = self.session(self.a, "introduced"), self.session(self.b, "introduced")
        # The application at the other address is not asked. The attempt times out, because that application does not
        # connect itself.
        first = ours.connect(theirs.address, timeout=2)
        self.assertEqual(first.wait(20)[0], Outcome.TIMED_OUT)
        first = ours.connect(theirs.address)
        with self.assertRaises(CausewayError) as refused:
            ours.connect(theirs.address)
        self.assertEqual(refused.exception.code, Code.BUSY)
        time.sleep(1)
        second = theirs.connect(ours.address)
        self.assertEqual([first.wait(20)[0], second.wait(20)[0]], [Outcome.CONNECTED, Outcome.CONNECTED])
        self.assertEqual(ours.send(b"hello", [theirs.address], timeout=20), {theirs.address: Result.DELIVERED})
        third = ours.connect(Address(theirs.address.node, theirs.address.endpoint ^ 1))
        third.cancel()
        self.assertEqual(third.wait(20)[0], Outcome.CANCELLED)


if __name__ == "__main__":
    unittest.main()
