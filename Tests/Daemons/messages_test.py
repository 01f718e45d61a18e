#!/usr/bin/env python3
"""What an application may expect, by the causeway binary: messages_test.py BINARY

Three real daemons on the loopback interface, a – box – b, and an application at either end."""
import struct
import tempfile
import time
import unittest

from daemons import BULK, INTERACTIVE, KIND, UNRELIABLE, Client, Daemon

DELIVERED, REFUSED, SENT, DROPPED = 0, 5, 7, 8


class MessagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="causeway-")
        box = Daemon(cls.root.name, "box")
        a, b = (Daemon(cls.root.name, name, [box], relay=False) for name in "ab")
        cls.daemons = [daemon.start() for daemon in (box, a, b)]
        cls.sender, cls.reader = Client(a, kinds=1 << KIND), Client(b, kinds=1 << KIND)
        cls.to = cls.sender.wait_peer("b")

    @classmethod
    def tearDownClass(cls):
        for daemon in cls.daemons:
            daemon.stop()
        cls.root.cleanup()

    def send(self, message, lane, request=1):
        """The outcome of one send."""
        self.sender.send(self.to, message, lane, request)
        while True:
            packet = self.sender.next()
            if packet[:1] == b"C" and packet[1:5] == struct.pack(">I", request):
                return packet[5]

    def read(self):
        """The next message: its lane and its bytes."""
        while True:
            packet = self.reader.next()
            if packet[:1] == b"M":
                return packet[18], packet[19:]

    def test_a_reliable_message_arrives_in_its_lane(self):
        for lane in (INTERACTIVE, BULK):
            self.assertEqual(self.send(b"hello", lane), DELIVERED)
            self.assertEqual(self.read(), (lane, b"hello"))

    def test_unreliable_messages_arrive_whole_each_at_most_once(self):
        # Until something is sealed with the peer they are dropped, and sealing begins.
        end = time.monotonic() + 10
        while self.send(b"?", UNRELIABLE) == DROPPED:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(self.read(), (UNRELIABLE, b"?"))
        for number in range(100):
            self.assertIn(self.send(b"%03d" % number * 300, UNRELIABLE, request=number), (SENT, DROPPED))
        numbers = []
        self.send(b"end", INTERACTIVE)
        while (message := self.read()) != (INTERACTIVE, b"end"):
            self.assertEqual(message[0], UNRELIABLE)
            self.assertEqual(message[1], message[1][:3] * 300)
            numbers.append(int(message[1][:3]))
        self.assertEqual(len(numbers), len(set(numbers)))
        self.assertGreater(len(numbers), 50)

    def test_an_unreliable_message_that_fits_no_frame_is_refused(self):
        self.assertEqual(self.send(bytes(20_000), UNRELIABLE), REFUSED)

    def test_an_unknown_lane_is_refused(self):
        self.assertEqual(self.send(b"hello", 3), REFUSED)


if __name__ == "__main__":
    unittest.main()
