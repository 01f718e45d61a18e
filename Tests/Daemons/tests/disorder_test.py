"""Two applications exchange data while other clients send requests in random order (`disorder`)."""
import random
import subprocess
import sys
import threading
import time
import unittest

import disorder
from causeway import IncomingStream, Member, Node, Outcome, Result, State
from daemons import DaemonsTest, wait
from local_api import following, path

SECONDS, SEED = 8, 1
RESIDENT_BYTES_MAX = 16 << 20


class DisorderTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.a = self.daemon("a").start()
        self.b = self.daemon("b", self.a).start()

    def talkers(self):
        """Two applications in a session, one on each box. Returns both sessions and the address of the second
        application."""
        ours, theirs = (Node.connect("talker", path(daemon)) for daemon in (self.a, self.b))
        for node in (ours, theirs):
            self.addCleanup(node.close)
        service = theirs.advertise("talk")
        session, there = ours.open_session("talk"), theirs.open_session("talk")
        wait("both boxes are peers", lambda: self.b.id in {peer["id"] for peer in self.a.status["peers"]})
        sent = session.invite(service.address)
        service.next(timeout=20).accept(there)
        self.assertEqual(sent.wait(20)[0], Outcome.CONNECTED)
        following(there, Member, state=State.CONNECTED)
        return session, there, service.address

    def stream(self, session, there, to, number):
        """Send a stream to the second application, and check that it arrives complete."""
        data, came = random.Random(number).randbytes(500_000), []
        out = session.open_stream(f"s{number}", to)
        into = following(there, IncomingStream, name=f"s{number}")
        reader = threading.Thread(target=lambda: came.extend(into), daemon=True)
        reader.start()
        out.write(data, timeout=20)
        out.finish(timeout=20)
        reader.join(20)
        self.assertEqual(b"".join(came), data)

    def test_two_applications_talk_on_whatever_others_ask_for(self):
        session, there, to = self.talkers()
        others = [subprocess.Popen([sys.executable, disorder.__file__, path(daemon), str(seed), str(SECONDS)],
                                   stdout=subprocess.PIPE, text=True)
                  for seed, daemon in enumerate((self.a, self.b), SEED)]
        self.addCleanup(lambda: [other.kill() for other in others])
        end, number = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            number += 1
            self.stream(session, there, to, number)
            self.assertEqual(session.send(bytes([number % 256]), timeout=20), {to: Result.DELIVERED})
        # The random clients only read in their last two seconds, so the daemons should be nearly idle.
        time.sleep(0.5)
        before = [daemon.processor_seconds() for daemon in (self.a, self.b)]
        time.sleep(1)
        for daemon, former in zip((self.a, self.b), before):
            self.assertLess(daemon.processor_seconds() - former, 0.2)
            self.assertLess(daemon.resident_bytes(), RESIDENT_BYTES_MAX)
        for other in others:
            self.assertIn("wishes", other.communicate(timeout=20)[0])
        self.stream(session, there, to, 0)


if __name__ == "__main__":
    unittest.main()
