#!/usr/bin/env python3
"""The commands of the causeway binary with a fake daemon. usage: command_line_test.py BINARY

The fake daemon has two control sockets, alice's and bob's. It acts as two daemons that are connected. The protocol is described
in Sources/ControlSocket/ControlProtocol.swift. Tests/Daemons tests chats and file transfers with real daemons.
"""
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
BOB2 = bytes.fromhex("b0b20000000000000000000000000003")
NAMES = {ALICE: b"alice", BOB: b"b\xc3\xb6b", BOB2: b"b\xc3\xb6b"}


def text(data):
    return bytes([len(data)]) + data


def peer(node, hops=2, info=(b"room=kitchen",)):
    return (b"P" + node + bytes([hops, 3]) + node + text(NAMES[node]) + text(b"causeway")
            + bytes([len(info)]) + b"".join(text(pair) for pair in info) + b"\0")


class Daemon(threading.Thread):
    """The fake daemon of alice and of bob. It reports peers to the clients of each control socket."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()
        self.clients = {ALICE: [], BOB: []}
        self.paths = {}
        self.present, self.others = True, []
        self.status = b'{"box": {"name": "alice"}, "peers": []}'
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
            self.clients[node] = [each for each in self.clients[node] if each is not client]
            client.close()
        elif packet[:1] == b"S":
            client.send(b"S" + self.status)
            client.send(b"S")
        elif packet[:1] == b"A":
            for each in [other] * self.present + self.others:
                client.send(peer(each))
            client.send(b"R" + node + text(NAMES[node]))
            self.clients[node].append(client)

    def tell(self, node, packet):
        for client in self.clients[node]:
            client.send(packet)


class JournalFile:
    """A journal file in the format of Sources/Journal/JournalLayout.swift, in this machine's byte order."""

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

    def test_top_shows_the_difference_of_two_answers(self):
        self.daemon.status = (b'{"box": {"name": "al\\u001bice", "id": "a11ce000000000000000000000000001", "epoch": 3, "bytes_forwarded": 7},'
                              b'"links": [{"slot": 2, "peer": "b0b0", "name": "bob", "bearer": "bluetooth-le", "state": "parked"}], "peers": [{}]}')
        code, out, err = self.run_command("top", "--once", node=ALICE)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out.splitlines(), [
            "al?ice a11ce000  up 0 s, 0 B, 1 peer, 0 links", "forwarded 0 frames/s, 0 B/s; refused 0 frames/s; by traffic",
            "no alarms, no faults", "",
            "LINK  NEIGHBOUR                         BEARER           IN/S    OUT/S      RTT   LOSS    QUEUE",
            "2     bob (parked)                      bluetooth-le      0 B      0 B        –      –      0 B"])

    def test_top_refuses_an_answer_that_it_does_not_understand(self):
        self.daemon.status = b"[]"
        code, out, err = self.run_command("top", "--once", node=ALICE)
        self.assertEqual((code, out, err), (1, "", "causeway: the daemon's answer is not understood; does it have another version?\n"))
        code, _, err = self.run_command("top", "--interval", "0", node=ALICE)
        self.assertEqual(code, 2)
        self.assertIn("a number of seconds from 1 to 3600", err)

    def test_a_bundle_is_nothing_for_a_terminal(self):
        master, slave = os.openpty()
        process = subprocess.run([BINARY, "bundle", "--output", "-"], stdout=slave, stderr=subprocess.PIPE, text=True)
        os.close(master)
        os.close(slave)
        self.assertEqual(process.returncode, 2)
        self.assertEqual(process.stderr, "causeway: standard output is a terminal; redirect the archive: > bundle.tar (with ssh, omit -t)\n")

    def test_a_bundle_names_what_it_could_not_get(self):
        path = self.path("b.tar")
        code, out, err = self.run_command("bundle", "--socket", self.path("nobody"), "--output", path)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"b\.tar: \d+ parts, [0-9.]+ kB\n  missing: status, sessions, routes: no daemon answers at .*/nobody; start")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_no_word_prints_the_commands(self):
        code, out, _ = self.run_command()
        self.assertEqual(code, 0)
        for command in ("run", "status", "peers", "ping", "trace", "log", "capture", "browse", "chat", "pipe", "send", "receive",
                        "drop", "accept", "join", "peer", "config", "leds", "reload", "selftest", "version"):
            self.assertIn(f"\n  {command} ", out)

    def test_an_unknown_command_is_refused(self):
        code, out, err = self.run_command("dance")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no command “dance”", err)

    def test_every_command_has_help(self):
        for words in (["run"], ["status"], ["peers"], ["ping"], ["trace"], ["log"], ["capture"], ["peer", "verify"], ["selftest"], ["version"], ["peer"],
                      ["browse"], ["chat"], ["pipe"], ["accept"], ["send"], ["receive"], ["drop"],
                      ["config"], ["config", "check"], ["leds"], ["reload"], ["sessions"], ["explain"], ["join"]):
            code, out, _ = self.run_command(*words, "--help")
            self.assertEqual(code, 0, words)
            self.assertIn("Usage: causeway " + " ".join(words), out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80, words)

    def test_wrong_options_and_values_are_usage_errors(self):
        for words in (["status", "--loud"], ["status", "more"], ["peer", "verify"], ["peer", "verify", "a", "b"],
                      ["peer", "verify", "a", "--seconds", "x"], ["peer", "browse"], ["peer", "chat"], ["peer", "send", "a"],
                      ["peer", "receive", "."], ["log", "--level", "loud"], ["log", "--since", "yesterday"],
                      ["capture", "more"], ["capture", "--link", ""], ["capture", "--count", "0"], ["capture", "--size", "big"], ["capture", "--seconds", "x"],
                      ["explain"], ["explain", "a", "b", "c"], ["sessions", "a"], ["ping"], ["ping", "a", "b"], ["ping", "a", "--count", "0"], ["ping", "a", "--timeout", "x"],
                      ["trace"], ["trace", "a", "--count", "1"], ["trace", "a", "--wait", "0"],
                      ["browse", "Chat"], ["browse", "a", "b"], ["browse", "--for", "0"], ["chat", "two words"],
                      ["chat", "--name", ""], ["chat", "--name", "a\nb"], ["chat", "--wait", "x"], ["accept"], ["pipe"],
                      ["pipe", "--listen", "a", "b"], ["pipe", "bob", "no_type"], ["pipe", "a", "b", "c"],
                      ["send"], ["send", "a"], ["send", "a", "bob", "--type", "No"], ["receive"],
                      ["receive", "/tmp", "--count", "0"], ["receive", "/tmp", "--max", "x"], ["drop", "/tmp", "--count", "1"],
                      ["join", "a"], ["config", "dance"], ["config", "check", "a"], ["leds", "on"], ["reload", "now"]):
            code, _, err = self.run_command(*words)
            self.assertEqual(code, 2, words)
            self.assertIn("causeway", err)

    def test_a_configuration_is_checked_without_a_daemon(self):
        with open(self.path("box.conf"), "w") as file:
            file.write("[node]\ndisplay-name = attic\n")
        code, out, err = self.run_command("config", "check", "--config", self.path("box.conf"))
        self.assertEqual((code, out, err), (0, "valid; the box is “attic”\n", ""))
        with open(self.path("box.conf"), "a") as file:
            file.write("[journal]\nlevel = loud\n")
        code, out, err = self.run_command("config", "check", "--config", self.path("box.conf"))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("box.conf:4: ", err)

    def test_a_configuration_that_lets_nobody_in_by_a_certificate_is_not_good(self):
        """Anchors that are absent, empty, or followed by a comment on the line. `reload` fails with the same configurations."""
        os.makedirs(self.path("anchors"))
        for anchors in (self.path("none"), self.path("anchors"), self.path("anchors") + " # the fleet"):
            with open(self.path("box.conf"), "w") as file:
                file.write(f"[trust]\npolicy = ca\nanchors = {anchors}\n")
            code, out, err = self.run_command("config", "check", "--config", self.path("box.conf"))
            self.assertEqual((code, out), (1, ""), anchors)
            self.assertIn(f"{anchors} has no certificate", err)

    def test_a_line_that_is_not_utf8_is_refused(self):
        with open(self.path("box.conf"), "wb") as file:
            file.write(b"[node]\n# off:\x85[trust]\x85policy = ca\n")
        code, out, err = self.run_command("config", "check", "--config", self.path("box.conf"))
        self.assertEqual((code, out), (2, ""))
        self.assertIn("box.conf:2: not UTF-8", err)

    def test_the_end_of_a_daemon_without_a_status_led_is_no_fault(self):
        with open(self.path("box.conf"), "w") as file:
            file.write("[node]\ndisplay-name = attic\n")
        code, out, err = self.run_command("leds", "--ended", "--config", self.path("box.conf"))
        self.assertEqual((code, out, err), (0, "", ""))

    def test_no_daemon_is_told_by_its_own_code(self):
        for words in (["status"], ["reload"], ["browse"], ["chat"], ["accept", "chat"], ["pipe", "bob"], ["pipe", "--listen"],
                      ["send", "/etc/passwd", "bob"], ["receive", "/tmp"], ["drop", "/tmp"]):
            code, _, err = self.run_command(*words, "--socket", self.path("none.sock"))
            self.assertEqual(code, 3, words)
            self.assertIn("no daemon answers", err)

    def test_a_daemon_that_does_not_keep_to_its_protocol_is_told_in_one_line(self):
        for answer, said in ((b"", "closed the connection"), (b"\0\0\0\1\x80", "cannot be read"),
                             (b"\xff\xff\xff\xff", "cannot be read"),
                             (b"\0\0\0\x09\x80\0\0\0\0\6\2no", "closed the connection: no"),
                             (b"\0\0\0\x09\x80\0\0\0\1\1\2no", "the daemon refused the connection: no")):
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
        journal.record(33, 4, a=64, torn=True)
        journal.record(33, 4, a=64)
        words = ["log", "--journal", self.path("journal")]
        lines = [f"2026-11-21T13:27:57.001Z notice  box {ALICE.hex()} started: epoch 7, process 0",
                 "2026-11-21T13:27:57.003Z info    all links are in use: 64 of 0"]
        self.assertEqual(self.run_command(*words)[1].splitlines(), lines)
        self.assertEqual(self.run_command(*words, "--level", "notice")[1].splitlines(), lines[:1])
        self.assertEqual(self.run_command(*words, "--count", "1")[1].splitlines(), lines[1:])
        self.assertEqual(self.run_command(*words, "--since", "2026-11-21")[1].splitlines(), lines)
        self.assertEqual(self.run_command(*words, "--since", "2026-11-22")[1], "")
        self.assertEqual(self.run_command(*words, "--since", "boot")[1].splitlines(), lines)

    def test_log_follows(self):
        journal = JournalFile(self.path("journal"))
        for number in range(20):
            journal.record(33, 4, a=number)
        log = self.start("log", "--journal", self.path("journal"), "--follow")
        for number in range(10, 20):
            self.assertIn(f"in use: {number} of".encode(), log.stdout.readline())
        journal.record(33, 4, a=99)
        self.assertIn(b"in use: 99 of", log.stdout.readline())

    def test_log_refuses_what_is_no_journal(self):
        for content, reason in ((b"", "empty"), (b"x" * 9000, "not a Causeway journal")):
            with open(self.path("journal"), "wb") as file:
                file.write(content)
            code, _, err = self.run_command("log", "--journal", self.path("journal"))
            self.assertEqual(code, 1)
            self.assertIn(reason, err)

    def test_verify_shows_the_code_of_both_keys(self):
        for name in ("böb", "b0b0", BOB.hex()):
            code, out, err = self.run_command("peer", "verify", name, node=ALICE)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, f"^böb {BOB.hex()}\n[0-9]{{5}}( [0-9]{{5}}){{5}}\n$")
        self.assertEqual(self.run_command("peer", "verify", "alice", node=BOB)[1].splitlines()[1], out.splitlines()[1])

    def test_verify_waits_for_its_peer(self):
        self.daemon.present = False
        verify = self.start("peer", "verify", "böb", "--seconds", "20", node=ALICE)
        self.assertEqual(verify.stderr.readline().decode(), "causeway: waiting for “böb”\n")
        self.attached(ALICE)
        self.daemon.tell(ALICE, peer(BOB, hops=1, info=()))
        code, out, _ = self.end(verify)
        self.assertEqual(code, 0)
        self.assertIn(BOB.hex(), out)

    def test_verify_waits_no_longer_for_who_is_gone(self):
        verify = self.start("peer", "verify", "bob", "--seconds", "1", node=ALICE)
        self.attached(ALICE)
        self.daemon.tell(ALICE, b"L" + BOB)
        code, _, err = self.end(verify)
        self.assertEqual(code, 4)
        self.assertIn("no peer “bob” appeared; “causeway peers” lists the peers", err)

    def test_verify_takes_no_name_of_two(self):
        self.daemon.others = [BOB2]
        code, _, err = self.run_command("peer", "verify", "böb", node=ALICE)
        self.assertEqual(code, 1)
        self.assertIn(f"several peers are called “böb”: {BOB.hex()}, {BOB2.hex()}; give the first digits of an id", err)


if __name__ == "__main__":
    unittest.main()
