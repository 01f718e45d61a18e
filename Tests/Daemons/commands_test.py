#!/usr/bin/env python3
"""The commands that people type, against real daemons: commands_test.py BINARY

Two boxes on the loopback interface; terminals are pseudo-terminals. Other applications are written from docs/local-api.md
(Examples/python/causeway.py)."""
import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Examples/python"))

from causeway import Message, Node, Outcome, State
from daemons import BINARY, Daemon, wait
from terminal import Terminal


class Command:
    """A running command that is no terminal's: its lines of standard output and error as they come."""

    def __init__(self, daemon, *words, input=subprocess.PIPE, output=subprocess.PIPE):
        self.process = subprocess.Popen(
            [BINARY, *words, "--config", daemon.config], stdin=input, stdout=output, stderr=subprocess.PIPE)
        self.lines, self.heard = queue.SimpleQueue(), []
        streams = [stream for stream in (self.process.stdout, self.process.stderr) if stream]
        self.readers = [threading.Thread(target=self._read, args=(stream,), daemon=True) for stream in streams]
        for reader in self.readers:
            reader.start()

    def _read(self, stream):
        for line in stream:
            self.lines.put(line.decode(errors="replace").rstrip("\n"))

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def wait(self, pattern, seconds=20):
        """The next line, of either stream, that has this in it."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line “{pattern}” in {seconds} s, but {self.heard[-20:]}") from None
            self.heard.append(line)
            if re.search(pattern, line):
                return line

    def end(self, seconds=20):
        """The exit status; what it said is in `heard`."""
        if self.process.stdin:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        code = self.process.wait(seconds)
        for reader in self.readers:
            reader.join(seconds)
        while not self.lines.empty():
            self.heard.append(self.lines.get())
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for reader in self.readers:
            reader.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                if stream:
                    stream.close()
            except BrokenPipeError:
                pass


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="causeway-")
        cls.addClassCleanup(cls.root.cleanup)
        cls.a = Daemon(cls.root.name, "alice")
        cls.b = Daemon(cls.root.name, "bob", [cls.a])
        for daemon in (cls.a, cls.b):
            cls.addClassCleanup(daemon.stop)
            daemon.start()
        wait("alice and bob are neighbours", lambda: cls.a.neighbours() == ["bob"])
        cls.a_id, cls.b_id = cls.a.id, cls.b.id

    def command(self, daemon, *words, **options):
        command = Command(daemon, *words, **options)
        self.addCleanup(command.close)
        return command

    def terminal(self, daemon, *words, **options):
        terminal = Terminal([BINARY, *words, "--config", daemon.config], **options)
        self.addCleanup(terminal.close)
        return terminal

    def application(self, daemon, name="application"):
        node = Node.connect(name, f"{daemon.directory}/run/api.sock")
        self.addCleanup(node.close)
        return node

    def address(self, node, service):
        """The first address that offers a service."""
        for sighting in node.browse(service):
            if sighting.kind == "found":
                return sighting.address

    # browse

    def test_browse_tells_each_change_in_a_line(self):
        browse = self.command(self.a, "browse", "story")
        service = self.application(self.b).advertise("story", {"room": "4"})
        self.assertEqual(
            browse.wait("^found"), f"found bob ({self.b_id[:8]}) story, 1 hop, not verified, room=4")
        service.update({"room": "5"})
        browse.wait("^changed bob .* room=5$")
        service.close()
        browse.wait("^lost bob ")
        browse.process.send_signal(signal.SIGINT)
        self.assertEqual(browse.end(), 0)

    def test_browse_shows_all_types_and_ends_in_time(self):
        application = self.application(self.b)
        for service in ("chat", "photos"):
            application.advertise(service)
        code, out, err = self.a.run("browse", "--for", "2")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([line.split()[3] for line in out.splitlines()], ["chat,", "photos,"])

    def test_browse_in_json_is_one_object_a_line(self):
        self.application(self.b, 'x"\\').advertise("story", {"name": 'a"\\\u2028b', "x": "ü"})
        _, out, _ = self.a.run("browse", "story", "--json", "--for", "2")
        lines = [json.loads(line) for line in out.splitlines()]
        found = next(line for line in lines if line["event"] == "found")
        endpoint = found.pop("endpoint")
        self.assertRegex(endpoint, "^[0-9a-f]{8}$")
        self.assertEqual(found, {
            "event": "found", "name": "bob", "id": self.b_id, "type": "story", "hops": 1, "verified": False,
            "info": ['name=a"\\\u2028b', "x=ü"]})
        self.assertIn({"event": "all_told"}, lines)

    def test_browse_on_a_terminal_is_a_table_that_is_kept(self):
        terminal = self.terminal(self.a, "browse", "story", columns=44)
        terminal.wait_line("^Nobody yet.$")
        service = self.application(self.b).advertise("story", {"long": "x" * 100})
        line = terminal.wait_line("^bob ")
        self.assertEqual(line, f"bob   {self.b_id[:8]}  story  1     no        long=xxx…"[:43] + "…" if len(line) == 44 else line)
        self.assertLessEqual(len(line), 44)
        self.assertTrue(line.endswith("…"))
        service.close()
        terminal.wait("bob is gone", lambda: not any(line.startswith("bob") for line in terminal.screen))
        self.assertEqual(sum(line.startswith("NAME") for line in terminal.screen), 1)
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)
        self.assertTrue(terminal.is_restored())

    def test_browse_ends_when_nobody_reads_it(self):
        browse = self.command(self.a, "browse")
        browse.process.stdout.close()
        browse.process.stdout = None
        self.assertEqual(browse.end(), 1)

    # chat

    def test_chat_brings_lines_to_all_and_ends_when_they_are_delivered(self):
        b = self.command(self.b, "chat", "one")
        a = self.command(self.a, "chat", "one")
        b.wait(f"alice is here \\({self.a_id[:8]}, 1 hop, not verified\\)")
        a.wait("bob is here")
        a.say("hello, bob\n\nsecond \x1b[2Jline\n")
        self.assertEqual(b.wait("^<"), "<alice> hello, bob")
        # A terminal obeys nothing that a member sends.
        self.assertEqual(b.wait("^<"), "<alice> second ?[2Jline")
        b.say("hello, alice")
        self.assertEqual(b.end(), 0)
        self.assertEqual(a.wait("^<"), "<bob> hello, alice")
        a.wait("bob left$")
        self.assertEqual(a.end(), 0)

    def test_a_line_waits_for_somebody_who_comes(self):
        a = self.command(self.a, "chat", "late")
        a.say("hello\n")
        a.process.stdin.close()
        a.process.stdin = None
        time.sleep(0.5)
        b = self.command(self.b, "chat", "late")
        b.wait("^<alice> hello$")
        self.assertEqual(a.end(), 0)

    def test_nobody_there_is_an_error_after_the_wait(self):
        for words, said in ((["--with", "bob"], "“bob” was not there within 1 s: 1 line was not delivered"),
                            ([], "nobody was there within 1 s: 1 line was not delivered")):
            code, out, err = self.a.run("chat", "nobody", "--wait", "1", *words, input="hi\n")
            self.assertEqual((code, out), (4, ""))
            self.assertIn(said, err)

    def test_a_misspelt_name_is_told_at_once(self):
        self.application(self.b).advertise("names")
        start = time.monotonic()
        code, _, err = self.a.run("chat", "names", "--with", "bbo", input="hi\n")
        self.assertEqual(code, 1)
        self.assertIn("“bbo” is not there: did you mean “bob”?", err)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_conversation_with_one_is_not_sent_to_others(self):
        b = self.command(self.b, "chat", "two")
        c = self.command(self.b, "chat", "two", "--name", "carol")
        a = self.command(self.a, "chat", "two", "--with", "CAROL")
        a.wait("carol@bob is here")
        c.wait("alice is here")
        b.wait("alice is here")
        a.say("for carol\n")
        c.wait("^<alice> for carol$")
        b.say("from bob\n")
        c.wait("^<bob> from bob$")
        c.say("from carol\n")
        a.wait("^<carol@bob> from carol$")
        self.assertFalse([line for line in a.heard if "from bob" in line])

    def test_a_long_line_comes_in_parts_that_end_between_characters(self):
        b = self.command(self.b, "chat", "long")
        a = self.command(self.a, "chat", "long")
        b.wait("alice is here")
        line = "aé" * 45_000
        a.say(line + "\n")
        parts = [b.wait("^<alice> ").removeprefix("<alice> ") for _ in range(3)]
        self.assertEqual("".join(parts), line)
        self.assertEqual(a.end(), 0)

    def test_chat_in_json(self):
        a = self.command(self.a, "chat", "json", "--json")
        self.assertEqual(json.loads(a.wait("self")), {"event": "self", "name": "alice", "id": self.a_id})
        b = self.command(self.b, "chat", "json")
        b.wait("alice is here")
        member = json.loads(a.wait('"connected"'))
        self.assertEqual((member["event"], member["name"], member["id"], member["state"]),
                         ("member", "bob", self.b_id, "connected"))
        b.say('a "quoted" line\n')
        message = json.loads(a.wait('"message"'))
        self.assertEqual((message["name"], message["id"], message["text"]), ("bob", self.b_id, 'a "quoted" line'))
        a.say("x\n")
        self.assertEqual(json.loads(a.wait('"delivered"')), {"event": "delivered", "lines": 1})
        b.process.kill()
        gone = json.loads(a.wait('"crashed"'))
        self.assertEqual((gone["event"], gone["state"]), ("member", "left"))

    def test_a_stopped_reader_keeps_every_line_and_its_order(self):
        b = self.command(self.b, "chat", "slow")
        a = self.command(self.a, "chat", "slow")
        b.wait("alice is here")
        b.process.send_signal(signal.SIGSTOP)
        lines = [f"{number} " + "x" * 20_000 for number in range(150)]
        writer = threading.Thread(target=lambda: a.say("".join(line + "\n" for line in lines)), daemon=True)
        writer.start()
        time.sleep(3)
        b.process.send_signal(signal.SIGCONT)
        for line in lines:
            self.assertEqual(b.wait("^<alice> ", 60).removeprefix("<alice> ")[:10], line[:10])
        writer.join(20)
        self.assertEqual(a.end(), 0)

    def test_lines_for_a_member_that_is_out_of_reach_come_when_it_returns(self):
        b = self.command(self.b, "chat", "away")
        a = self.command(self.a, "chat", "away")
        b.wait("alice is here")
        a.wait("bob is here")
        self.b.process.send_signal(signal.SIGSTOP)
        try:
            a.wait("bob is out of reach", 40)
            a.say("are you there?\n")
            time.sleep(1)
        finally:
            self.b.process.send_signal(signal.SIGCONT)
        a.wait("bob is back", 40)
        b.wait("^<alice> are you there\\?$", 40)
        self.assertEqual(a.end(), 0)

    def test_two_chats_of_one_name_are_told_apart_by_a_name(self):
        first = self.command(self.a, "chat", "same")
        wait("the first one is there", lambda: "same" in self.b.run("browse", "--for", "1")[1])
        code, _, err = self.a.run("chat", "same", input="")
        self.assertEqual(code, 1)
        self.assertIn("give one of the two a --name", err)
        self.assertEqual(first.end(), 0)

    def test_closed_descriptors_end_a_chat(self):
        for redirection, code in (("<&-", 0), ("</dev/null", 0), ("</dev/null >&-", 0), (">&- --json", 1)):
            done = subprocess.run(
                f"exec {BINARY} chat closed --config {self.a.config} {redirection}", shell=True, timeout=20,
                stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual(done.returncode, code, redirection)

    # chat on a terminal

    def typing(self, service, **options):
        """A chat on a terminal of alice's, and one of bob's that is none."""
        b = self.command(self.b, "chat", service)
        a = self.terminal(self.a, "chat", service, **options)
        b.wait("alice is here")
        a.wait_line("bob is here")
        return a, b

    def test_text_that_comes_does_not_break_the_line_that_is_typed(self):
        a, b = self.typing("typed")
        a.type("hél")
        a.wait("the line is shown", lambda: a.line == "> hél")
        b.say("in between\n")
        a.wait_line("^<bob> in between$")
        a.wait("the line is below", lambda: a.line == "> hél" and a.column == 5)
        self.assertEqual(sum("hél" in line for line in a.screen), 1)
        a.type("\x1b[D\x7f")
        a.wait("é is gone", lambda: a.line == "> hl" and a.column == 3)
        a.type("el\x05lo\r")
        self.assertEqual(b.wait("^<"), "<alice> hello")
        a.wait_line("^<alice> hello$")
        a.wait("all have it", lambda: a.line.strip() == "✓ >")
        a.type("\x04")
        self.assertEqual(a.end(), 0)
        self.assertTrue(a.is_restored())
        b.wait("alice left")

    def test_a_line_longer_than_the_terminal_stays_one_row(self):
        a, b = self.typing("wide", columns=30)
        text = "".join(f"word{number} " for number in range(20))
        a.type(text)
        a.wait("its end is shown", lambda: a.line.startswith("> ") and a.line.endswith("word19"))
        self.assertLessEqual(len(a.line), 30)
        b.say("x\n")
        a.wait_line("^<bob> x$")
        a.wait("the line is below", lambda: a.line.endswith("word19"))
        self.assertEqual(sum("word" in line for line in a.screen), 1)
        a.type("\r")
        self.assertEqual(b.wait("^<"), "<alice> " + text)

    def test_interrupt_leaves_and_restores_the_terminal(self):
        a, b = self.typing("interrupt")
        a.type("half a line\x03")
        self.assertEqual(a.end(), 0)
        self.assertTrue(a.is_restored())
        b.wait("alice left")

    def test_the_second_interrupt_gives_lines_up(self):
        a = self.terminal(self.a, "chat", "giveup", "--with", "bob")
        a.wait("the prompt", lambda: a.line.startswith("nobody yet >"))
        a.type("hello\r")
        a.wait("one line waits", lambda: a.line.startswith("1… >"))
        a.type("\x03")
        a.wait_line("1 line is not delivered yet; \\^C gives up")
        a.type("\x03")
        self.assertEqual(a.end(), 1)
        a.wait_line("gave up: 1 line was not delivered")
        self.assertTrue(a.is_restored())

    def test_stopping_and_going_on_gives_and_takes_the_terminal(self):
        a, b = self.typing("stop")
        a.type("hel")
        a.wait("it is typed", lambda: a.line == "> hel")
        a.type("\x1a")
        wait("it stops", lambda: "State:\tT" in open(f"/proc/{a.process.pid}/status").read())
        self.assertTrue(a.is_restored())
        a.process.send_signal(signal.SIGCONT)
        a.type("lo\r")
        b.wait("^<alice> hello$")

    def test_a_daemon_that_ends_is_told_with_the_terminal_as_it_was(self):
        daemon = Daemon(self.root.name, "carol")
        self.addCleanup(daemon.stop)
        daemon.start()
        terminal = self.terminal(daemon, "chat")
        terminal.wait_line("you are carol")
        terminal.type("half")
        daemon.stop()
        self.assertEqual(terminal.end(), 1)
        terminal.wait_line("^causeway: the daemon ")
        self.assertTrue(terminal.is_restored())

    def test_colours_are_left_out_where_they_are_not_wanted(self):
        for environment, has_colour in (({}, True), ({"NO_COLOR": "1"}, False)):
            terminal = self.terminal(self.a, "chat", "colour", environment=environment)
            terminal.wait_line("you are alice")
            self.assertEqual("\x1b[2m" in terminal.raw, has_colour)
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)

    # accept

    def invited(self, *words, service, terminal=False):
        """`accept` on alice's box, and an application of bob's that has invited it: the command, session, invitation."""
        accept = (self.terminal if terminal else self.command)(self.a, "accept", service, *words)
        node = self.application(self.b)
        session = node.open_session(service)
        return accept, session, session.invite(self.address(node, service), b"join us")

    def test_accept_declines_whose_key_is_not_pinned(self):
        accept, _, invitation = self.invited(service="door")
        self.assertEqual(invitation.wait(20), (Outcome.DECLINED, "not accepted here"))
        accept.wait("bob .* was not accepted")
        accept.process.send_signal(signal.SIGTERM)
        self.assertEqual(accept.end(), 0)

    def test_accept_takes_a_peer_by_its_whole_id_and_shows_its_messages(self):
        accept, session, invitation = self.invited("--from", self.b_id, service="door-id")
        self.assertEqual(invitation.wait(20)[0], Outcome.CONNECTED)
        accept.wait("bob is here")
        session.send(b"hello", timeout=20)
        accept.wait("^<bob> hello$")

    def test_the_beginning_of_an_id_lets_in_no_stranger(self):
        _, _, invitation = self.invited("--from", self.b_id[:8], "--from", "bob", service="door-short")
        self.assertEqual(invitation.wait(20)[0], Outcome.DECLINED)

    def test_accept_takes_peers_whose_keys_are_pinned(self):
        self.a.identity("trust", self.b_id, "--name", "bob")
        try:
            for words in ((), ("--from", "bob")):
                accept, session, invitation = self.invited(*words, service="door-pinned")
                self.assertEqual(invitation.wait(20)[0], Outcome.CONNECTED)
                session.leave()
                accept.close()
        finally:
            self.a.identity("untrust", self.b_id)

    def test_accept_asks_on_a_terminal(self):
        for key, outcome in (("y\r", Outcome.CONNECTED), ("\r", Outcome.DECLINED)):
            accept, session, invitation = self.invited(service="door-ask", terminal=True)
            accept.wait_line("^bob \\(NOT verified, [0-9a-f]{8}\\) invites to “door-ask”, 1 member")
            accept.type(key)
            self.assertEqual(invitation.wait(20)[0], outcome)
            accept.close()

    # pipe

    def pipe(self, service, data=None):
        listener = self.command(
            self.b, "pipe", "--listen", service, "--from", self.a_id, output=open(self.path(service), "wb"))
        sender = self.command(self.a, "pipe", "bob", service)
        if data is not None:
            sender.process.stdin.write(data)
        return sender, listener

    def path(self, name):
        return os.path.join(self.root.name, "output-" + name)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_a_pipe_brings_every_byte_and_both_ends_know_it(self):
        data = os.urandom(3_000_000)
        sender, listener = self.pipe("whole", data)
        self.assertEqual((sender.end(60), listener.end(60)), (0, 0), (sender.heard, listener.heard))
        self.assertEqual(hashlib.sha256(self.content("whole")).digest(), hashlib.sha256(data).digest())

    def test_an_empty_pipe_is_whole(self):
        sender, listener = self.pipe("empty", b"")
        self.assertEqual((sender.end(), listener.end()), (0, 0), (sender.heard, listener.heard))
        self.assertEqual(self.content("empty"), b"")

    def test_a_cut_is_told_apart_from_the_end(self):
        sender, listener = self.pipe("cut", b"beginning")
        sender.process.stdin.flush()
        wait("the beginning is there", lambda: self.content("cut") == b"beginning")
        sender.process.send_signal(signal.SIGINT)
        self.assertEqual((sender.process.wait(20), listener.end()), (5, 5), listener.heard)
        self.assertIn("the other end cut the stream", listener.heard[-1])

    def test_a_sender_that_is_killed_cuts_its_stream(self):
        sender, listener = self.pipe("killed", b"beginning")
        sender.process.stdin.flush()
        wait("the beginning is there", lambda: self.content("killed") == b"beginning")
        sender.process.kill()
        self.assertEqual(listener.end(), 5, listener.heard)

    def test_a_reader_that_has_seen_enough_is_told_to_the_writer(self):
        reader = subprocess.Popen(
            f"{BINARY} pipe --listen head --from {self.a_id} --config {self.b.config} | head -c 5", shell=True,
            stdout=subprocess.PIPE)
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait)
        sender = self.command(self.a, "pipe", "bob", "head", input=open("/dev/zero", "rb"))
        self.assertEqual(sender.end(30), 5, sender.heard)
        self.assertEqual(reader.stdout.read(), bytes(5))

    def test_a_pipe_that_is_not_accepted_says_so(self):
        listener = self.command(self.b, "pipe", "--listen", "refused")
        sender = self.command(self.a, "pipe", "bob", "refused")
        self.assertEqual(sender.end(), 6, sender.heard)
        listener.wait("alice .* was not accepted")

    def test_a_pipe_to_nobody_ends_with_the_wait(self):
        code, _, err = self.a.run("pipe", "bob", "absent", "--wait", "1", input="x")
        self.assertEqual(code, 4)
        self.assertIn("“bob” was not there in time", err)


if __name__ == "__main__":
    unittest.main()
