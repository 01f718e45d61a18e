"""The command `chat` with real daemons, with and without a terminal."""
# seconds: 50
import json
import pathlib
import signal
import subprocess
import threading
import time
import unittest

from people import PeopleTest

from daemons import BINARY, Daemon, wait


class ChatTest(PeopleTest):
    # chat

    def test_chat_brings_lines_to_all_and_ends_when_they_are_delivered(self):
        b = self.command(self.b, "chat", "one")
        a = self.command(self.a, "chat", "one")
        b.wait(f"alice is here \\({self.a_id[:8]}, 1 hop, not verified\\)")
        a.wait("bob is here")
        a.say("hello, bob\n\nsecond \x1b[2Jline\n")
        self.assertEqual(b.wait("^<"), "<alice> hello, bob")
        # Control characters in a member's message are replaced before printing.
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
        for words, said in ((["--with", "bob"], "“bob” did not appear within 1 s: 1 line was not delivered"),
                            ([], "no peer appeared within 1 s: 1 line was not delivered")):
            code, out, err = self.a.run("chat", "nobody", "--wait", "1", *words, input="hi\n")
            self.assertEqual((code, out), (4, ""))
            self.assertIn(said, err)

    def test_a_misspelt_name_is_told_at_once(self):
        self.application(self.b).advertise("names")
        start = time.monotonic()
        code, _, err = self.a.run("chat", "names", "--with", "bbo", input="hi\n")
        self.assertEqual(code, 1)
        self.assertIn("“bbo” is not in reach: did you mean “bob”?", err)
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

    def test_a_line_after_its_reader_left_is_told_in_time_with_the_name(self):
        b = self.command(self.b, "chat", "left")
        a = self.command(self.a, "chat", "left", "--with", "bob", "--wait", "2")
        a.wait("bob is here")
        b.wait("alice is here")
        self.assertEqual(b.end(), 0)
        a.wait("bob left", 5)
        a.say("are you there?\n")
        start = time.monotonic()
        self.assertEqual(a.end(), 4)
        self.assertLess(time.monotonic() - start, 10)
        self.assertIn("“bob” did not appear within 2 s: 1 line was not delivered", a.heard[-1])

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
        """Start a chat of alice on a terminal, and a chat of bob without a terminal, and wait until each sees the
        other."""
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
        a.type("e\x05lo\r")
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
        a.wait("its end is shown", lambda: a.line.startswith("> ") and a.line.rstrip().endswith("word19"))
        self.assertLessEqual(len(a.line), 30)
        b.say("x\n")
        a.wait_line("^<bob> x$")
        a.wait("the line is below", lambda: a.line.rstrip().endswith("word19"))
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
        a.wait_line("1 line was not delivered yet; \\^C leaves anyway")
        a.type("\x03")
        self.assertEqual(a.end(), 1)
        a.wait_line("gave up: 1 line was not delivered")
        self.assertTrue(a.is_restored())

    def test_stopping_and_going_on_gives_and_takes_the_terminal(self):
        a, b = self.typing("stop")
        a.type("hel")
        a.wait("it is typed", lambda: a.line == "> hel")
        a.type("\x1a")
        wait("it stops", lambda: "State:\tT" in pathlib.Path(f"/proc/{a.process.pid}/status").read_text())
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


if __name__ == "__main__":
    unittest.main()
