#!/usr/bin/env python3
"""The generator of the benchmarks, with a real box, the hub, and relays that violate the protocol: generator_test.py
BINARY"""
import pathlib
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Daemons/support"))

from daemons import DaemonsTest, is_free, wait
from workshop import compile_programs

MARKER, HEADER_BYTES, HEAD_BYTES, RECORD_HEADER_BYTES = 0x81, 48, 72, 5
HUB_DATA, HUB_HEADER_BYTES = 0, 6


class Relay(threading.Thread):
    """Forwards bytes from a client to a port. The bytes from the port are passed through `change` first."""

    def __init__(self, port, change):
        super().__init__(daemon=True)
        self.listener, self.to, self.change = socket.create_server(("127.0.0.1", 0)), port, change
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.to))
            for pair in ((near, far, bytes), (far, near, self.change())):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    @staticmethod
    def pass_on(source, target, change):
        try:
            while data := source.recv(65_536):
                target.sendall(change(data))
        except OSError:
            pass                    # the connection in the other direction has ended
        target.close()


class Units:
    """Splits a box's output into TLS records and sealed frames, and changes the header of the third sealed frame."""

    def __init__(self):
        self.bytes, self.sealed = b"", 0

    def __call__(self, data):
        self.bytes += data
        out = b""
        while len(self.bytes) >= HEAD_BYTES or (self.bytes and self.bytes[0] != MARKER and len(self.bytes) >= RECORD_HEADER_BYTES):
            sealed = self.bytes[0] == MARKER
            length = HEAD_BYTES + int.from_bytes(self.bytes[6:8], "big") if sealed else RECORD_HEADER_BYTES + int.from_bytes(self.bytes[3:5], "big")
            if len(self.bytes) < length:
                break
            unit, self.bytes = bytearray(self.bytes[:length]), self.bytes[length:]
            self.sealed += sealed
            if sealed and self.sealed == 3:
                unit[4] ^= 1
            out += unit
        return out


class Losses:
    """Splits a hub's output into frames, and drops the tenth message."""

    def __init__(self):
        self.bytes, self.messages = b"", 0

    def __call__(self, data):
        self.bytes += data
        out = b""
        while len(self.bytes) >= HUB_HEADER_BYTES and len(self.bytes) >= (length := 4 + int.from_bytes(self.bytes[:4], "little")):
            frame, self.bytes = self.bytes[:length], self.bytes[length:]
            self.messages += frame[4] == HUB_DATA
            if frame[4] != HUB_DATA or self.messages != 10:
                out += frame
        return out


class GeneratorTest(DaemonsTest):
    @classmethod
    def setUpClass(cls):
        cls.programs = pathlib.Path("build/benchmarks")
        cls.programs.mkdir(parents=True, exist_ok=True)
        compile_programs(cls.programs)

    def generator(self, role, *words):
        process = subprocess.Popen([self.programs / "generator", role, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.clear, process)
        return process

    @staticmethod
    def clear(process):
        process.kill()
        process.communicate()

    def flow(self, port, near_port, *words, receivers=1):
        """Send messages for a tenth of a second. Returns the processes of the generator, which have ended."""
        ends = []
        for number in range(receivers):
            own = ["--from", f"127.0.0.{number + 20}", "--key", self.path(f"to{number}")]
            ends.append(self.generator("receive", "--port", port, "--number", number, "--window", 64, *own, *words))
        ids = [end.stdout.readline().split()[1] for end in ends]
        ends.append(self.generator("publish", "--port", near_port, "--receivers", receivers, "--to", ",".join(ids), "--window", 64, "--seconds", 0.1,
                                   "--from", "127.0.0.10", "--key", self.path("from"), *words))
        texts = [end.communicate(timeout=30) for end in ends]
        return [end.returncode for end in ends], texts

    def hub(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        hub = subprocess.Popen([self.programs / "hub", str(port)])
        self.addCleanup(hub.wait)
        self.addCleanup(hub.kill)
        # A probe connection would count as a receiver of the hub, so the port itself is watched.
        wait("the hub listens", lambda: not is_free(port))
        return port

    def test_all_messages_pass_a_box_beside_tls_and_inside_it(self):
        box = self.daemon("box").start()
        for inside in (0, 1):
            codes, texts = self.flow(box.port, box.port, "--protocol", "causeway", "--inside", inside, receivers=2)
            self.assertEqual(codes, [0, 0, 0], texts)

    def test_all_messages_pass_the_hub(self):
        port = self.hub()
        codes, texts = self.flow(port, port, receivers=3)
        self.assertEqual(codes, [0, 0, 0, 0], texts)

    def test_a_wrong_tag_ends_the_receiver(self):
        box = self.daemon("box").start()
        codes, texts = self.flow(Relay(box.port, Units).port, box.port, "--protocol", "causeway")
        self.assertEqual(codes, [2, 2], texts)
        self.assertEqual(texts[0][1], "a wrong tag\n")

    def test_a_message_that_a_relay_loses_ends_the_receiver(self):
        port = self.hub()
        codes, texts = self.flow(Relay(port, Losses).port, port)
        self.assertEqual(codes, [2, 2], texts)
        self.assertIn("message 9 is missing: after it came 10", texts[0][1])

    def test_a_publisher_that_hears_no_acknowledgement_gives_up(self):
        port = self.hub()
        codes, texts = self.flow(Relay(port, Losses).port, port)
        self.assertIn("nothing was acknowledged for 3 s", texts[1][1])
        self.assertEqual(codes[1], 2)


if __name__ == "__main__":
    unittest.main()
