"""Commands as people use them: with input and output in a file, in a pipe, or on a pseudo-terminal. Two boxes, alice's
and bob's, run on the loopback interface. Other applications are written from docs/local-api.md
(Examples/python/causeway.py)."""
import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

from causeway import Node
from daemons import BINARY, Daemon, wait

SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


class Command:
    """A running command without a terminal. `heard` contains its lines of standard output and standard error as they
    arrive. The order of lines from different streams is unknown. So `wait` consumes only lines of the stream that has
    the match."""

    def __init__(self, daemon, *words, input=subprocess.PIPE, output=subprocess.PIPE, command=None):
        self.process = subprocess.Popen(
            command or [BINARY, *words, "--config", daemon.config], stdin=input, stdout=output, stderr=subprocess.PIPE)
        self.heard, self.arrived = [], threading.Condition()
        streams = [stream for stream in (self.process.stdout, self.process.stderr) if stream]
        self.unread = [[] for _ in streams]
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True) for pair in zip(streams, self.unread)]
        for reader in self.readers:
            reader.start()

    def _read(self, stream, unread):
        for line in stream:
            text = self.shown(line.decode(errors="replace").rstrip("\n"))
            with self.arrived:
                unread.append(text)
                self.heard.append(text)
                self.arrived.notify()

    def shown(self, line):
        return line

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def wait(self, pattern, seconds=20):
        """Wait for the next line that matches `pattern`, in either stream. Returns the line."""
        with self.arrived:
            match = self.arrived.wait_for(lambda: self._next(pattern), seconds)
            assert match, f"no line “{pattern}” in {seconds} s, but {self.heard[-20:]}"
            return match.string

    def _next(self, pattern):
        for unread in self.unread:
            for place, line in enumerate(unread):
                if match := re.search(pattern, line):
                    del unread[:place + 1]
                    return match
        return None

    def end(self, seconds=20):
        """Close the command's input and wait for its end. Returns the exit status. `heard` is complete then."""
        if self.process.stdin:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        code = self.process.wait(seconds)
        for reader in self.readers:
            reader.join(seconds)
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


class Terminal:
    """A command on a pseudo-terminal. `screen` contains the lines that a person sees. It knows only the terminal
    control codes that these commands use."""

    def __init__(self, command, columns=60, rows=24, environment=None):
        self.master, slave = pty.openpty()
        self.columns, self.rows = columns, rows
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave, self.open = slave, (self.master, slave)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", **(environment or {})})
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.raw, self.rest = "", ""
        self.screen, self.row, self.column = [""], 0, 0

    def resize(self, columns, rows):
        self.columns = columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys.encode())

    def answer(self, keys):
        """Type an answer to a question. A question ignores what is typed in its first second, so this waits longer."""
        end = time.monotonic() + 1.3
        while time.monotonic() < end:
            self.read()
        self.type(keys)

    def read(self, seconds=0.1):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            return False
        self._show(self.decoder.decode(data))
        return bool(data)

    def _show(self, text):
        self.raw += text
        text, self.rest = self.rest + text, ""
        while text:
            if text[0] == "\x1b":
                match = SEQUENCE.match(text)
                if not match:
                    self.rest = text
                    return
                self._sequence(int(match[1].split(";")[0] or 1) if match[1] else 1, match[2])
                text = text[match.end():]
                continue
            character, text = text[0], text[1:]
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self.row += 1
                while len(self.screen) <= self.row:
                    self.screen.append("")
            elif character >= " ":
                if self.column == self.columns:
                    self.column = 0
                    self._show("\n")
                line = self.screen[self.row].ljust(self.column)
                self.screen[self.row] = line[:self.column] + character + line[self.column + 1:]
                self.column += 1

    def _sequence(self, count, final):
        match final:
            case "K":
                self.screen[self.row] = self.screen[self.row][:self.column]
            case "J":
                self.screen[self.row] = self.screen[self.row][:self.column]
                del self.screen[self.row + 1:]
            case "A":
                self.row = max(0, self.row - count)
            case "C":
                self.column += count
            case "H":
                self.screen, self.row, self.column = [""], 0, 0

    @property
    def line(self):
        """The line of the screen on which the cursor is."""
        return self.screen[self.row]

    def wait(self, what, predicate, seconds=20):
        end = time.monotonic() + seconds
        while not predicate():
            assert time.monotonic() < end, f"{what}: not within {seconds} s: {self.screen}"
            self.read()

    def wait_line(self, pattern, seconds=20):
        """Wait for a line on the screen that matches. Returns the line."""
        self.wait(pattern, lambda: any(re.search(pattern, line) for line in self.screen), seconds)
        return next(line for line in self.screen if re.search(pattern, line))

    def end(self, seconds=20):
        """Wait for the command's end and read its last output. Returns the exit status."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.screen}"
            self.read()
        while self.read(0.2):
            pass
        return self.process.returncode

    def is_restored(self):
        """Whether the terminal has the same modes as before the start of the command."""
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for descriptor in self.open:
            os.close(descriptor)
        self.open = ()


class PeopleTest(unittest.TestCase):
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
        """The address of the first application found that offers a service."""
        for sighting in node.browse(service):
            if sighting.kind == "found":
                return sighting.address
