"""Questions to a person on a terminal, and input that must not answer them."""
# seconds: 45
import os
import signal
import tempfile
import time
import unittest
import zlib

from daemons import BINARY, Daemon, wait
from people import PeopleTest, Terminal
from causeway import Result
from stranger import ANSWER, DECLINED, STORED, Offer, leaf

EARLY = "typed before the prompt could be read"


class ConsentTest(PeopleTest):
    @property
    def type(self):
        return f"c{zlib.crc32(self._testMethodName.encode())}"

    def asks(self, command, *words):
        """Run a command of bob's on a terminal, and wait until alice finds the service that the command offers."""
        terminal = self.terminal(self.b, command, *words, columns=200)
        wait("it is there", lambda: self.type in self.a.run("browse", "--for", "1")[1])
        return terminal

    def receiver(self):
        return self.asks("receive", tempfile.mkdtemp(dir=self.root.name), "--type", self.type)

    def offer(self, name):
        return Offer(self.application(self.a, f"offers {name}"), self.type, name, [name], 3)

    def invite(self, name, context=b""):
        node = self.application(self.a, name)
        session = node.open_session(self.type)
        session.invite(self.address(node, self.type), context=context)
        return session

    def type_ahead(self, terminal, keys):
        """Type before a question is asked, and wait until the terminal has echoed the keys."""
        terminal.type(keys)
        terminal.wait("it is echoed", lambda: keys.strip() in terminal.raw)

    def stays_asked(self, terminal, question):
        terminal.wait("it is asked", lambda: question in terminal.line)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            terminal.read()
        self.assertRegex(terminal.line, question + r".*Accept\? \[y/N\] $")

    def test_a_yes_that_was_typed_before_the_question_accepts_no_offer(self):
        terminal = self.receiver()
        self.type_ahead(terminal, "y\n")
        self.offer("unseen")
        self.stays_asked(terminal, "offers “unseen”")

    def test_a_second_yes_typed_with_the_first_accepts_only_the_first_offer(self):
        terminal = self.receiver()
        self.offer("first")
        terminal.wait_line("offers “first”")
        self.offer("second")
        terminal.answer("y\ny\n")
        self.stays_asked(terminal, "offers “second”")

    def test_a_yes_within_a_second_after_the_question_accepts_no_offer(self):
        terminal = self.receiver()
        offer = self.offer("quick")
        terminal.wait_line("offers “quick”")
        terminal.type("y\n")
        terminal.wait_line(EARLY)
        self.stays_asked(terminal, "offers “quick”")
        terminal.answer("y\n")
        self.assertEqual(offer.send_file(b"abc", leaf(b"abc")), STORED)

    def test_a_yes_for_an_offer_that_has_ended_accepts_no_other(self):
        terminal = self.receiver()
        harmless = self.offer("harmless")
        terminal.wait_line("offers “harmless”")
        other = self.offer("evil")
        terminal.answer("")
        harmless.session.leave()
        terminal.wait("the other is asked", lambda: "offers “evil”" in terminal.line)
        time.sleep(0.15)
        terminal.type("y\n")
        terminal.wait_line(EARLY)
        self.stays_asked(terminal, "offers “evil”")
        terminal.answer("n\n")
        self.assertEqual(other.records.next(ANSWER)[0], DECLINED)

    def test_a_yes_for_an_invitation_that_has_ended_accepts_no_other(self):
        terminal = self.asks("accept", self.type)
        good = self.invite("one", b"good")
        terminal.wait_line("invites to .*“good”")
        self.invite("two", b"bad")
        terminal.answer("")
        good.leave()
        terminal.wait("the other is asked", lambda: "“bad”" in terminal.line)
        time.sleep(0.15)
        terminal.type("y\n")
        terminal.wait_line(EARLY)
        self.stays_asked(terminal, "“bad”")

    def test_a_half_typed_yes_for_an_offer_that_has_ended_accepts_no_other(self):
        terminal = self.receiver()
        first = self.offer("first")
        terminal.wait_line("offers “first”")
        other = self.offer("second")
        terminal.answer("y")
        time.sleep(0.3)
        first.session.leave()
        terminal.wait("the other is asked", lambda: "offers “second”" in terminal.line)
        terminal.answer("\n")
        self.assertEqual(other.records.next(ANSWER)[0], DECLINED)

    def test_the_end_of_input_declines_the_offer_and_those_that_follow(self):
        terminal = self.receiver()
        offer = self.offer("one")
        terminal.wait_line("offers “one”")
        terminal.answer("\x04")
        self.assertEqual(offer.records.next(ANSWER)[0], DECLINED)
        terminal.wait_line("standard input has ended: everything that needs an answer is declined$")
        self.assertEqual(self.offer("two").records.next(ANSWER)[0], DECLINED)

    def test_a_closed_standard_input_asks_nobody_and_accepts_nothing(self):
        folder = tempfile.mkdtemp(dir=self.root.name)
        terminal = Terminal(
            ["sh", "-c", f"exec {BINARY} receive {folder} --type {self.type} --config {self.b.config} <&-"], columns=200)
        self.addCleanup(terminal.close)
        wait("it is there", lambda: self.type in self.a.run("browse", "--for", "1")[1])
        with self.assertRaises(AssertionError):
            self.offer("unasked")
        terminal.wait_line("was not accepted: not accepted here")
        self.assertNotIn("Accept?", terminal.raw)

    def test_names_and_file_names_cannot_imitate_what_the_box_says(self):
        mallory = Daemon(self.root.name, "mallory", [self.b], display="bob” (verified, b0b01234) “bob")
        self.addCleanup(mallory.stop)
        mallory.start()
        terminal = self.receiver()
        told = "a”. Accept? [y|N] y\u3000\u2800\u3000“b" + "\u0301" * 9
        Offer(self.application(mallory, "offers"), self.type, told, [told], 3)
        terminal.wait("it is asked", lambda: "Accept? [y/N] " in terminal.line and "offers" in terminal.line)
        self.assertRegex(
            terminal.line,
            rf"^\(NOT verified, {mallory.id[:8]}\) “bob' \(verified, b0b01234\) 'bob” offers "
            "“a'\\. Accept\\? \\[y\\|N\\] y 'b\u0301{3}\\?”, 1 file, 3 B; [0-9.]+ .B free")

    def test_a_yes_that_was_typed_before_the_question_accepts_no_invitation(self):
        terminal = self.asks("accept", self.type)
        self.type_ahead(terminal, "y\n")
        self.invite("one")
        self.stays_asked(terminal, "invites to")

    def test_the_question_is_repeated_below_other_output(self):
        terminal = self.asks("accept", self.type)
        first = self.invite("one")
        terminal.wait_line("invites to")
        terminal.answer("y\n")
        terminal.wait_line("was accepted")
        self.invite("two")
        terminal.wait("the next is asked", lambda: "invites to" in terminal.line)
        # The two ends of a connection become connected at different moments.
        wait("it is connected", first.connected)
        self.assertEqual([*first.send(b"a line meanwhile", timeout=20).values()], [Result.DELIVERED])
        terminal.wait_line("> a line meanwhile$")
        self.stays_asked(terminal, "invites to")

    def test_a_question_ends_with_its_offer(self):
        terminal = self.receiver()
        offer = self.offer("short")
        terminal.wait_line("offers “short”")
        offer.session.leave()
        terminal.wait_line("the offer has ended, no answer is needed$")
        self.offer("next")
        self.stays_asked(terminal, "offers “next”")

    def test_a_question_ends_with_an_offer_that_its_sender_cancels(self):
        terminal = self.receiver()
        told = os.path.join(self.root.name, "notes.txt")
        with open(told, "w", encoding="utf-8") as file:
            file.write("notes")
        sender = self.command(self.a, "send", told, "bob", "--type", self.type)
        terminal.wait_line("offers “notes.txt”")
        other = self.offer("next")
        sender.process.send_signal(signal.SIGINT)
        self.assertEqual(sender.end(), 5, sender.heard)
        self.stays_asked(terminal, "offers “next”")
        shown = [line for line in terminal.screen if "notes.txt" in line or "ended" in line or "next" in line]
        for line, pattern in zip(shown, (
                "“alice” offers “notes.txt”", "^causeway: alice: the offer has ended, no answer is needed$",
                "^causeway: alice: “notes.txt”, 1 file, 5 B cancelled by its sender$", "offers “next”"), strict=True):
            self.assertRegex(line, pattern)
        terminal.answer("n\n")
        self.assertEqual(other.records.next(ANSWER)[0], DECLINED)

    def ends_with_its_question(self, daemon, end):
        """Wait for a question about an invitation, and call `end`. The question is shown once, and its line is ended."""
        terminal = self.terminal(daemon, "accept", self.type, columns=200)
        wait("it is there", lambda: self.type in self.a.run("browse", "--for", "1")[1])
        self.invite("one")
        terminal.wait_line("invites to")
        end(terminal)
        terminal.end()
        self.assertEqual((terminal.raw.count("Accept?"), terminal.line), (1, ""), terminal.screen)

    def test_a_question_ends_with_its_command(self):
        self.ends_with_its_question(self.b, lambda terminal: terminal.type("\x03"))

    def test_a_question_ends_with_the_daemon(self):
        daemon = Daemon(self.root.name, "carol", [self.a])
        self.addCleanup(daemon.stop)
        daemon.start()
        self.ends_with_its_question(daemon, lambda terminal: daemon.stop())

    def test_a_pin_by_name_or_first_digits_asks_on_the_terminal(self):
        self.addCleanup(self.b.run, "identity", "untrust", self.a_id)
        for word, name in (("alice", " as “alice”"), (self.a_id[:4], "")):
            terminal = self.terminal(self.b, "identity", "trust", word, columns=300)
            terminal.wait_line(f"Trust {self.a_id}{name}. It was seen as “alice” .linked over loopback, 127.0.0.1:")
            terminal.answer("n\n")
            self.assertEqual(terminal.end(), 1)
        self.assertNotRegex(self.b.identity("show"), f"pinned +{self.a_id}")
        terminal = self.terminal(self.b, "identity", "trust", "alice", columns=300)
        terminal.wait_line(f"Trust {self.a_id} as “alice”")
        terminal.type("y\n")
        terminal.wait_line(EARLY)
        terminal.answer("y\n")
        self.assertEqual(terminal.end(), 0, terminal.screen)
        self.assertRegex(self.b.identity("show"), f"pinned +{self.a_id}  alice  .by the operator")

    def test_a_pin_by_the_whole_id_asks_nothing(self):
        self.addCleanup(self.b.run, "identity", "untrust", "cc" * 16)
        terminal = self.terminal(self.b, "identity", "trust", "cc" * 16, "--name", "cora", columns=300)
        self.assertEqual(terminal.end(), 0, terminal.screen)
        self.assertNotIn("[y/N]", terminal.raw)

    def test_a_pin_without_a_terminal_needs_the_whole_id(self):
        for command in ("trust", "accept"):
            for word in ("alice", self.a_id[:8]):
                self.assertIn("give the whole id", self.b.run("identity", command, word)[2])
        self.assertNotRegex(self.b.identity("show"), f"pinned +{self.a_id}")

    def test_a_revocation_on_a_terminal_asks_first(self):
        terminal = self.terminal(self.b, "identity", "revoke", "alice", columns=200)
        terminal.wait_line(f"Revoke {self.a_id} .“alice”. permanently")
        terminal.answer("n\n")
        self.assertEqual(terminal.end(), 1)
        self.assertIn("alice", self.b.neighbours())
        terminal = self.terminal(self.b, "identity", "revoke", "ffff" * 8, columns=200)
        terminal.wait_line("Revoke ffff")
        terminal.type("y\n")
        terminal.wait_line(EARLY)
        terminal.answer("y\n")
        self.assertEqual(terminal.end(), 0, terminal.screen)

    def test_a_revocation_asks_on_the_terminal_wherever_its_input_and_output_lead(self):
        revoke = f"{BINARY} identity revoke {'ee' * 16} --config {self.b.config}"
        for number, others in enumerate(("2>/dev/null", ">/dev/null 2>&1 </dev/null")):
            terminal = Terminal(["sh", "-c", f"exec {revoke} {others}"], columns=200)
            self.addCleanup(terminal.close)
            terminal.wait_line("Revoke eeee.* permanently")
            terminal.answer(("n\n", "\x04")[number])
            self.assertEqual(terminal.end(), 1)
        self.assertNotIn("ee" * 16, self.b.identity("show"))

    def test_a_revocation_without_a_terminal_needs_a_whole_id_or_yes(self):
        self.assertIn("give the whole id, or add --yes", self.b.run("identity", "revoke", "alice")[2])
        self.assertNotRegex(self.b.identity("show"), f"revoked +{self.a_id}")
        self.assertEqual(self.b.run("identity", "revoke", "dd" * 16)[0], 0)
        self.assertIn("dd" * 16, self.b.identity("show"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
