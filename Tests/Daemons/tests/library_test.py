"""The Swift library as its users get it, tested with the causeway binary.

A temporary package outside of the project depends on a version of a clone by URL. It builds with the Swift toolchain
alone. Its programs are those of Examples. Two of these programs are connected by two real daemons on the loopback
interface. One sends a folder while an application or a daemon is killed, and the test counts the bytes sent twice."""
# seconds: 300
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

from daemons import BINARY, Daemon

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "Examples/groupchat"
FILES = ROOT / "Examples/files/Sources"
MEBIBYTE = 1 << 20
BUILD_SECONDS_MAX = 400


def run(*command, cwd, **options):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def clone(place):
    """Make a repository with version 0.1.0 of the current sources. Only a dependency on a version tests what users get:
    SwiftPM rejects unsafe flags there, but not in a dependency on a branch or a folder."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in sorted(set(names)):
        source = ROOT / name
        # The copy contains the sources and all folders that the manifest names, because SwiftPM requires each target's
        # folder.
        if name.startswith(("Sources/", "Tests/", "Package.swift")) and source.is_file():
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main")
    run(*git, "init", "-q", cwd=place)
    run(*git, "add", "-A", cwd=place)
    run(*git, "commit", "-q", "-m", "sources", cwd=place)
    run(*git, "tag", "0.1.0", cwd=place)


class Program:
    """A running program, whose output lines are stored as they arrive."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", *command], stdin=subprocess.PIPE,
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
        """Wait for the next line that matches `pattern`. Earlier lines are skipped."""
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
        both = by_url.replace('path: "Sources"),', 'path: "Sources"),\n    .executableTarget(\n      name: "files", dependencies: '
                              '[.product(name: "Causeway", package: "causeway")], path: "Files"),')
        assert both != by_url
        shutil.copytree(FILES, package / "Files")
        (package / "Package.swift").write_text(both)
        # The environment is that of a user: variables for builds of this project are removed.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CAUSEWAY_", "SWIFT_"))}
        run("swift", "build", "--disable-sandbox", "--cache-path", root / "cache", "-Xswiftc", "-gnone", cwd=package,
            env=environment, timeout=BUILD_SECONDS_MAX)
        cls.binary = package / ".build/debug/groupchat"
        cls.files = package / ".build/debug/files"
        cls.a = Daemon(cls.root.name, "a")
        cls.b = Daemon(cls.root.name, "b", [cls.a])
        for daemon in (cls.a, cls.b):
            cls.addClassCleanup(daemon.stop)
            daemon.start()

    def chat(self, name, daemon):
        return self.program(self.binary, name, f"{daemon.directory}/run/api.sock")

    def program(self, *command):
        program = Program(*command)
        self.addCleanup(program.close)
        return program

    def test_two_chats_on_two_boxes_find_each_other_talk_and_say_goodbye(self):
        a, b = self.chat("one", self.a), self.chat("one", self.b)
        a.wait("^-- b: connected")
        b.wait("^-- a: connected")
        a.say("hello, bob")
        b.wait("^<a> hello, bob$")
        # Control characters in a member's message are replaced before printing.
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

    # Resources

    def folder(self, name, big=24 * MEBIBYTE):
        """Make a folder to send. Returns this folder, the receiver's folder, and the total bytes of the files."""
        place = pathlib.Path(self.root.name) / name / "out"
        (place / "deep/er").mkdir(parents=True)
        (place / "empty").mkdir()
        (place / "big").write_bytes(os.urandom(big))
        (place / "deep/er" / ("long" * 63 + ".md")).write_bytes(os.urandom(5_000))
        for number in range(30):
            (place / f"deep/{number}.bin").write_bytes(os.urandom(number * 10_000))
        into = pathlib.Path(self.root.name) / name / "in"
        into.mkdir()
        return place, into, sum(file.stat().st_size for file in place.rglob("*") if file.is_file())

    def send(self, name, daemon, place):
        return self.program(self.files, "send", name, f"{daemon.directory}/run/api.sock", place)

    def receive(self, name, daemon, into):
        return self.program(self.files, "receive", name, f"{daemon.directory}/run/api.sock", into)

    def middle(self, program, least):
        """Wait until the program reports that at least `least` bytes have arrived."""
        while int(program.wait(r"^moving: \d+ of", 60).split()[1]) < least:
            pass

    def moved(self, program):
        """The file bytes that a program has sent or received, by its own count."""
        return max(int(line.split()[4]) for line in program.heard if " moved" in line)

    def same(self, place, into):
        run("diff", "-r", place, into / place.name, cwd=into)
        self.assertEqual([file.name for file in into.iterdir()], [place.name])

    def again(self, what, count):
        print(f"{what}: {max(0, count)} bytes sent again", flush=True)
        self.assertLessEqual(count, MEBIBYTE)

    def test_a_folder_whose_receiver_is_killed_is_continued(self):
        place, into, size = self.folder("killed-receiver")
        sender, receiver = self.send("r", self.a, place), self.receive("r", self.b, into)
        self.middle(receiver, 10 * MEBIBYTE)
        receiver.process.kill()
        sender.wait("^away")
        other = self.receive("r", self.b, into)
        held = int(other.wait(r"^-- a offers out: 32 files", 30).split()[-3])
        self.assertGreater(held, 9 * MEBIBYTE)
        other.wait("^received: ", 120)
        sender.wait("^sent: ", 30)
        self.same(place, into)
        self.again("receiver killed", self.moved(sender) - size)

    def test_a_folder_whose_sender_is_killed_is_continued_without_a_question(self):
        place, into, size = self.folder("killed-sender")
        sender, receiver = self.send("s", self.a, place), self.receive("s", self.b, into)
        self.middle(sender, 10 * MEBIBYTE)
        sender.process.kill()
        sender.reader.join(10)
        while not sender.lines.empty():
            sender.heard.append(sender.lines.get() or "")
        receiver.wait("^away")
        other = self.send("s", self.a, place)
        receiver.wait("^received: ", 120)
        other.wait("^sent: ", 30)
        self.same(place, into)
        self.assertEqual(sum("offers" in line for line in receiver.heard), 1)
        self.again("sender killed", self.moved(sender) + self.moved(other) - size)

    def test_a_folder_is_continued_when_a_daemon_is_killed(self):
        daemon = Daemon(self.root.name, "d", [self.a])
        self.addCleanup(daemon.stop)
        daemon.start()
        place, into, size = self.folder("killed-daemon")
        sender, receiver = self.send("d", daemon, place), self.receive("d", self.a, into)
        self.middle(sender, 10 * MEBIBYTE)
        daemon.process.kill()
        daemon.process.wait(10)
        sender.wait("^-- the daemon restarted")
        before = self.moved(sender)
        sender.heard.clear()
        daemon.start()
        receiver.wait("^received: ", 120)
        sender.wait("^sent: ", 30)
        self.same(place, into)
        self.again("daemon killed", before + self.moved(sender) - size)

    def test_a_command_sends_to_an_application(self):
        place, into, _ = self.folder("to-application", MEBIBYTE)
        receiver = self.receive("m", self.b, into)
        code, out, err = self.a.run("send", str(place), "b")
        self.assertEqual(code, 0, err)
        self.assertIn("sent 32 files, 5.4 MB to b", out)
        receiver.wait("^received: ")
        self.same(place, into)

    def test_an_application_sends_to_a_command(self):
        place, into, _ = self.folder("to-command", MEBIBYTE)
        receiver = self.program(
            BINARY, "receive", into, "--config", self.b.config, "--from", self.a.id, "--count", "1")
        sender = self.send("n", self.a, place)
        receiver.wait("^a: “out” …, 32 files, 5.4 MB received$", 60)
        sender.wait("^sent: ")
        self.same(place, into)

    def test_a_disk_that_fills_up_is_named_at_both_ends(self):
        place, into, size = self.folder("full")
        # The receiver's folder is on its own disk. A second program fills the disk when 4 MiB have arrived.
        script = ('mount -t tmpfs -o size=30m tmpfs "$3" || exit 1; '
                  '(until [ "$(du -sm "$3" | cut -f1)" -ge 4 ]; do sleep 0.02; done; cat /dev/zero > "$3/filler") 2>/dev/null & '
                  'exec "$1" receive full "$2" "$3"')
        receiver = self.program("unshare", "-m", "sh", "-c", script, "sh", self.files, f"{self.b.directory}/run/api.sock", into)
        sender = self.send("full", self.a, place)
        receiver.wait("^-- not received: unavailable: the disk is full", 60)
        sender.wait("^-- unavailable: the member's disk is full", 30)


if __name__ == "__main__":
    unittest.main()
