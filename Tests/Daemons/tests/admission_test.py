"""Unauthenticated connections to a box, tested with the causeway binary.

Measures the processor time that these connections cost the box, and checks that a refused client receives the reason.
The openssl command makes the certificates."""
import os
import resource
import socket
import subprocess
import time
import unittest

from daemons import CLIENT_HELLO_PREFIX, DaemonsTest

HANDSHAKES_OF_STRANGERS, STREAMS_OF_ONE_ADDRESS = 24, 4
INTERNAL_ERROR = bytes([21, 3, 3, 0, 2, 2, 80])


class AdmissionTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.held = []
        self.box = self.daemon("box").start()

    def tearDown(self):
        for connection in self.held:
            connection.close()

    def connect(self, host, message=b""):
        """Connect to the box from the loopback address 127.2.0.`host`, and send `message`."""
        connection = socket.socket()
        connection.settimeout(5)
        connection.bind((f"127.2.0.{host}", 0))
        connection.connect(("127.0.0.1", self.box.port))
        connection.sendall(message)
        self.held.append(connection)
        return connection

    def load(self, seconds=1.0):
        """The share of `seconds` in which the box runs or is ready to run. Other load of the machine does not change
        it."""
        def busy():
            with open(f"/proc/{self.box.process.pid}/schedstat") as file:
                return sum(int(word) for word in file.read().split()[:2]) / 1e9
        before = busy()
        time.sleep(seconds)
        return (busy() - before) / seconds

    def openssl(self, words, **options):
        return subprocess.run(["openssl", *words.split()], cwd=self.root, capture_output=True, text=True, timeout=20,
                              **options)

    def test_a_half_closed_connection_that_waits_for_a_place_costs_nothing(self):
        for number in range(HANDSHAKES_OF_STRANGERS):
            self.connect(1 + number // STREAMS_OF_ONE_ADDRESS, CLIENT_HELLO_PREFIX)
        waiting = self.connect(100, CLIENT_HELLO_PREFIX)
        time.sleep(0.2)
        waiting.shutdown(socket.SHUT_WR)
        self.assertLess(self.load(), 0.1)

    def test_a_box_without_descriptors_rests_and_says_so_once(self):
        used = len(os.listdir(f"/proc/{self.box.process.pid}/fd"))
        resource.prlimit(self.box.process.pid, resource.RLIMIT_NOFILE, (used + 2, used + 2))
        for number in range(8):
            self.connect(1 + number)
        time.sleep(0.2)
        self.assertLess(self.load(), 0.1)
        for connection in self.held:
            connection.close()
        time.sleep(1.5)
        self.assertEqual(self.box.log("warning").count("cannot accept connections"), 1)
        # The box accepts connections again. A client that does not send TLS receives an alert, as before the limit was
        # reached.
        self.assertEqual(self.connect(50, b"GET / HTTP/1.1").recv(7), INTERNAL_ERROR)

    def test_who_is_refused_reads_why_although_it_was_still_talking(self):
        stranger = self.connect(1, b"GET / HTTP/1.1\r\n" + b"x" * 5000)
        self.assertEqual(stranger.recv(100), INTERNAL_ERROR)
        self.assertEqual(stranger.recv(100), b"")

    def test_a_client_is_told_what_its_certificate_lacks(self):
        made = self.openssl("req -x509 -newkey rsa:2048 -nodes -keyout rsa.key -out rsa.pem -days 30 -subj /CN=rsa")
        self.assertEqual(made.returncode, 0, made.stderr)
        for options, alert in (("-tls1_3", 116), ("-tls1_3 -cert rsa.pem -key rsa.key", 116),
                               ("-tls1_2", 40), ("-tls1_2 -cert rsa.pem -key rsa.key", 40)):
            with self.subTest(options):
                # The box ends the connection while data of the client is in flight. The client must receive the alert
                # nevertheless.
                done = self.openssl(f"s_client -connect 127.0.0.1:{self.box.port} -ign_eof {options}", input="hello\n" * 1000)
                self.assertIn(f"SSL alert number {alert}", done.stderr)


if __name__ == "__main__":
    unittest.main()
