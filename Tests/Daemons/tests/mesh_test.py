"""Neighbours that die, and nodes that lose their stored state.

Real daemons run on the loopback interface."""
# seconds: 70
import os
import shutil
import signal
import time
import unittest

from daemons import DaemonsTest, wait
from talk import Talk


class MeshTest(DaemonsTest):
    def test_a_neighbour_that_stands_still_is_soon_given_up(self):
        box = self.daemon("box").start()
        peer = self.daemon("peer", box).start()
        wait("they are linked", lambda: box.neighbours() == ["peer"])
        time.sleep(3)
        os.kill(peer.process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            wait("it is given up", lambda: box.neighbours() == [])
            # A silent link is closed after 2.9 s. The remaining time is for a busy machine.
            self.assertLess(time.monotonic() - stopped, 7)
        finally:
            os.kill(peer.process.pid, signal.SIGCONT)
        wait("it is back", lambda: box.neighbours() == ["peer"])

    def test_a_node_that_lost_its_epoch_is_a_peer_again_at_once(self):
        box = self.daemon("box").start()
        far = self.daemon("far", box).start()
        peer = self.daemon("peer", box)
        for _ in range(3):
            peer.start()
            wait("it is a peer", lambda: "peer" in far.run("peers")[1])
            former = peer.status["box"]["epoch"]
            peer.stop()
        for name in os.listdir(peer.state):
            if name.startswith("state"):
                os.unlink(f"{peer.state}/{name}")
        peer.start()
        wait("its epoch is a later one", lambda: peer.status["box"]["epoch"] > former, 5)
        talk = Talk(peer, far)
        self.addCleanup(talk.close)
        talk.send_many(10, 100)
        raised = peer.status["box"]["epoch"]
        self.assertIn("peers know a later epoch", peer.log())
        peer.stop()
        peer.start()
        self.assertGreater(peer.status["box"]["epoch"] >> 32, raised >> 32)

    def test_a_copied_disk_beside_a_box_is_told(self):
        box = self.daemon("box").start()
        first = self.daemon("first", box)
        first.identity("new")
        second = self.daemon("second", box)
        shutil.copytree(first.state, second.state)
        first.start()
        second.start()
        told, outs = "reports a link to another node that uses this node's key", []

        def is_told():
            # Only one of the two daemons with this key detects the copy. The second daemon with the key stays linked
            # and cannot detect the copy.
            outs[:] = [each for each in (first, second) if told in each.log("error")]
            return outs

        wait("one of the two is told", is_told, 40)
        (out,) = outs
        self.assertIn(box.id[:8], out.log("error"))
        code, text, _ = out.run("explain", box.id)
        self.assertEqual(code, 1)
        self.assertIn("another node that has this box's own key", " ".join(text.split()))
        self.assertIn("causeway identity new --replace", " ".join(text.split()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
