#!/usr/bin/env python3
"""The commands of the causeway binary against a played daemon: usage: command_line_test.py BINARY

The played daemon has two control sockets, alice's and bob's, and carries messages between their clients, as
two daemons with a mesh between them would. The protocol is described in Sources/Diagnostics/ControlProtocol.swift.
"""
import hashlib
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/x86_64/causeway"
ALICE = bytes.fromhex("a11ce000000000000000000000000001")
BOB = bytes.fromhex("b0b00000000000000000000000000002")
NAMES = {ALICE: b"alice", BOB: b"b\xc3\xb6b"}


def text(data):
    return bytes([len(data)]) + data


def peer(node, hops=2, info=(b"room=kitchen",)):
    return (b"P" + node + bytes([hops, 3]) + node + text(NAMES[node]) + text(b"causeway")
            + bytes([len(info)]) + b"".join(text(pair) for pair in info) + b"\0")


class Daemon(threading.Thread):
    """Both daemons and the mesh between them."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()
        self.clients = {ALICE: [], BOB: []}
        self.paths = {}
        self.present = True
        self.status = b'{"box": {"name": "alice"}, "peers": []}'
        self.spoil = lambda kind, data: data
        for node in (ALICE, BOB):
            path = f"{directory}/{NAMES[node].decode()}.sock"
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(path)
            listener.listen(16)
            self.paths[node] = path
            self.selector.register(listener, selectors.EVENT_READ, lambda l, node=node: self.accept(l, node))
        self.start()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                key.data(key.fileobj)

    def accept(self, listener, node):
        client, _ = listener.accept()
        self.selector.register(client, selectors.EVENT_READ, lambda c: self.serve(c, node))

    def serve(self, client, node):
        try:
            packet = client.recv(70000)
        except ConnectionError:
            packet = b""
        other = BOB if node == ALICE else ALICE
        if not packet:
            self.selector.unregister(client)
            self.clients[node] = [entry for entry in self.clients[node] if entry[0] is not client]
            client.close()
        elif packet[:1] == b"S":
            client.send(b"S" + self.status)
            client.send(b"S")
        elif packet[:1] == b"A":
            if self.present:
                client.send(peer(other))
            client.send(b"R" + node + text(NAMES[node]))
            self.clients[node].append((client, struct.unpack(">I", packet[1:5])[0]))
        elif packet[:1] == b"M":
            request, to, kind, lane = packet[1:5], packet[5:21], packet[21], packet[22]
            data = self.spoil(kind, packet[23:])
            reached = False
            for target, kinds in self.clients[to]:
                if kinds >> kind & 1:
                    target.send(b"M" + node + bytes([kind, lane]) + data)
                    reached = True
            client.send(b"C" + request + bytes([0]))
            if not reached and kind != 0:
                for target, kinds in self.clients[node]:
                    if kinds & 1:
                        target.send(b"M" + to + bytes([0, 0]) + bytes([1, kind, 0, 0]))

    def tell(self, node, packet):
        for client, _ in self.clients[node]:
            client.send(packet)


class JournalFile:
    """A journal as Sources/Journal/JournalLayout.swift describes it, in this machine's byte order."""

    CAPACITY = 64

    def __init__(self, path):
        self.file = open(path, "w+b")
        self.sequence = 0
        self.put(0, struct.pack("=QQQQQQq", 0x4357_4A52_4E4C_0001, 64, self.CAPACITY, 0, 1, 1, 1_795_267_677_000_000_000))
        self.put(4096 + 64 * self.CAPACITY - 1, b"\0")

    def put(self, offset, data):
        self.file.seek(offset)
        self.file.write(data)
        self.file.flush()

    def record(self, event, level, a=0, node=bytes(16), torn=False):
        self.sequence += 1
        kind = event | level << 16 | 0xFF << 24
        sequence = 0 if torn else self.sequence
        self.put(4096 + 64 * ((self.sequence - 1) % self.CAPACITY),
                 struct.pack("=QQQQQQ", sequence, self.sequence * 1_000_000, kind, a, 0, 0) + node)
        self.put(24, struct.pack("=Q", self.sequence))


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.daemon = Daemon(self.directory.name)

    def start(self, *words, node=None, **options):
        command = [BINARY, *words]
        if node:
            command += ["--socket", self.daemon.paths[node]]
        process = subprocess.Popen(command, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **options)
        self.addCleanup(self.reap, process)
        return process

    @staticmethod
    def reap(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def run_command(self, *words, node=None, input=None):
        process = self.start(*words, node=node, stdin=subprocess.PIPE)
        out, err = process.communicate(input, timeout=30)
        return process.returncode, out.decode(), err.decode()

    def end(self, process):
        out, err = process.communicate(timeout=30)
        return process.returncode, out.decode(), err.decode()

    def attached(self, node):
        while not self.daemon.clients[node]:
            pass

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def test_no_word_prints_the_commands(self):
        code, out, _ = self.run_command()
        self.assertEqual(code, 0)
        for command in ("run", "status", "peers", "log", "browse", "chat", "pipe", "send", "receive", "drop", "accept",
                        "peer", "selftest", "version"):
            self.assertIn(f"\n  {command} ", out)

    def test_an_unknown_command_is_refused(self):
        code, out, err = self.run_command("dance")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no command “dance”", err)

    def test_every_command_has_help(self):
        for words in (["run"], ["status"], ["peers"], ["log"], ["peer", "browse"], ["peer", "chat"], ["peer", "send"],
                      ["peer", "receive"], ["selftest"], ["version"], ["peer"], ["browse"], ["chat"], ["pipe"], ["accept"],
                      ["send"], ["receive"], ["drop"]):
            code, out, _ = self.run_command(*words, "--help")
            self.assertEqual(code, 0, words)
            self.assertIn("Usage: causeway " + " ".join(words), out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80, words)

    def test_wrong_options_and_values_are_usage_errors(self):
        for words in (["status", "--loud"], ["status", "more"], ["peer", "send"], ["peer", "send", "a", "b"],
                      ["log", "--level", "loud"], ["log", "--since", "yesterday"], ["peer", "chat", "--wait-for", "x"],
                      ["browse", "Chat"], ["browse", "a", "b"], ["browse", "--for", "0"], ["chat", "two words"],
                      ["chat", "--name", ""], ["chat", "--name", "a\nb"], ["chat", "--wait", "x"], ["accept"], ["pipe"],
                      ["pipe", "--listen", "a", "b"], ["pipe", "bob", "no_type"], ["pipe", "a", "b", "c"],
                      ["send"], ["send", "a"], ["send", "-", "bob"], ["send", "a", "bob", "--type", "No"], ["receive"],
                      ["receive", "/tmp", "--count", "0"], ["receive", "/tmp", "--max", "x"], ["drop", "/tmp", "--count", "1"]):
            code, _, err = self.run_command(*words)
            self.assertEqual(code, 2, words)
            self.assertIn("causeway", err)

    def test_no_daemon_is_told_by_its_own_code(self):
        for words in (["status"], ["browse"], ["chat"], ["accept", "chat"], ["pipe", "bob"], ["pipe", "--listen"],
                      ["send", "/etc/passwd", "bob"], ["receive", "/tmp"], ["drop", "/tmp"]):
            code, _, err = self.run_command(*words, "--socket", self.path("none.sock"))
            self.assertEqual(code, 3, words)
            self.assertIn("no daemon answers", err)

    def test_a_daemon_that_does_not_keep_to_its_protocol_is_told_in_one_line(self):
        for answer, said in ((b"", "closed the connection"), (b"\0\0\0\1\x80", "not understood"),
                             (b"\xff\xff\xff\xff", "not understood"),
                             (b"\0\0\0\x09\x80\0\0\0\0\6\2no", "closes the connection: no"),
                             (b"\0\0\0\x09\x80\0\0\0\1\1\2no", "the daemon refuses: no")):
            path = self.path("api.sock")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(path)
                listener.listen(1)
                chat = self.start("chat", "--socket", path)
                connection, _ = listener.accept()
                with connection:
                    self.assertEqual(connection.recv(100)[4:6], b"\1\0")
                    connection.send(answer)
                    connection.shutdown(socket.SHUT_WR)
                    code, _, err = self.end(chat)
            os.unlink(path)
            self.assertEqual(code, 1, said)
            self.assertIn(said, err)
            self.assertEqual(err.count("\n"), 1, err)

    def test_a_wrong_configuration_names_file_line_and_key(self):
        with open(self.path("box.conf"), "w") as file:
            file.write("[ip]\nport = 99999\n")
        code, _, err = self.run_command("status", "--config", self.path("box.conf"))
        self.assertEqual(code, 2)
        self.assertIn("box.conf:2: [ip] port: “99999” is not accepted; expected a number from 1 to 65535", err)

    def test_the_socket_is_found_by_the_configuration(self):
        os.rename(self.daemon.paths[ALICE], self.path("control.sock"))
        with open(self.path("box.conf"), "w") as file:
            file.write(f"[node]\nruntime-directory = {self.directory.name}\n")
        code, out, _ = self.run_command("status", "--config", self.path("box.conf"), "--json")
        self.assertEqual((code, out), (0, self.daemon.status.decode()))

    def test_log_shows_the_journal_of_a_daemon_that_died(self):
        journal = JournalFile(self.path("journal"))
        journal.record(1, 3, a=7, node=ALICE)
        journal.record(145, 4, a=41820, torn=True)
        journal.record(145, 4, a=41820)
        words = ["log", "--journal", self.path("journal")]
        lines = [f"2026-11-21T13:27:57.001Z notice  box {ALICE.hex()} started: epoch 7, process 0",
                 "2026-11-21T13:27:57.003Z info    listening on port 41820, interface 0"]
        self.assertEqual(self.run_command(*words)[1].splitlines(), lines)
        self.assertEqual(self.run_command(*words, "--level", "notice")[1].splitlines(), lines[:1])
        self.assertEqual(self.run_command(*words, "--count", "1")[1].splitlines(), lines[1:])
        self.assertEqual(self.run_command(*words, "--since", "2026-11-21")[1].splitlines(), lines)
        self.assertEqual(self.run_command(*words, "--since", "2026-11-22")[1], "")
        self.assertEqual(self.run_command(*words, "--since", "boot")[1].splitlines(), lines)

    def test_log_follows(self):
        journal = JournalFile(self.path("journal"))
        for port in range(20):
            journal.record(145, 4, a=port)
        log = self.start("log", "--journal", self.path("journal"), "--follow")
        for port in range(10, 20):
            self.assertIn(f"port {port},".encode(), log.stdout.readline())
        journal.record(145, 4, a=99)
        self.assertIn(b"port 99,", log.stdout.readline())

    def test_log_refuses_what_is_no_journal(self):
        for content, reason in ((b"", "empty"), (b"x" * 9000, "not a Causeway journal")):
            with open(self.path("journal"), "wb") as file:
                file.write(content)
            code, _, err = self.run_command("log", "--journal", self.path("journal"))
            self.assertEqual(code, 1)
            self.assertIn(reason, err)

    def test_browse_shows_who_comes_and_goes(self):
        browse = self.start("peer", "browse", "--seconds", "1", node=ALICE)
        self.attached(ALICE)
        self.daemon.tell(ALICE, peer(BOB, hops=1, info=()))
        self.daemon.tell(ALICE, b"L" + BOB)
        code, out, _ = self.end(browse)
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines(), [
            "found böb (b0b00000) over wifi-direct, 2 hops, room=kitchen", "changed böb (b0b00000) over wifi-direct, 1 hop",
            "lost böb (b0b00000)"])

    def test_browse_waits_for_one_peer(self):
        self.assertEqual(self.run_command("peer", "browse", "--wait-for", "b0b0", node=ALICE)[0], 0)
        self.daemon.present = False
        self.assertEqual(self.run_command("peer", "browse", "--wait-for", "b0b0", "--seconds", "1", node=ALICE)[0], 4)

    def test_chat_ends_when_input_is_over_and_delivered(self):
        bob = self.start("peer", "chat", "--wait-for", "2", "--seconds", "20", node=BOB)
        self.attached(BOB)
        code, _, err = self.run_command("peer", "chat", "--to", "böb", node=ALICE, input=b"hello\n\nsecond \x1b[2J")
        self.assertEqual(code, 0, err)
        code, out, _ = self.end(bob)
        self.assertEqual((code, out), (0, "<alice> hello\n<alice> second ?[2J\n"))

    def test_chat_goes_to_everybody_and_answers_come_back(self):
        bob = self.start("peer", "chat", "--seconds", "2", node=BOB, stdin=subprocess.PIPE)
        self.attached(BOB)
        alice = self.start("peer", "chat", "--wait-for", "1", "--seconds", "20", node=ALICE, stdin=subprocess.PIPE)
        self.attached(ALICE)
        alice.stdin.write(b"from alice\n")
        alice.stdin.close()
        alice.stdin = None
        bob.stdin.write(b"from bob\n")
        self.assertEqual(self.end(bob)[:2], (0, "<alice> from alice\n"))
        self.assertEqual(self.end(alice)[:2], (0, "<böb> from bob\n"))

    def test_chat_tells_when_what_it_waits_for_does_not_come(self):
        self.assertEqual(self.run_command("peer", "chat", "--wait-for", "1", "--seconds", "1", node=ALICE)[0], 4)

    def test_chat_tells_when_nobody_reads_there(self):
        code, _, err = self.run_command("peer", "chat", "--seconds", "1", node=ALICE, input=b"hello\n")
        self.assertEqual(code, 1)
        self.assertIn("böb does not read", err)

    def test_a_long_line_is_cut_between_characters(self):
        line = "é" * 5000
        bob = self.start("peer", "chat", "--wait-for", "3", "--seconds", "20", node=BOB)
        self.attached(BOB)
        self.assertEqual(self.run_command("peer", "chat", node=ALICE, input=line.encode())[0], 0)
        out = self.end(bob)[1]
        self.assertEqual("".join(part.removeprefix("<alice> ") for part in out.splitlines()), line)

    def send(self, size, name="photo.jpg", *words):
        data = os.urandom(size)
        with open(self.path(name), "wb") as file:
            file.write(data)
        os.makedirs(self.path("in"), exist_ok=True)
        bob = self.start("peer", "receive", self.path("in"), "--count", "1", "--seconds", "20", node=BOB)
        self.attached(BOB)
        alice = self.run_command("peer", "send", self.path(name), "--to", "böb", *words, node=ALICE)
        return data, alice, self.end(bob)

    def test_files_arrive_whole(self):
        for size in (0, 1, 15360, 1_000_000):
            data, alice, bob = self.send(size, f"file-{size}")
            self.assertEqual(alice[0], 0, alice)
            self.assertEqual(bob[0], 0, bob)
            with open(self.path(f"in/file-{size}"), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).digest(), hashlib.sha256(data).digest())
            self.assertIn(f"{size} bytes", alice[1])
        self.assertFalse([name for name in os.listdir(self.path("in")) if name.endswith(".part")])

    def test_a_file_never_replaces_another(self):
        self.send(10, "same")
        second, _, _ = self.send(10, "same")
        with open(self.path("in/same-2"), "rb") as file:
            self.assertEqual(file.read(), second)

    def test_a_hostile_name_stays_in_the_directory(self):
        def spoil(kind, data):
            return data[:44] + text(b"../../evil") if kind == 2 else data
        self.daemon.spoil = spoil
        _, alice, bob = self.send(10, "name")
        self.assertEqual((alice[0], bob[0]), (0, 0), (alice, bob))
        self.assertEqual(os.listdir(self.path("in")), ["_._.._evil"])

    def test_a_changed_byte_is_noticed_by_both_ends(self):
        def spoil(kind, data):
            return data[:-1] + bytes([data[-1] ^ 1]) if kind == 4 else data
        self.daemon.spoil = spoil
        data = os.urandom(100)
        with open(self.path("file"), "wb") as file:
            file.write(data)
        os.makedirs(self.path("in"))
        bob = self.start("peer", "receive", self.path("in"), "--seconds", "2", node=BOB)
        self.attached(BOB)
        code, _, err = self.run_command("peer", "send", self.path("file"), "--to", "b0b0", node=ALICE)
        self.assertEqual(code, 1)
        self.assertIn("SHA-256 differs", err)
        self.assertEqual(self.end(bob)[0], 1)
        self.assertEqual(os.listdir(self.path("in")), [])

    def test_nobody_who_receives_is_told_at_once(self):
        with open(self.path("file"), "wb") as file:
            file.write(b"x")
        code, _, err = self.run_command("peer", "send", self.path("file"), "--to", "böb", node=ALICE)
        self.assertEqual(code, 1)
        self.assertIn("run “causeway peer receive” there", err)

    def test_a_directory_that_cannot_be_written_is_refused(self):
        self.assertEqual(self.run_command("peer", "receive", self.path("missing"), node=BOB)[0], 1)

    def test_an_absent_peer_ends_with_the_time(self):
        with open(self.path("file"), "wb") as file:
            file.write(b"x")
        code, _, err = self.run_command("peer", "send", self.path("file"), "--to", "nobody", "--seconds", "1", node=ALICE)
        self.assertEqual(code, 4)
        self.assertIn("no peer “nobody” appeared", err)


if __name__ == "__main__":
    unittest.main()
