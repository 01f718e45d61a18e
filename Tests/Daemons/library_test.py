#!/usr/bin/env python3
"""The library as its users get it, by the causeway binary: library_test.py BINARY

A throw-away package outside the project depends on a version of a clone, by URL, and is built with nothing but the Swift
toolchain. Its program is Examples/groupchat; two real daemons on the loopback interface connect two of them."""
import os
import pathlib
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from daemons import Daemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "Examples/groupchat"
BUILD_SECONDS_MAX = 400


def run(*command, cwd, **options):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def clone(place):
    """A repository with version 0.1.0 of these sources as they are now. Of a version SwiftPM takes no target with unsafe
    flags; of a branch or a folder it does."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in sorted(set(names)):
        source = ROOT / name
        # Packages and what they name: the manifest wants each of its targets to be there.
        if name.startswith(("Sources/", "Tests/", "Package.swift")) and source.is_file():
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main")
    run(*git, "init", "-q", cwd=place)
    run(*git, "add", "-A", cwd=place)
    run(*git, "commit", "-q", "-m", "sources", cwd=place)
    run(*git, "tag", "0.1.0", cwd=place)


class Chat:
    """A running group chat."""

    def __init__(self, binary, name, daemon):
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", binary, name, f"{daemon.directory}/run/api.sock"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, self.heard = queue.SimpleQueue(), []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, pattern, seconds=20):
        """The next line that has this in it."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line “{pattern}” in {seconds} s, but {self.heard}") from None
            assert line is not None, f"it ended before “{pattern}”: {self.heard}"
            self.heard.append(line)
            if re.search(pattern, line):
                return line

    def close(self):
        self.process.kill()
        self.process.wait(10)
        self.reader.join(10)
        self.process.stdin.close()
        self.process.stdout.close()


class LibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="causeway-")
        cls.addClassCleanup(cls.root.cleanup)
        root = pathlib.Path(cls.root.name)
        repository, package = root / "causeway", root / "chat"
        repository.mkdir()
        clone(repository)
        shutil.copytree(EXAMPLE, package, ignore=shutil.ignore_patterns(".build"))
        manifest = (package / "Package.swift").read_text()
        by_url = manifest.replace(
            '.package(name: "causeway", path: "../..")', f'.package(url: "file://{repository}", from: "0.1.0")')
        assert by_url != manifest
        (package / "Package.swift").write_text(by_url)
        # As a user would, without what this project's own builds set.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CAUSEWAY_", "SWIFT_"))}
        run("swift", "build", "--disable-sandbox", "--cache-path", root / "cache", "-Xswiftc", "-gnone", cwd=package,
            env=environment, timeout=BUILD_SECONDS_MAX)
        cls.binary = package / ".build/debug/groupchat"
        cls.a = Daemon(cls.root.name, "a")
        cls.b = Daemon(cls.root.name, "b", [cls.a])
        for daemon in (cls.a, cls.b):
            cls.addClassCleanup(daemon.stop)
            daemon.start()

    def chat(self, name, daemon):
        chat = Chat(self.binary, name, daemon)
        self.addCleanup(chat.close)
        return chat

    def test_two_chats_on_two_boxes_find_each_other_talk_and_say_goodbye(self):
        a, b = self.chat("one", self.a), self.chat("one", self.b)
        a.wait("^-- b: connected")
        b.wait("^-- a: connected")
        a.say("hello, bob")
        b.wait("^<a> hello, bob$")
        # A terminal obeys nothing that a member sends.
        b.say("hello \x1b[2Jalice")
        a.wait("^<b> hello \ufffd\\[2Jalice$")
        b.process.stdin.close()
        b.wait("^-- the chat has ended: left")
        self.assertEqual(b.process.wait(10), 0)
        a.wait('^-- b: left\\("bye"\\)')

    def test_three_chats_become_one_and_one_that_is_killed_is_missed(self):
        chats = [self.chat("two", self.a), self.chat("two", self.b), self.chat("three", self.a)]
        for number, chat in enumerate(chats):
            for _ in range(2):
                chat.wait(": connected", 30)
        chats[2].say("all")
        for chat in chats[:2]:
            chat.wait("^<a> all$")
        chats[2].process.kill()
        for chat in chats[:2]:
            chat.wait("^-- a: crashed")

    def test_a_daemon_that_ends_is_told_with_what_is_lost(self):
        daemon = Daemon(self.root.name, "c")
        self.addCleanup(daemon.stop)
        daemon.start()
        chat = self.chat("four", daemon)
        chat.wait("^-- this is c")
        daemon.stop()
        chat.wait("notConnected: the daemon stops: services, browses and sessions are gone; connect again")
        chat.process.wait(10)


if __name__ == "__main__":
    unittest.main()
