"""`causeway capture` on a box between two peers, with real daemons.

Messages travel from the daemon `near` through the box to the daemon `far`, on the loopback interface. tshark reads the
captures."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from daemons import BINARY, DaemonsTest, wait
from talk import Talk
from wireshark import FILE_HEADER, fields, records

SEALED = 37
CANARY = b"the canary sings " * 20
BAD = ("short", "long", "range", "zero", "marker", "version")


class CaptureTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        self.box = self.daemon("box").start()
        self.near = self.daemon("near", self.box).start()
        self.far = self.daemon("far", self.box).start()
        wait("they see each other", lambda: "far" in self.near.run("peers")[1] and "near" in self.far.run("peers")[1])

    def talk(self):
        talk = Talk(self.near, self.far)
        self.addCleanup(talk.close)
        talk.round_trip()
        return talk

    def capture(self, *words, output=subprocess.PIPE):
        process = subprocess.Popen([BINARY, "capture", *words, "--config", self.box.config], stdout=output, stderr=subprocess.PIPE)
        self.addCleanup(self.reap, process)
        return process

    @staticmethod
    def reap(process):
        process.kill()
        process.wait(10)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def begun(self, *words):
        """Start a capture into a file. Returns its process, and the path of the file."""
        path = self.path(f"capture-{len(os.listdir(self.root))}")
        process = self.capture("--output", path, *words)
        wait("the capture begins", lambda: os.path.exists(path) and os.path.getsize(path) >= len(FILE_HEADER))
        return process, path

    def ended(self, process, path):
        """Interrupt a capture. Returns the records of its file, and its standard error."""
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 0, err)
        with open(path, "rb") as file:
            return records(file.read()), err.decode()

    def link(self, name):
        return next(link["slot"] for link in self.box.status["links"] if link["name"] == name)

    def test_headers_of_forwarded_frames_are_seen_on_both_links(self):
        talk = self.talk()
        process, path = self.begun()
        started = time.time()
        talk.session.post(CANARY).wait(10)
        seen, err = self.ended(process, path)
        self.assertIn(f"{len(seen)} frames captured\n", err)
        near, far = (bytes.fromhex(node.id) for node in (self.near, self.far))
        forwarded = [each for each in seen if each.type == SEALED and each.header[8:40] == far + near]
        came = [each for each in forwarded if not each.is_sent]
        left = [each for each in forwarded if each.is_sent]
        self.assertTrue(came)
        self.assertEqual([each.identifier for each in came], [each.identifier for each in left])
        self.assertEqual({(each.link, each.neighbour) for each in came}, {(self.link("near"), near[:8])})
        self.assertEqual({(each.link, each.neighbour) for each in left}, {(self.link("far"), far[:8])})
        self.assertTrue(all(each.header[3] > other.header[3] for each, other in zip(came, left)), "the hops left")
        self.assertTrue(all(started - 1 < each.time < time.time() + 1 for each in seen))
        self.assertTrue(any(each.length > 16 + 48 + len(CANARY) for each in came), "the length of what was left out is told")
        self.assertTrue(all(each.payload == b"" for each in seen))

    def test_what_end_nodes_sealed_stays_sealed_in_payloads(self):
        talk = self.talk()
        process, path = self.begun("--payload")
        talk.session.post(CANARY).wait(10)
        seen, _ = self.ended(process, path)
        self.assertTrue(any(len(each.payload) > len(CANARY) for each in seen))
        with open(path, "rb") as file:
            data = file.read()
        self.assertNotIn(CANARY[:17], data)
        for row in fields(data, *(f"causeway.bad.{name}" for name in BAD), "causeway.unknown_type", "causeway.headers_only"):
            self.assertEqual("".join(row), "")

    def test_a_link_can_be_chosen_by_its_number_and_by_its_neighbour(self):
        talk = self.talk()
        captures = [self.begun("--link", wanted) for wanted in (str(self.link("far")), "far")]
        talk.send_many(20, 1000)
        for each in captures:
            seen, _ = self.ended(*each)
            self.assertEqual({record.link for record in seen}, {self.link("far")})

    def test_a_capture_ends_after_a_count_a_size_or_a_time(self):
        talk = self.talk()
        captures = [self.begun(*words) for words in (["--count", "3"], ["--size", "200"])]
        talk.send_many(20, 1000)
        for (process, path), frames, size in zip(captures, (3, 2), (24 + 3 * 80, 24 + 2 * 80)):
            _, err = process.communicate(timeout=10)
            self.assertEqual((process.returncode, err), (0, f"causeway: {frames} frames captured\n".encode()))
            self.assertEqual(os.path.getsize(path), size)
        start = time.monotonic()
        process, _ = self.begun("--seconds", "1")
        self.assertEqual(process.wait(10), 0)
        self.assertTrue(0.9 < time.monotonic() - start < 5)

    def test_a_stopped_reader_slows_no_message_and_is_told_what_it_missed(self):
        talk = self.talk()
        alone = self.seconds(talk)
        process, path = self.begun("--payload")
        process.send_signal(signal.SIGSTOP)
        memory = self.box.resident_bytes()
        beside = self.seconds(talk)
        self.assertLess(beside, 2 * alone + 1)
        self.assertLess(self.box.resident_bytes() - memory, 1 << 20)
        process.send_signal(signal.SIGCONT)
        sizes = []
        wait("it has read what waits", lambda: sizes.append(os.path.getsize(path)) or len(sizes) > 3 and len(set(sizes[-4:])) == 1)
        seen, err = self.ended(process, path)
        self.assertRegex(err, r"^causeway: \d+ frames captured, [1-9]\d+ more dropped: they arrived faster than they were read\n$")
        self.assertTrue(seen)

    def seconds(self, talk):
        start = time.monotonic()
        talk.send_many(200, 15_000)
        return time.monotonic() - start

    def test_three_captures_run_at_once_and_a_fourth_is_refused(self):
        captures = [self.begun(), self.begun(), self.begun()]
        path = self.path("fourth")
        said = self.refused(self.box, "capture", "--output", path)
        self.assertIn("3 captures are shared: user 0 has 3; end one of these captures first", said)
        self.assertFalse(os.path.exists(path))
        self.ended(*captures[0])
        self.ended(*self.begun())

    def test_a_full_disk_is_one_clear_error(self):
        self.assertIn("/dev/full: No space left on device", self.refused(self.box, "capture", "--output", "/dev/full"))
        directory = self.path("small")
        os.mkdir(directory)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", directory], check=True)
        self.addCleanup(subprocess.run, ["umount", directory], check=True)
        talk = self.talk()
        process = self.capture("--payload", "--output", f"{directory}/capture")
        wait("the capture begins", lambda: os.path.exists(f"{directory}/capture"))
        talk.send_many(10, 15_000)
        _, err = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err.decode(), r"^causeway: \S+/small/capture: No space left on device[^\n]*\n$")

    def test_a_terminal_gets_no_binary_data(self):
        master, slave = pty.openpty()
        try:
            process = self.capture(output=slave)
            _, err = process.communicate(timeout=10)
            self.assertEqual(process.returncode, 2)
            self.assertIn(b"standard output is a terminal; name a file with --output", err)
            self.assertEqual(select.select([master], [], [], 0)[0], [])
        finally:
            os.close(master)
            os.close(slave)

    def test_a_reader_that_leaves_ends_the_capture(self):
        process = self.capture()
        self.assertEqual(process.stdout.read(len(FILE_HEADER)), FILE_HEADER)
        process.stdout.close()
        process.stdout = None
        self.assertEqual(process.wait(10), 1)
        self.assertEqual(process.stderr.read(), b"")

    def test_a_daemon_that_ends_is_told(self):
        process, _ = self.begun()
        self.box.stop()
        _, err = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(err.count(b"\n"), 1, err)


if __name__ == "__main__":
    unittest.main()
