"""Ten real daemons on one LAN. Needs root. The measurement `hall` has larger networks."""
# seconds: 45
import tempfile
import unittest

from lan import Attendee, begin, follow, make_network, whole

NODES = 10
LINKS_MAX = 8
WAIT_SECONDS = 60


class HallTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="causeway-")
        self.attendees = [Attendee(self.folder.name, number + 1) for number in range(NODES)]

    def tearDown(self):
        for attendee in self.attendees:
            attendee.stop()
        self.folder.cleanup()

    def becomes_whole(self, attendees):
        return follow(attendees, lambda: whole(attendees, len(attendees) - 1), WAIT_SECONDS) is not None

    def test_everybody_sees_everybody_over_few_links_also_after_half_of_them_left_and_came_back(self):
        begin(self.attendees)
        self.assertTrue(self.becomes_whole(self.attendees))
        # Links that are surplus after the start are closed after 10 s.
        follow(self.attendees, lambda: False, 15)
        self.assertLessEqual(max(len(attendee.neighbours()) for attendee in self.attendees), LINKS_MAX)
        leavers, stayers = self.attendees[:NODES // 2], self.attendees[NODES // 2:]
        for attendee in leavers:
            attendee.stop()
        self.assertTrue(self.becomes_whole(stayers))
        begin(leavers)
        self.assertTrue(self.becomes_whole(self.attendees))


if __name__ == "__main__":
    make_network()
    unittest.main(verbosity=2)
