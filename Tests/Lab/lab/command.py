"""User commands that run in parallel with the scenario: their input, and their events with the times of arrival."""

import codecs
import contextlib
import json
import os
import pty
import subprocess
import threading
import time

from .node import PROGRAM
from .story import CheckFailed, check, wait_until


class Command:
    """A command on a node's box, such as `chat` or `send`, with JSON output. `events` contains (time, event) as they
    arrive."""

    def __init__(self, node, verb, *arguments, input=None, on_terminal=False):
        """`input` is all of the input. Without it, `say` and `close` provide the input. On a terminal the command may
        ask questions."""
        self.name, self.verb = node.name, verb
        self.events, self.errors = [], []
        # The command needs no namespace to reach the daemon's socket, because all boxes share that directory.
        words = [PROGRAM, verb, "--config", node.configuration_file, "--json", *arguments]
        own, ends = pty.openpty() if on_terminal else (None, subprocess.PIPE)
        self._child = subprocess.Popen(
            [str(word) for word in words], stdin=ends, stdout=subprocess.PIPE, stderr=ends)
        if on_terminal:
            os.close(ends)
        self._input = open(own, "r+b", 0) if on_terminal else self._child.stdin
        self._errors = self._input if on_terminal else self._child.stderr
        self._line = ""                              # the last line of standard error while it is incomplete
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._listen, self._complain)]
        for reader in self._readers:
            reader.start()
        if input is not None:
            self.say(input)
            self.close()

    def _listen(self):
        for line in self._child.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    def _complain(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with contextlib.suppress(OSError):           # reading fails when the command has closed its terminal
            while data := os.read(self._errors.fileno(), 4096):
                *lines, self._line = (self._line + decoder.decode(data)).split("\n")
                self.errors += [line.rstrip("\r") for line in lines]

    def say(self, text):
        """Write text to the command's input. Returns the time after the write."""
        self._input.write(text.encode())
        self._input.flush()
        return time.monotonic()

    def answer(self, text):
        """Answer the question on the command's terminal. The command ignores input in the first second of a
        question."""
        time.sleep(1.3)
        return self.say(text + "\n")

    def close(self):
        """Close the command's input."""
        self._input.close()

    def wait_question(self, timeout=60):
        """Wait until the command asks a question on its terminal. Returns the question."""
        return wait_until(f"{self} asks", lambda: self._line.endswith("[y/N] ") and self._line, timeout, 0.02).rstrip()

    def told(self, word, **wanted):
        """The command's events with this name and these values, as a list of (time, event)."""
        return [(when, event) for when, event in list(self.events)
                if event["event"] == word and wanted.items() <= event.items()]

    def wait_told(self, word, timeout=60, **wanted):
        """Wait for the first event with this name and these values. Returns (time, event). Fails if the command ends
        without such an event."""
        def look():
            is_over = self.is_done()
            if not (found := self.told(word, **wanted)) and is_over:
                raise CheckFailed(f"{self} ended without “{word}” {wanted}: {self.report()}")
            return found

        try:
            return wait_until(f"{self} tells “{word}” {wanted}", look, timeout, 0.02)[0]
        except CheckFailed as failure:
            raise CheckFailed(f"{failure}; {self.report()}") from None

    def is_done(self):
        """Whether the command has ended and all its output has been read."""
        if self._child.poll() is None:
            return False
        for reader in self._readers:
            reader.join(5)
        return True

    def end(self, code=0, timeout=120):
        """Wait until the command ends, and check its exit code."""
        try:
            wait_until(f"{self} ends", self.is_done, timeout, 0.02)
        except CheckFailed as failure:
            raise CheckFailed(f"{failure}; {self.report()}") from None
        check(self._child.returncode == code, f"{self} ends with {code}", lambda: (self._child.returncode, self.report()))

    def stop(self):
        """Send SIGTERM, which asks the command to end."""
        self._child.terminate()

    def report(self):
        return [event for _, event in self.events[-10:]] + self.errors[-10:]

    def __str__(self):
        return f"{self.name}'s {self.verb}"


class Talk(Command):
    """`causeway chat` with one other node as the partner."""

    def __init__(self, node, other, *arguments):
        super().__init__(node, "chat", "--with", other.name, *arguments)
        self.said = 0

    def say_line(self, line):
        self.said += 1
        return self.say(line + "\n")

    def wait_line(self, line, timeout=60):
        """Wait until a member has sent this line. Returns the time of its arrival."""
        return self.wait_told("message", timeout, text=line)[0]

    def lines(self):
        """The received lines in the form in which a terminal shows them."""
        return [f"<{event['name']}> {event['text']}" for _, event in self.told("message")]

    def wait_delivered(self, timeout=60):
        """Wait until all sent lines are delivered to the partner."""
        if self.said:
            self.wait_told("delivered", timeout, lines=self.said)


def end_talks(talks, timeout=60):
    """End all chats when everything is delivered. Lines in flight to a member that has left would be lost."""
    for talk in talks:
        talk.wait_delivered(timeout)
    for talk in talks:
        talk.close()
    for talk in talks:
        talk.end(0, timeout)


def chat(a, b, line="Hello {}, this is {}.", timeout=60):
    """Let two nodes chat: each sends one line to the other and receives one."""
    talks = [Talk(a, b, "--wait", timeout), Talk(b, a, "--wait", timeout)]
    for talk, (own, other) in zip(talks, ((a, b), (b, a))):
        talk.say_line(line.format(other.name, own.name))
    for talk, (own, other) in zip(talks, ((a, b), (b, a))):
        talk.wait_line(line.format(own.name, other.name), timeout)
    end_talks(talks, timeout)
    for talk, (own, other) in zip(talks, ((a, b), (b, a))):
        expected = [f"<{other.name}> " + line.format(own.name, other.name)]
        check(talk.lines() == expected, f"{own.name} gets {other.name}'s line", talk.lines())
    return talks
