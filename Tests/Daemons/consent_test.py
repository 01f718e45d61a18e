#!/usr/bin/env python3
"""Questions to a person on a terminal, and what does not answer them: consent_test.py BINARY"""
import tempfile
import time
import unittest
import zlib

from daemons import wait
from people import PeopleTest
from stranger import Offer


class ConsentTest(PeopleTest):
    @property
    def type(self):
        return f"c{zlib.crc32(self._testMethodName.encode())}"

    def asks(self, command, *words):
        """A command of bob's on a terminal, which offers the test's service."""
        terminal = self.terminal(self.b, command, *words, columns=200)
        wait("it is there", lambda: self.type in self.a.run("browse", "--for", "1")[1])
        return terminal

    def receiver(self):
        return self.asks("receive", tempfile.mkdtemp(dir=self.root.name), "--type", self.type)

    def offer(self, name):
        return Offer(self.application(self.a, f"offers {name}"), self.type, name, [name], 3)

    def invite(self, name):
        node = self.application(self.a, name)
        session = node.open_session(self.type)
        session.invite(self.address(node, self.type))
        return session

    def type_ahead(self, terminal, keys):
        """Types before anything is asked, and waits until the terminal has shown it."""
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
        time.sleep(0.5)
        terminal.type("y\ny\n")
        self.stays_asked(terminal, "offers “second”")

    def test_a_yes_that_was_typed_before_the_question_accepts_no_invitation(self):
        terminal = self.asks("accept", self.type)
        self.type_ahead(terminal, "y\n")
        self.invite("one")
        self.stays_asked(terminal, "invites to")

    def test_the_question_is_repeated_below_other_output(self):
        terminal = self.asks("accept", self.type)
        first = self.invite("one")
        terminal.wait_line("invites to")
        terminal.type("y\n")
        terminal.wait_line("was accepted")
        self.invite("two")
        terminal.wait("the next is asked", lambda: "invites to" in terminal.line)
        first.send(b"a line meanwhile")
        terminal.wait_line("> a line meanwhile$")
        self.stays_asked(terminal, "invites to")

    def test_a_question_ends_with_its_offer(self):
        terminal = self.receiver()
        offer = self.offer("short")
        terminal.wait_line("offers “short”")
        offer.session.leave()
        terminal.wait_line("its offer is over$")
        self.offer("next")
        self.stays_asked(terminal, "offers “next”")

    def test_a_revocation_on_a_terminal_asks_first(self):
        terminal = self.terminal(self.b, "identity", "revoke", "alice", columns=200)
        terminal.wait_line(f"Revoke {self.a_id} .“alice”. for ever")
        terminal.type("n\n")
        self.assertEqual(terminal.end(), 1)
        self.assertIn("alice", self.b.neighbours())
        terminal = self.terminal(self.b, "identity", "revoke", "ffff" * 8, columns=200)
        terminal.wait_line("Revoke ffff")
        terminal.type("y\n")
        self.assertEqual(terminal.end(), 0, terminal.screen)


if __name__ == "__main__":
    unittest.main(argv=["consent_test.py"], verbosity=2)
