#!/usr/bin/env python3
"""The process on an ordinary bad day: process_test.py BINARY

Descriptors that are closed, outputs that take nothing, clients that only sit there. Real daemons on the loopback interface.
Needs root, for users and mounts of its own.
"""
import os
import subprocess
import sys
import tempfile
import time
import unittest

from daemons import BINARY, Client, Daemon, wait

NOBODY = 65534


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory(prefix="causeway-")
        self.daemons = []

    def tearDown(self):
        for daemon in self.daemons:
            daemon.stop()
        self.root.cleanup()

    def path(self, name):
        return os.path.join(self.root.name, name)

    def daemon(self, name, *peers, **options):
        self.daemons.append(Daemon(self.root.name, name, peers, **options))
        return self.daemons[-1]

    def noisy(self, name="box"):
        """A daemon that says on standard error what it lacks as soon as it starts."""
        box = self.daemon(name)
        with open(box.config) as file:
            text = file.read().replace("[wifi-direct]\nenabled = no",
                                       f"[wifi-direct]\nenabled = yes\ncontrol-socket = {self.path('absent')}")
        with open(box.config, "w") as file:
            file.write(text)
        return box

    def start(self, box, **options):
        box.process = subprocess.Popen([BINARY, "run", "--config", box.config], **options)
        wait(f"{box.name} answers", lambda: box.run("status")[0] == 0)
        return box

    def lives(self, box):
        self.assertIsNone(box.process.poll(), f"{box.name} ended")
        self.assertEqual(box.run("status")[0], 0)

    # Descriptors

    def test_a_standard_error_that_vanished_ends_nothing(self):
        box = self.noisy()
        reader, writer = os.pipe()
        os.close(reader)
        self.start(box, stderr=writer)
        os.close(writer)
        self.assertIn("no wpa_supplicant", box.log())
        self.lives(box)

    def test_a_standard_error_that_nobody_reads_is_not_waited_for(self):
        box = self.noisy()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        self.start(box, stderr=writer)
        self.lives(box)
        os.close(reader)
        os.close(writer)

    def test_closed_descriptors_are_no_way_into_a_file(self):
        box = self.noisy()
        for _ in range(2):
            self.start(box, preexec_fn=lambda: os.closerange(0, 3))
            self.assertIn("no wpa_supplicant", box.log())
            with open(box.directory + "/run/journal", "rb") as file:
                self.assertNotIn(b"causeway: ", file.read())
            standard = [os.readlink(f"/proc/{box.process.pid}/fd/{number}") for number in range(3)]
            self.assertEqual(standard, ["/dev/null"] * 3)
            box.stop()

    def test_a_closed_output_of_a_command_is_a_failure(self):
        box = self.daemon("box")
        box.identity("new")
        done = subprocess.run([BINARY, "identity", "export", "--config", box.config], stderr=subprocess.PIPE, text=True,
                              timeout=10, preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stderr), (1, "causeway: standard output: Bad file descriptor\n"))

    # Outputs

    def test_an_output_that_takes_nothing_is_a_failure_of_every_command(self):
        box = self.daemon("box").start()
        for words in (["identity", "export"], ["identity", "show"], ["status"], ["status", "--json"], ["log"], ["version"],
                      ["status", "--help"], ["--help"]):
            command = [BINARY, *words] + ([] if words[0] in ("version", "--help") else ["--config", box.config])
            with open("/dev/full", "w") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
            self.assertEqual((done.returncode, done.stderr), (1, "causeway: standard output: No space left on device\n"), words)

    def test_who_leaves_a_pipe_gets_no_lecture(self):
        box = self.daemon("box").start()
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([BINARY, "log", "--config", box.config], stdout=writer, stderr=subprocess.PIPE, timeout=10)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (1, b""))

    def test_a_disk_that_fills_up_is_named_by_who_receives(self):
        box = self.daemon("box").start()
        sender = self.daemon("sender", box).start()
        os.makedirs(self.path("in"))
        with open(self.path("large"), "wb") as file:
            file.write(os.urandom(1_000_000))
        receiver = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=100k tmpfs "$1" && shift && exec "$@"', "sh", self.path("in"),
             BINARY, "peer", "receive", self.path("in"), "--count", "1", "--seconds", "20", "--config", box.config],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait("the receiver listens", lambda: b"receive" in open(f"/proc/{receiver.pid}/cmdline", "rb").read()
             and BINARY == os.readlink(f"/proc/{receiver.pid}/exe"))
        code, _, err = sender.run("peer", "send", self.path("large"), "--to", "box")
        receiver.terminate()
        errors = receiver.communicate(timeout=10)[1]
        self.assertEqual(code, 1)
        self.assertIn("No space left on device", err)
        self.assertNotIn("ioctl", err + errors)

    # Files that are none

    def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(self):
        box = self.daemon("box").start()
        os.mkfifo(self.path("pipe"))
        for words, status in ((["peer", "send", self.path("pipe"), "--to", "x", "--config", box.config], 1),
                              (["status", "--config", self.path("pipe")], 2),
                              (["run", "--config", self.path("pipe")], 2),
                              (["log", "--journal", self.path("pipe")], 1)):
            done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=10)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), (words, done.stderr))
            self.assertIn("not a regular file", done.stderr)

    # The control socket

    def test_clients_that_only_sit_there_do_not_keep_the_operator_out(self):
        box = self.daemon("box").start()
        for path in (self.root.name, box.directory, box.directory + "/run"):
            os.chmod(path, 0o755)
        sitter = subprocess.Popen(
            [sys.executable, "-c",
             "import socket, sys\n"
             "held = []\n"
             "for number in range(40):\n"
             "    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))\n"
             "    held[-1].connect(sys.argv[1])\n"
             "    print(number, flush=True)\n"
             "sys.stdin.read()\n", box.directory + "/run/control.sock"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, group=0, extra_groups=[])
        for _ in range(40):
            self.assertTrue(sitter.stdout.readline())
        try:
            self.assertEqual(box.run("identity", "revoke", "00112233445566778899aabbccddeeff")[0], 0)
            self.assertEqual(box.run("status")[0], 0)
        finally:
            sitter.communicate("", timeout=10)

    def test_a_client_that_does_not_read_keeps_nothing_from_the_others(self):
        box = self.daemon("box").start()
        a, b = self.daemon("a", box).start(), self.daemon("b", box).start()
        sender = Client(a)
        to = sender.wait_peer("b")
        deaf, reader = Client(b, kinds=1 << 7), Client(b, kinds=1 << 7)
        begin = time.monotonic()
        for number in range(60):
            sender.send(to, b"%06d" % number * 10_000, lane=1, request=number)
        got = 0
        while got < 60:
            packet = reader.next()
            if packet[:1] == b"M":
                got += 1
        self.assertLess(time.monotonic() - begin, 15)
        deaf.socket.close()


unittest.main()
