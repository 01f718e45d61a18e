"""A hostile member beside honest nodes, all with real daemons. The measurement `hostile` prints its cost."""
# seconds: 55
import tempfile
import unittest

from attacks import ATTACKS, Process, join, recover, stage


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="causeway-")
        cls.addClassCleanup(directory.cleanup)
        cls.network, cls.applications, cls.newcomer, cls.before = stage(directory.name)
        cls.addClassCleanup(cls.network.stop)
        cls.addClassCleanup(cls.applications.stop)

    def suffer(self, attack):
        """Check that during the attack messages arrive, and a new node becomes everybody's peer and joins sessions.
        Check that after the attack the state is as before."""
        process = Process(self.network, attack, *ATTACKS[attack][1:])
        self.addCleanup(self.newcomer.stop)
        self.addCleanup(process.stop)
        self.network.talk.send_many(50, 1000)
        join(self.network, self.newcomer)
        self.applications.visit(self.newcomer)
        self.network.talk.send_many(50, 1000)
        process.stop()
        recover(self.network, self.applications, self.newcomer, self.before)

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

    def test_session_tables_that_cost(self):
        self.suffer("tables")

    def test_invitations_that_stay(self):
        self.suffer("invitations")

    def test_accepted_transfers_that_stall(self):
        self.suffer("stalls")


if __name__ == "__main__":
    unittest.main(verbosity=2)
