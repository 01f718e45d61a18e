"""Applications that form sessions by auto-join, tested with the causeway binary.

Two real daemons run on the loopback interface. Their clients are written from docs/local-api.md
(Examples/python/causeway.py)."""
import threading
import unittest

from causeway import CausewayError, Message, Node, Outcome, Result, Room
from daemons import DaemonsTest, wait
from local_api import path


class GatheringTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.a = self.daemon("a").start()
        self.b = self.daemon("b", self.a).start()

    def gather(self, count, type):
        """Open `count` applications with auto-join, alternately on both daemons. Returns their sessions and
        services."""
        services, sessions = [], []
        for number in range(count):
            client = Node.connect(f"{type} {number}", path((self.a, self.b)[number % 2]))
            self.addCleanup(client.close)
            sessions.append(client.open_session(type, 64))
            sessions[-1].gather()
            services.append(client.advertise(type, {"name": str(number)}))
        for session in sessions:
            wait("all are connected", lambda: len(session.connected()) == count - 1, 15)
        self.assertEqual(len({session.id for session in sessions}), 1)
        return sessions, services

    def hear(self, sessions):
        """Let every member send one message to all others. If a member's buffer has no space, send it when the space is
        reported."""
        came = [[] for _ in sessions]

        def next_room(number):
            """Read one event. Returns the address of a `Room` event. Records a message and returns None for it."""
            event = sessions[number].next(timeout=20)
            if isinstance(event, Message):
                came[number].append(event.data[0])
            return event.address if isinstance(event, Room) else None

        for number, session in enumerate(sessions):
            results = session.send(bytes([number]), timeout=20)
            while Result.NO_ROOM in results.values():
                address = next_room(number)
                if results.get(address) == Result.NO_ROOM:
                    results |= session.send(bytes([number]), [address], timeout=20)
            self.assertEqual(list(results.values()), [Result.DELIVERED] * (len(sessions) - 1))
        for number in range(len(sessions)):
            while len(came[number]) < len(sessions) - 1:
                next_room(number)
            self.assertEqual(sorted(came[number]), [other for other in range(len(sessions)) if other != number])

    def test_three_who_gather_one_type_come_together_and_nobody_is_asked(self):
        sessions, services = self.gather(3, "three")
        self.hear(sessions)
        for service in services:
            with self.assertRaises(CausewayError):
                service.next(timeout=0.01)

    def test_who_offers_nothing_and_invites_those_that_gather_comes_to_them_from_either_box(self):
        sessions, services = self.gather(3, "nothing")
        for number, daemon in enumerate((self.a, self.b)):
            client = Node.connect(f"guest {number}", path(daemon))
            self.addCleanup(client.close)
            guest, ended = client.open_session("nothing", 64), []
            # The invitation waits in its own thread. If the daemon does not answer, the test fails instead of waiting
            # forever.
            threading.Thread(target=lambda: ended.append(guest.invite(services[0].address).wait(20)), daemon=True).start()
            wait("it is accepted", lambda: ended, 15)
            self.assertEqual(ended, [(Outcome.CONNECTED, "")])
            wait("it is connected with all", lambda: len(guest.connected()) == len(sessions) + number, 15)

    def test_sixteen_who_gather_at_once_are_one_session_in_which_each_hears_all(self):
        sessions, _ = self.gather(16, "sixteen")
        self.hear(sessions)


if __name__ == "__main__":
    unittest.main()
