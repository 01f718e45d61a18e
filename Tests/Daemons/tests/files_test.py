"""The commands `send`, `receive` and `drop` with real daemons."""
# seconds: 180
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import zlib

from people import Command, PeopleTest

from daemons import BINARY, Daemon, wait
from stranger import ACCEPTED, ANSWER, DIFFERS, MANIFEST, Offer, leaf

MEBIBYTE = 1 << 20


class Plain(Command):
    """A command that is given as a complete command line, instead of words for the binary."""

    def __init__(self, command):
        super().__init__(None, command=command)


class FilesTest(PeopleTest):
    def setUp(self):
        self.place = pathlib.Path(self.root.name) / self._testMethodName
        self.out, self.into = self.place / "out", self.place / "in"
        for folder in (self.out, self.into):
            folder.mkdir(parents=True)

    def file(self, name, size=5_000):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
        return path

    def receive(self, *words, daemon=None, wanted=True, into=None, verb="receive", **options):
        """Start a receiver on bob's box that accepts alice's files. Each test has its own service type."""
        wanted = ("--from", self.a_id) if wanted else ()
        return self.command(daemon or self.b, verb, into or self.into, *wanted, *self.type, *words, **options)

    def send(self, *files, to="bob", daemon=None):
        return self.command(daemon or self.a, "send", *files, to, *self.type)

    @property
    def type(self):
        return "--type", f"t{zlib.crc32(self._testMethodName.encode())}"

    def ends(self, sender, receiver, codes=(0, 0), seconds=60):
        self.assertEqual((sender.end(seconds), receiver.end(seconds)), codes, (sender.heard, receiver.heard))

    def same(self, *names):
        """Check that the receiver has exactly these files and folders, and that their contents are equal to the sent
        ones."""
        for name in names:
            subprocess.run(["diff", "-r", self.out / name, self.into / name], check=True)
        self.assertEqual(sorted(path.name for path in self.into.iterdir()), sorted(names))

    # Files and folders that arrive

    def test_a_file_arrives_with_its_bytes(self):
        path = self.file("photo.jpg", 3_000_000)
        receiver = self.receive("--count", "1")
        sender = self.send(path)
        self.ends(sender, receiver)
        self.same("photo.jpg")
        self.assertIn("sent 1 file, 3.0 MB to bob", sender.heard)
        self.assertIn(f"{self.into}/photo.jpg from alice", receiver.heard)
        self.assertIn("alice: “photo.jpg”, 1 file, 3.0 MB received", receiver.heard)
        self.assertTrue(any(") “bob” is asked to accept 1 file, 3.0 MB" in line for line in sender.heard), sender.heard)
        self.assertTrue(any("photo.jpg, 3.0 MB: stored" in line for line in sender.heard), sender.heard)

    def test_several_files_and_folders_arrive_at_once(self):
        self.file("photos/deep/er/a.jpg")
        self.file("photos/b.jpg", 0)
        (self.out / "photos/empty").mkdir()
        self.file("-notes", 10)
        receiver = self.receive("--count", "1")
        sender = self.send(self.file("x", MEBIBYTE + 1), self.out / "photos", self.out / "-notes")
        self.ends(sender, receiver)
        # The receiver has replaced the leading hyphen, because commands would read such a name as an option.
        (self.into / "_notes").rename(self.into / "-notes")
        self.same("x", "photos", "-notes")

    def test_folders_without_any_file_arrive(self):
        for name in ("empty", "full/of/folders"):
            (self.out / name).mkdir(parents=True)
        receiver = self.receive("--count", "1")
        self.ends(self.send(self.out / "empty", self.out / "full"), receiver)
        self.assertTrue((self.into / "full/of/folders").is_dir())
        self.same("empty", "full")

    def test_a_file_with_more_bytes_than_its_size_is_not_sent_as_an_empty_one(self):
        sender = self.send("/proc/version")
        self.assertEqual(sender.end(), 1)
        self.assertIn("more bytes than its size says", sender.heard[-1])

    def test_a_folder_that_was_removed_is_no_full_disk(self):
        receiver = self.receive()
        wait("bob receives", lambda: self.type[1] in self.a.run("browse", "--for", "1")[1])
        shutil.rmtree(self.into)
        sender = self.send(self.file("a"))
        self.assertEqual(sender.end(), 6)
        self.assertIn("the destination folder: No such file or directory", sender.heard[-1])
        receiver.wait("the destination folder: No such file or directory")

    def test_files_of_every_size_arrive_whole(self):
        sizes = (0, 1, 65_535, 65_536, 65_537, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1)
        files = [self.file(f"{size}", size) for size in sizes]
        receiver = self.receive("--count", "1")
        self.ends(self.send(*files), receiver)
        self.same(*map(str, sizes))

    def test_a_name_of_any_length_that_disks_have_arrives(self):
        # While an offer arrives, its partial file has the name of its first entry and a suffix.
        for lengths in ((255,), (231, 240), (221, 222), (200, 230, 254)):
            names = ["x" * (length - 4) + ".bin" for length in lengths]
            receiver = self.receive("--count", "1")
            self.ends(self.send(*(self.file(name, 100) for name in names)), receiver)
            self.same(*names)
            for name in names:
                (self.into / name).unlink()

    def test_a_hostile_path_stays_in_the_folder(self):
        for path in ([b"../../evil"], [b".."], [b"/evil"], [b"a", b".."], [b"a", b"../evil"], [b"a\0"], [b""]):
            receiver = self.receive("--count", "1")
            offer = Offer(self.application(self.a, repr(path)), self.type[1], "a", path, 3)
            self.assertEqual(offer.records.next(ANSWER)[0], ACCEPTED)
            offer.send(MANIFEST, offer.manifest)
            self.assertEqual(receiver.end(), 1, receiver.heard)
            self.assertIn("its sender violated the protocol", receiver.heard[-1])
            self.same()
        self.assertEqual(sorted(path.name for path in self.place.iterdir()), ["in", "out"])

    def test_a_changed_byte_is_noticed_by_both_ends(self):
        receiver = self.receive("--count", "1")
        offer = Offer(self.application(self.a), self.type[1], "a", [b"a"], 3)
        self.assertEqual(offer.send_file(b"abd", leaf(b"abc")), DIFFERS)
        offer.stream.finish(timeout=20)
        self.assertEqual(receiver.end(), 1, receiver.heard)
        self.assertIn(
            "causeway: alice: “a”, 1 file, 3 B received incompletely; missing files: 1", receiver.heard)
        self.assertEqual([path.name for path in self.into.glob("[!.]*")], [])

    def test_a_name_that_is_taken_is_kept_with_its_extension(self):
        (self.into / "photo.jpg").write_text("mine")
        path = self.file("photo.jpg")
        receiver = self.receive("--count", "1")
        self.ends(self.send(path), receiver)
        self.assertEqual((self.into / "photo.jpg").read_text(), "mine")
        self.assertEqual((self.into / "photo-2.jpg").read_bytes(), path.read_bytes())
        self.assertIn(f"{self.into}/photo-2.jpg from alice", receiver.heard)

    def test_a_sender_waits_for_its_receiver(self):
        sender = self.send(self.file("late"))
        sender.wait("“bob” is not receiving yet: waiting for it")
        receiver = self.receive("--count", "1")
        self.ends(sender, receiver)
        self.same("late")

    def test_two_send_at_once_and_do_not_see_each_other(self):
        receiver = self.receive("--count", "2")
        senders = [self.send(self.file(name, 4 * MEBIBYTE)) for name in "ab"]
        for sender in senders:
            self.assertEqual(sender.end(60), 0, sender.heard)
        self.assertEqual(receiver.end(), 0, receiver.heard)
        self.same("a", "b")

    # Consent

    def test_who_is_not_pinned_is_declined(self):
        receiver = self.receive(wanted=False)
        sender = self.send(self.file("a"))
        self.assertEqual(sender.end(), 6, sender.heard)
        self.assertTrue(any("bob does not accept files: not accepted here" in line for line in sender.heard), sender.heard)
        receiver.wait("\\(NOT verified, [0-9a-f]{8}\\) “alice” was not accepted: not accepted here")
        self.same()

    def test_drop_takes_what_those_send_whose_keys_are_pinned(self):
        self.b.identity("trust", self.a_id, "--name", "alice")
        try:
            drop = self.receive(wanted=False, verb="drop")
            for name in "ab":
                sender = self.send(self.file(name))
                self.assertEqual(sender.end(), 0, sender.heard)
                drop.wait(f"^alice: “{name}”, 1 file, 5.0 kB received$")
            self.same("a", "b")
            drop.process.send_signal(signal.SIGTERM)
            self.assertEqual(drop.end(), 0)
        finally:
            self.b.identity("untrust", self.a_id)

    def asked(self, key):
        terminal = self.terminal(self.b, "receive", str(self.into), "--count", "1", *self.type, columns=120)
        sender = self.send(self.file("photos/a.jpg", 300), self.file("b", 20))
        line = terminal.wait_line("Accept\\?")
        self.assertRegex(
            line, "^\\(NOT verified, [0-9a-f]{8}\\) “alice” offers “a.jpg” …, 2 files, 320 B; [0-9.]+ .B free. Accept\\? \\[y/N\\]")
        self.assertFalse(list(self.into.iterdir()))
        terminal.answer(key)
        return terminal, sender

    def test_who_says_yes_on_a_terminal_receives(self):
        terminal, sender = self.asked("y\r")
        self.assertEqual((sender.end(), terminal.end()), (0, 0), (sender.heard, terminal.screen))
        (self.out / "photos/a.jpg").rename(self.out / "a.jpg")
        self.same("a.jpg", "b")

    def test_who_says_no_on_a_terminal_declines(self):
        terminal, sender = self.asked("\r")
        self.assertEqual(sender.end(), 6, sender.heard)
        self.assertIn("causeway: bob declined", sender.heard)
        terminal.wait_line("alice: “a.jpg” …, 2 files, 320 B declined")
        self.same()

    def test_an_offer_that_is_cancelled_is_not_asked_for_any_more(self):
        terminal = self.terminal(self.b, "receive", str(self.into), *self.type, columns=120)
        sender = self.send(self.file("a"))
        terminal.wait_line("Accept\\?")
        sender.process.send_signal(signal.SIGINT)
        self.assertEqual(sender.end(), 5, sender.heard)
        terminal.wait_line("alice: the offer has ended|cancelled by its sender")
        self.same()

    # Limits of the receiver

    def test_an_offer_that_is_too_large_is_declined_before_its_bytes(self):
        receiver = self.receive("--max", "1k", "--count", "1")
        sender = self.send(self.file("a"))
        self.ends(sender, receiver, (6, 1))
        self.assertIn("causeway: bob accepts no offer of this size: at most 1.0 kB", sender.heard)
        self.same()

    def full(self, script, *words):
        """Start a receiver whose folder is on its own disk of 30 MB. `script` runs before it."""
        mount = 'mount -t tmpfs -o size=30m tmpfs "$1" || exit 1; '
        command = ["unshare", "-m", "sh", "-c", mount + script + 'exec "$0" receive "$@"', BINARY, str(self.into),
                   "--config", self.b.config, "--from", self.a_id, "--count", "1", *self.type]
        receiver = Plain(command)
        self.addCleanup(receiver.close)
        return receiver

    def test_a_disk_without_room_declines_before_any_byte(self):
        receiver = self.full("")
        sender = self.send(self.file("a", 40 * MEBIBYTE))
        self.ends(sender, receiver, (6, 1))
        self.assertRegex(sender.heard[-1], "bob has not enough space for it: 41.9 MB needed, 31.4 MB free")

    def test_a_disk_that_fills_up_is_named_at_both_ends(self):
        script = ('(until [ "$(du -sm "$1" | cut -f1)" -ge 4 ]; do sleep 0.005; done; cat /dev/zero > "$1/filler") '
                  "2>/dev/null & ")
        receiver = self.full(script)
        sender = self.send(self.file("a", 28 * MEBIBYTE))
        self.ends(sender, receiver, (1, 1))
        self.assertIn("its disk is full", sender.heard[-1])
        self.assertIn("not stored: the disk is full; the received data is kept for 24 h", receiver.heard[-1])
        self.assertFalse([line for line in sender.heard + receiver.heard if "ioctl" in line])

    def test_a_sender_waits_for_a_disk_that_takes_two_minutes(self):
        # A receiver that waits for its disk does nothing else, so a stopped process behaves in the same way.
        receiver = self.receive("--count", "1")
        sender, _ = self.slow()
        self.middle(MEBIBYTE)
        receiver.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(125)
            self.assertIsNone(sender.process.poll(), sender.heard)
        finally:
            receiver.process.send_signal(signal.SIGCONT)
        self.ends(sender, receiver)
        self.same("big")

    # Interruptions

    def middle(self, least=4 * MEBIBYTE):
        """Wait until the partial files of the receiver have at least `least` bytes."""
        def came():
            files = [path for path in self.into.rglob("*") if path.is_file() and "causeway-part" in str(path)]
            return sum(path.stat().st_size for path in files) >= least
        end = time.monotonic() + 60
        while not came():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def again(self, what, events, size):
        """Check the number of bytes that were sent twice, by the sender's own count. The limit is one block."""
        count = sum(events) - size
        print(f"{what}: {count} bytes sent again", flush=True)
        self.assertLessEqual(count, MEBIBYTE)

    def moved(self, command):
        return max([json.loads(line)["moved"] for line in command.heard if '"moved"' in line] or [0])

    def slow(self, size=192 * MEBIBYTE):
        """Start the sender of a large file with JSON output. Returns the sender and the size of the file."""
        path = self.file("big", size)
        return self.command(self.a, "send", str(path), "bob", "--json", *self.type), size

    def test_a_receiver_that_is_killed_goes_on(self):
        receiver = self.receive()
        sender, size = self.slow()
        self.middle()
        receiver.process.kill()
        receiver.process.wait(10)
        other = self.receive("--count", "1")
        self.ends(sender, other)
        self.same("big")
        self.again("receiver killed", [self.moved(sender)], size)

    def test_a_sender_that_is_killed_goes_on_without_a_question(self):
        receiver = self.receive("--count", "1")
        sender, size = self.slow()
        self.middle()
        sender.process.kill()
        receiver.wait("alice is out of reach or has left: the transfer resumes when it is retried")
        other = self.command(self.a, "send", str(self.out / "big"), "bob", "--json", *self.type)
        self.ends(other, receiver)
        self.same("big")
        done = json.loads(other.heard[-1])
        self.assertGreater(done["held"], 3 * MEBIBYTE)
        self.assertEqual(done["moved"] + done["held"], size)

    def test_a_restart_of_either_daemon_is_survived(self):
        daemon = Daemon(self.root.name, "d" + self.type[1][1:], [self.a], display="dora")
        self.addCleanup(daemon.stop)
        daemon.start()
        receiver = self.receive("--count", "1", daemon=daemon)
        path = self.file("big", 192 * MEBIBYTE)
        sender = self.command(self.a, "send", str(path), "dora", "--json", *self.type)
        self.middle()
        daemon.process.kill()
        daemon.process.wait(10)
        receiver.wait("did it stop\\?; reconnecting")
        daemon.start()
        self.ends(sender, receiver)
        self.same("big")
        self.again("daemon killed", [self.moved(sender)], 192 * MEBIBYTE)

    def test_files_do_not_go_unsealed(self):
        daemon = Daemon(self.root.name, "clear", [self.a], display="clara", extra="[peer]\nencryption = none\n")
        self.addCleanup(daemon.stop)
        daemon.start()
        self.receive(daemon=daemon)
        sender = self.send(self.file("secret"), to="clara")
        self.assertEqual(sender.end(20), 6, sender.heard)
        self.assertIn("clara: the two boxes do not agree on [peer] encryption, and files are only sent encrypted", sender.heard[-1])

    def test_an_interrupt_tells_the_other_end(self):
        receiver = self.receive("--count", "1")
        sender, _ = self.slow()
        self.middle(MEBIBYTE)
        start = time.monotonic()
        sender.process.send_signal(signal.SIGINT)
        self.ends(sender, receiver, (5, 1))
        self.assertLess(time.monotonic() - start, 5)
        self.assertIn("cancelled by its sender; the received data is kept for 24 h", receiver.heard[-1])

    def test_an_interrupted_receiver_tells_its_sender(self):
        receiver = self.receive()
        sender, _ = self.slow()
        self.middle(MEBIBYTE)
        receiver.process.send_signal(signal.SIGTERM)
        self.ends(sender, receiver, (5, 5))
        self.assertIn("bob cancelled", json.loads(sender.heard[-1])["text"])

    def test_the_same_command_goes_on_after_an_interrupt(self):
        receiver = self.receive()
        sender, size = self.slow()
        self.middle()
        sender.process.send_signal(signal.SIGINT)
        self.assertEqual(sender.end(), 5)
        other = self.command(self.a, "send", str(self.out / "big"), "bob", "--json", *self.type)
        self.assertEqual(other.end(60), 0, other.heard)
        self.same("big")
        self.assertGreater(json.loads(other.heard[-1])["held"], 3 * MEBIBYTE)

    # Messages

    def test_a_misspelt_name_is_told_at_once(self):
        self.receive()
        wait("bob receives", lambda: self.type[1] in self.a.run("browse", "--for", "1")[1])
        start = time.monotonic()
        sender = self.send(self.file("a"), to="bbo")
        self.assertEqual(sender.end(), 1)
        self.assertIn("causeway: “bbo” is not in reach: did you mean “bob”? (--wait SECONDS waits for the name as given)",
                      sender.heard)
        self.assertLess(time.monotonic() - start, 5)

    def test_who_is_not_there_in_time_is_an_exit_code(self):
        code, _, err = self.a.run("send", str(self.file("a")), "bob", "--wait", "1", *self.type)
        self.assertEqual(code, 4)
        self.assertIn("“bob” did not appear in time; run “causeway receive” there", err)

    def test_what_cannot_be_sent_is_told_before_anything_else(self):
        os.symlink("/etc/passwd", self.out / "link")
        for name, code, said in ((self.out / "none", 1, "none: No such file"),
                                 (self.out, 1, "out/link: symbolic links cannot be sent")):
            self.assertEqual((found := self.a.run("send", str(name), "bob", *self.type))[0], code, found)
            self.assertIn(said, found[2])

    def test_a_directory_that_is_none_is_told_at_once(self):
        code, _, err = self.b.run("receive", str(self.file("a")), *self.type)
        self.assertEqual(code, 1)
        self.assertIn("a: Not a directory", err)

    def test_a_size_that_no_offer_can_have_is_wrong_usage(self):
        for size in ("0", "5T", "999999999999999G"):
            code, _, err = self.b.run("receive", "--max", size, str(self.into), *self.type)
            self.assertEqual(code, 2, size)
            self.assertIn(f"“{size}” is not accepted; expected a number of bytes", err)

    def test_json_tells_each_step_in_a_line(self):
        receiver = self.receive("--count", "1", "--json")
        sender = self.command(self.a, "send", str(self.file("x\x1b", 0)), "bob", "--json", *self.type)
        self.assertEqual(sender.end(), 1)
        path = self.file("x", 7)
        sender = self.command(self.a, "send", str(path), "bob", "--json", *self.type)
        self.ends(sender, receiver)
        events = [json.loads(line) for line in sender.heard]
        self.assertEqual([event["event"] for event in events if event["event"] != "progress"], ["asking", "file", "sent"])
        self.assertEqual(events[-2], {"event": "file", "path": "x", "bytes": 7, "stored": True})
        events = [json.loads(line) for line in receiver.heard]
        self.assertEqual([event["event"] for event in events if event["event"] != "progress"],
                         ["offer", "answer", "stored", "received"])
        self.assertEqual((events[0]["first"], events[0]["bytes"], events[0]["id"]), ("x", 7, self.a_id))

    def test_a_terminal_shows_how_far_it_is_in_one_line(self):
        receiver = self.receive("--count", "1")
        path = self.file("big", 192 * MEBIBYTE)
        terminal = self.terminal(self.a, "send", str(path), "bob", *self.type, columns=80)
        self.middle(MEBIBYTE)
        # The progress line is refreshed after a pause. The receiver stops, because the file might arrive completely
        # before the refresh.
        receiver.process.send_signal(signal.SIGSTOP)
        terminal.wait_line("^[0-9]+ %, [0-9.]+ .B of 201 MB", 30)
        receiver.process.send_signal(signal.SIGCONT)
        self.assertEqual((terminal.end(60), receiver.end()), (0, 0))
        self.assertFalse([line for line in terminal.screen if "%" in line], terminal.screen)
        self.assertTrue([line for line in terminal.screen if line == "sent 1 file, 201 MB to bob"], terminal.screen)

    def test_a_stalled_transfer_is_shown_as_stalled(self):
        receiver = self.receive()
        path = self.file("big", 192 * MEBIBYTE)
        terminal = self.terminal(self.a, "send", str(path), "bob", *self.type, columns=80)
        self.middle(MEBIBYTE)
        receiver.process.send_signal(signal.SIGSTOP)
        terminal.wait_line("stalled for [0-9]+ s", 30)
        receiver.process.send_signal(signal.SIGCONT)
        self.assertEqual(terminal.end(60), 0)


if __name__ == "__main__":
    import unittest
    unittest.main()
