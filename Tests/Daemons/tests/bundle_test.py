"""The contents of `causeway bundle`, the report for a bug, and mainly the secrets that it must not contain.

Two real daemons run on the loopback interface. Everything that may hold a secret contains a canary, a text that the
test searches in the report."""
import base64
import io
import os
import re
import shutil
import subprocess
import tarfile
import unittest

from daemons import BINARY, DaemonsTest, wait
from people import Command, Node

PASSPHRASE, FORMER, SSID = "canary battery staple", "canary-of-last-year", "DIRECT-ca-nary"
PARTS = ["README.txt", "configuration.txt", "version.txt", "status.json", "status.txt", "sessions.txt", "routes.txt", "doctor.txt",
         "journal.txt", "system.txt", "kernel.txt", "limits.txt"]


def encodings(secret):
    """Yield a secret unchanged and in each encoding that a file may use."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    yield secret.hex(":").encode()
    for before in range(3):     # at each offset within a group of base64
        text = base64.b64encode(b"\0" * before + secret)
        yield text[4 if before else 0:-4]
        yield text[4 if before else 0:-4].replace(b"+", b"-").replace(b"/", b"_")


class BundleTest(DaemonsTest):
    def boxes(self, extra=""):
        # The display names are canaries, so the directories need other names: the report contains the configuration,
        # and this contains the directory.
        box = self.daemon("one", display="casa-mia", extra=extra)
        box.start()
        other = self.daemon("two", box, display="bertrand")
        other.start()
        wait("they are linked", lambda: box.neighbours() == ["bertrand"])
        return box, other

    def bundle(self, box, *words, **options):
        """Run `causeway bundle`. Returns the names and contents of the report's files, and all of the archive."""
        done = subprocess.run([BINARY, "bundle", "--output", "-", "--config", box.config, *words], capture_output=True, timeout=60, **options)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            members = archive.getmembers()
            self.assertEqual(len({os.path.dirname(member.name) for member in members}), 1)
            self.assertTrue(all(member.isfile() and member.mode == 0o600 for member in members))
            parts = {os.path.basename(member.name): archive.extractfile(member).read().decode() for member in members}
        return parts, done.stdout

    def test_it_has_what_a_report_needs(self):
        box, _ = self.boxes()
        parts, archive = self.bundle(box)
        self.assertEqual(sorted(parts), sorted(PARTS))
        self.assertLess(len(archive), 4 << 20)
        self.assertIn(f"peer-{box.id[:8]}", parts["status.txt"])
        self.assertIn('"bytes_sent"', parts["status.json"])
        self.assertRegex(parts["routes.txt"], r"peer-[0-9a-f]{8} +[0-9a-f]{8} +1 +loopback to [0-9a-f]{8}")
        self.assertRegex(parts["doctor.txt"], "good +daemon +it answers")
        self.assertIn("link 0: up over loopback", parts["journal.txt"])
        self.assertIn(f"port = {box.port}", parts["configuration.txt"])
        self.assertIn("Linux version", parts["system.txt"])
        self.assertIn("granted (MemoryMax)", parts["limits.txt"])
        self.assertTrue(parts["version.txt"].startswith("causeway "))

    def test_other_programs_read_it(self):
        box, _ = self.boxes()
        path = self.path("b.tar")
        code, out, err = box.run("bundle", "--output", path)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, rf"^{path}: \d+ parts, \d+.* kB\n")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        listed = subprocess.run(["tar", "tf", path], capture_output=True, text=True)
        self.assertEqual((listed.returncode, listed.stderr, listed.stdout.count("\n")), (0, "", len(PARTS)))

    def test_no_secret_is_in_it(self):
        box, other = self.boxes(f"[wifi-direct]\npassphrase = {PASSPHRASE}\n#passphrase = {FORMER}\nssid = {SSID}\n"
                                "[node]\ndiscovery-info = room=canary-room\n")
        # Traffic that leaves traces in the daemon: a chat, a file, and an invitation with a context.
        into = self.path("into")
        os.mkdir(into)
        chats = [Command(each, "chat") for each in (box, other)]
        for chat in chats:
            self.addCleanup(chat.close)
        chats[0].wait("bertrand")
        chats[0].say("canary in a message\n")
        chats[1].wait("canary in a message")
        name = self.path("canary-holiday.jpg")
        with open(name, "w") as file:
            file.write("canary in a file")
        receiver = Command(other, "receive", into, "--from", box.id, "--count", "1")
        self.addCleanup(receiver.close)
        sender = Command(box, "send", name, "bertrand")
        self.addCleanup(sender.close)
        self.assertEqual((sender.end(), receiver.end()), (0, 0), (sender.heard, receiver.heard))
        node = Node.connect("canary of an application", f"{box.directory}/run/api.sock")
        self.addCleanup(node.close)
        # The environment of the command contains a canary, because environment variables may hold secrets.
        parts, archive = self.bundle(box, env={**os.environ, "PASSWORD": "canary-of-the-environment"})
        secrets = [PASSPHRASE, FORMER, SSID, "canary-room", "canary in a message", "canary-holiday", "canary in a file",
                   "canary-of-the-environment", "casa-mia", "bertrand", box.id, other.id]
        secrets = [secret.encode() for secret in secrets] + list(self.keys(box))
        self.assertIn(b"granted", archive)
        for secret in secrets:
            for form in encodings(secret):
                self.assertNotIn(form, archive, secret[:40])
        self.assertNotIn("canary", "".join(parts.values()))
        self.assertNotIn("PRIVATE", "".join(parts.values()))

    def keys(self, box):
        """Yield the box's private key in the forms that a report could contain: as in the file, and as a number."""
        found = False
        for entry in os.scandir(box.state):
            with open(entry.path, "rb") as file:
                contents = file.read()
            for block in re.findall(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.*?)-----END", contents, re.S):
                der = base64.b64decode(block)
                number = re.search(rb"\x02\x01\x01\x04\x20(.{32})", der, re.S)[1]
                found = True
                yield from (der, number, block.splitlines()[0], block.splitlines()[1])
        self.assertTrue(found, os.listdir(box.state))

    def test_a_mistake_in_the_configuration_does_not_tell_the_passphrase(self):
        box, _ = self.boxes()
        with open(box.config, "a") as file:
            file.write("[wifi-direct]\npassphrase = canary7\nsecret canary line\na line of canary\nfrequency = 2437 passphrase = canary8\n"
                       "dhcp = canary-for-all\n")
        for words in ((), ("--names",)):
            parts, archive = self.bundle(box, *words)
            self.assertNotIn(b"canary", archive)
            self.assertIn("passphrase = ***", parts["configuration.txt"])
            self.assertIn("not understood", parts["configuration.txt"])
            self.assertEqual(parts["configuration.txt"].count("may hold a secret, and is left out"), 2)

    def test_names_are_in_it_only_when_they_are_wanted(self):
        box, other = self.boxes(f"[wifi-direct]\npassphrase = {PASSPHRASE}\n")
        parts, archive = self.bundle(box, "--names")
        self.assertIn("bertrand", parts["status.txt"])
        self.assertIn(box.id, parts["status.json"])
        self.assertNotIn(PASSPHRASE.encode(), archive)

    def test_it_works_when_the_daemon_is_dead(self):
        box, _ = self.boxes()
        box.process.kill()
        box.process.wait()
        parts, _ = self.bundle(box)
        self.assertEqual(sorted(set(PARTS) - set(parts)), ["routes.txt", "sessions.txt", "status.json", "status.txt"])
        self.assertRegex(parts["README.txt"], r"Missing:\n  status, sessions, routes: no daemon answers at ")
        self.assertIn("link 0: up over loopback", parts["journal.txt"])

    def test_it_works_for_whoever_may_read_nothing(self):
        box, _ = self.boxes()
        program = self.path("program")
        shutil.copy(BINARY, program)
        os.chmod(self.root, 0o755)
        for place in (box.directory, box.directory + "/run", box.config):
            os.chmod(place, 0o700)
        done = subprocess.run([program, "bundle", "--output", "-"], capture_output=True, user=54_322, group=54_322, extra_groups=[])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"Missing:", done.stdout)
        self.assertIn(b"granted (MemoryMax)", done.stdout)

    def test_a_full_disk_is_said_in_one_line_and_nothing_is_left(self):
        box, _ = self.boxes()
        full = self.path("full")
        os.mkdir(full)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", full], check=True)
        self.addCleanup(subprocess.run, ["umount", full], check=True)
        said = self.refused(box, "bundle", "--output", full + "/b.tar")
        self.assertEqual(said, f"causeway: {full}/b.tar: No space left on device\n")
        self.assertEqual(os.listdir(full), [])
        said = self.refused(box, "bundle", "--output", self.path("nowhere/b.tar"))
        self.assertIn("No such file or directory", said)

    def test_a_pipe_that_is_full_or_closed_is_a_failure(self):
        box, _ = self.boxes()
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, "bundle", "--output", "-", "--config", box.config], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "causeway: standard output: No space left on device\n"))

    def test_over_ssh_it_goes_to_standard_output_and_nowhere_else(self):
        box, _ = self.boxes()
        def asked(words, **options):
            return subprocess.run([BINARY, "diagnose"], env={"SSH_ORIGINAL_COMMAND": words}, capture_output=True, cwd=self.root, **options)
        before = sorted(os.listdir(self.root))
        done = asked("bundle")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("limits.txt", tarfile.open(fileobj=io.BytesIO(done.stdout)).getnames()[-1])
        for words in ("bundle --output x.tar", "bundle -o x.tar", "bundle --out=x.tar", "bundle -ox.tar", "bundle -- -o"):
            done = asked(words)
            self.assertNotEqual(done.returncode, 0, words)
        self.assertEqual(sorted(os.listdir(self.root)), before)


if __name__ == "__main__":
    unittest.main()
