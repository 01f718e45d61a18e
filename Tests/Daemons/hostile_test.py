#!/usr/bin/env python3
"""A hostile member beside honest nodes, real daemons all of them: hostile_test.py BINARY. For figures see hostile.py."""
import tempfile
import unittest

from daemons import Daemon, wait
from hostile import ATTACKS, IS_SEALED, WAIT_SECONDS, Process, join, state
from relay import Network


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="causeway-")
        cls.addClassCleanup(directory.cleanup)
        cls.network = Network(directory.name, IS_SEALED)
        cls.addClassCleanup(cls.network.stop)
        cls.newcomer = Daemon(directory.name, "newcomer", [cls.network.box], relay=False)
        cls.before = state(cls.network, cls.newcomer)

    def suffer(self, attack):
        """Messages arrive and a newcomer is everybody's peer while the attack lasts; then all is as before."""
        process = Process(self.network, attack, *ATTACKS[attack][1:])
        self.addCleanup(self.newcomer.stop)
        self.addCleanup(process.stop)
        self.network.talk.send_many(50, 1000)
        join(self.network, self.newcomer)
        self.network.talk.send_many(50, 1000)
        process.stop()
        wait("all is as before", lambda: state(self.network, self.newcomer) == self.before, WAIT_SECONDS)

    def test_frames_with_anothers_id(self):
        self.suffer("spoofed")

    def test_advertisements_with_wrong_signatures(self):
        self.suffer("forged")

    def test_advertisements_of_invented_nodes(self):
        self.suffer("invented")

    def test_advertisements_of_invented_nodes_with_routes(self):
        self.suffer("subtree")

    def test_frames_of_many_invented_sources(self):
        self.suffer("flows")

    def test_old_advertisements_without_end(self):
        self.suffer("replays")

    def test_sixty_four_keys_of_one_address(self):
        self.suffer("keys")

    def test_invented_nodes_that_begin_a_session_and_stop(self):
        self.suffer("handshakes")

    def test_invented_nodes_with_sessions(self):
        self.suffer("sessions")


if __name__ == "__main__":
    unittest.main(argv=["hostile_test.py"], verbosity=2)
