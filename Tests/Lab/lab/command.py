"""User commands that run in parallel with the scenario: their input, and their events with the time."""

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
    """A command on a node's box, such as `chat` or `send`, with JSON output. `events` has (when, event) as they arrive."""

    def __init__(self, node, verb, *arguments, input=None, on_terminal=False):
        """`input` is the whole input. Without it, `say` and `close` provide the input. On a terminal the command may ask."""
        self.name, self.verb = node.name, verb
        self.events, self.errors = [], []
        # Sockets are files that the boxes share, so no namespace needs to be entered.
        words = [PROGRAM, verb, "--config", node.configuration_file, "--json", *arguments]
        own, ends = pty.openpty() if on_terminal else (None, subprocess.PIPE)
        self._child = subprocess.Popen(
            [str(word) for word in words], stdin=ends, stdout=subprocess.PIPE, stderr=ends)
        if on_terminal:
            os.close(ends)
        self._input = open(own, "r+b", 0) if on_terminal else self._child.stdin
        self._errors = self._input if on_terminal else self._child.stderr
        self._line = ""                              # the last line of its standard error, still without an end
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
        with contextlib.suppress(OSError):           # reading a terminal fails once the command has closed it
            while data := os.read(self._errors.fileno(), 4096):
                *lines, self._line = (self._line + decoder.decode(data)).split("\n")
                self.errors += [line.rstrip("\r") for line in lines]

    def say(self, text):
        """Write text to its input. Returns the time afterwards."""
        self._input.write(text.encode())
        self._input.flush()
        return time.monotonic()

    def answer(self, text):
        """Answer the question on its terminal, which takes no answer in its first second."""
        time.sleep(1.3)
        return self.say(text + "\n")

    def close(self):
        """Close its input."""
        self._input.close()

    def wait_question(self, timeout=60):
        """Wait until it asks a question on its terminal. Returns the question."""
        return wait_until(f"{self} asks", lambda: self._line.endswith("[y/N] ") and self._line, timeout, 0.02).rstrip()

    def told(self, word, **wanted):
        """Its events with this name and these values, as (when, event)."""
        return [(when, event) for when, event in list(self.events)
                if event["event"] == word and wanted.items() <= event.items()]

    def wait_told(self, word, timeout=60, **wanted):
        """Wait for the first event with this name and these values. Returns (when, event). Fails if the command ends
        without it."""
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
        """Whether it has ended and all its output has been read."""
        if self._child.poll() is None:
            return False
        for reader in self._readers:
            reader.join(5)
        return True

    def end(self, code=0, timeout=120):
        """Wait until it ends with this exit code."""
        try:
            wait_until(f"{self} ends", self.is_done, timeout, 0.02)
        except CheckFailed as failure:
            raise CheckFailed(f"{failure}; {self.report()}") from None
        check(self._child.returncode == code, f"{self} ends with {code}", lambda: (self._child.returncode, self.report()))

    def stop(self):
        """Ask it to end (SIGTERM)."""
        self._child.terminate()

    def report(self):
        return [event for _, event in self.events[-10:]] + self.errors[-10:]

    def __str__(self):
        return f"{self.name}'s {self.verb}"


class Talk(Command):
    """`causeway chat` with one other node."""

    def __init__(self, node, other, *arguments):
        super().__init__(node, "chat", "--with", other.name, *arguments)
        self.said = 0

    def say_line(self, line):
        self.said += 1
        return self.say(line + "\n")

    def wait_line(self, line, timeout=60):
        """Wait until a member has sent this line. Returns the time."""
        return self.wait_told("message", timeout, text=line)[0]

    def lines(self):
        """The received lines, as a screen shows them."""
        return [f"<{event['name']}> {event['text']}" for _, event in self.told("message")]

    def wait_delivered(self, timeout=60):
        """Wait until all sent lines have reached the other."""
        if self.said:
            self.wait_told("delivered", timeout, lines=self.said)


def end_talks(talks, timeout=60):
    """End all chats once everything is delivered, because lines in flight to a member that has left would be lost."""
    for talk in talks:
        talk.wait_delivered(timeout)
    for talk in talks:
        talk.close()
    for talk in talks:
        talk.end(0, timeout)


def chat(a, b, line="Hello {}, this is {}.", timeout=60):
    """Two nodes each send one line to the other, and each receives one."""
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
