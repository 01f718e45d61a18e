#!/usr/bin/env python3
"""The daemon as a user without rights, and what other users may do with it: users_test.py BINARY

A real daemon on the loopback interface, as config/causeway.service runs it. Needs root, to be other users."""
import os
import shutil
import subprocess
import unittest

from daemons import BINARY, DaemonsTest, wait

DAEMON, APPLICATIONS, ANYBODY = 54320, 54321, 54322
ID = "00112233445566778899aabbccddeeff"


class UsersTest(DaemonsTest):
    def setUp(self):
        super().setUp()
        # Where every user can run it.
        self.program = self.path("causeway")
        shutil.copy(BINARY, self.program)
        os.chmod(self.root, 0o755)

    def box(self, extra=""):
        """A daemon that belongs to a user and a group of its own, and that has run once."""
        box = self.daemon("box", extra=extra)
        for path in (box.directory, box.directory + "/run"):
            os.chown(path, DAEMON, DAEMON)
            os.chmod(path, 0o755)
        os.chmod(box.config, 0o644)
        return self.start(box)

    def start(self, box):
        box.process = subprocess.Popen([self.program, "run", "--config", box.config], stderr=subprocess.DEVNULL,
                                       user=DAEMON, group=DAEMON, extra_groups=[], umask=0o077)
        wait(f"{box.name} answers", lambda: box.run("status")[0] == 0)
        return box

    def as_user(self, box, *words, groups=()):
        """A command of somebody who is neither root nor the daemon's user."""
        done = subprocess.run([self.program, *words, "--config", box.config], capture_output=True, text=True, timeout=30,
                              user=ANYBODY, group=ANYBODY, extra_groups=groups)
        return done.returncode, done.stdout, done.stderr

    def browse(self, box, groups=()):
        return self.as_user(box, "browse", "--for", "1", groups=groups)

    def test_what_root_writes_the_daemon_can_read(self):
        box = self.box()
        box.stop()
        box.identity("trust", ID, "--name", "carol")
        for entry in os.scandir(box.state):
            status = entry.stat()
            self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o077), (DAEMON, DAEMON, 0), entry.name)
        self.start(box)
        self.assertIn("carol", box.identity("show"))
        box.identity("trust", ID[::-1], "--name", "dora")

    def test_members_of_its_group_read_and_change_nothing(self):
        box = self.box()
        for words in (("status",), ("log",)):
            code, out, err = self.as_user(box, *words, groups=[DAEMON])
            self.assertEqual((code, err), (0, ""), words)
            self.assertNotEqual(out, "", words)
        for words, said in ((("reload",), "only root may reload"), (("join",), "only root and the daemon's user may see the passphrase"),
                            (("identity", "trust", ID), "only root and the daemon's user may")):
            code, _, err = self.as_user(box, *words, groups=[DAEMON])
            self.assertEqual(code, 1, words)
            self.assertIn(said, err)
        self.assertNotIn(ID, box.identity("show"))

    def test_members_of_its_group_capture_headers_and_no_payloads(self):
        box = self.box()
        path = self.path("capture")
        for words, code, said in ((("--payload",), 1, "only root and the daemon's user may see payloads; leave out --payload"),
                                  (("--seconds", "1"), 0, "0 frames captured")):
            with open(path, "wb") as file:
                done = subprocess.run([self.program, "capture", *words, "--config", box.config], stdout=file, stderr=subprocess.PIPE,
                                      text=True, timeout=30, user=ANYBODY, group=ANYBODY, extra_groups=[DAEMON])
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(os.path.getsize(path), 0 if code else 24)

    def test_a_configuration_that_its_group_may_not_read_is_no_fault(self):
        box = self.box()
        # At the places where commands look without --config; seen by this one command alone.
        places = ("mount -t tmpfs none /etc && mount -t tmpfs none /run && mkdir /etc/causeway /run/causeway && "
                  f"cp {box.config} /etc/causeway/causeway.conf && chmod 600 /etc/causeway/causeway.conf && "
                  f"mount --bind {box.directory}/run /run/causeway && "
                  f"exec setpriv --reuid {ANYBODY} --regid {ANYBODY} --groups {DAEMON} {self.program} ")
        for words, said in (("status", box.id), ("log", "started"), ("doctor", "run this as root")):
            done = subprocess.run(["unshare", "--mount", "sh", "-c", places + words], capture_output=True, text=True, timeout=30)
            self.assertIn(said, done.stdout, done.stderr)
            self.assertEqual(done.stderr, "", words)

    def test_others_do_not_even_read(self):
        box = self.box()
        for words in (("status",), ("log",), ("browse", "--for", "1")):
            code, out, err = self.as_user(box, *words)
            self.assertNotEqual(code, 0, words)
            self.assertEqual(out, "", words)
            self.assertIn("ermission denied", err)

    def test_only_members_of_the_applications_group_are_applications(self):
        box = self.box(f"[applications]\ngroup = {APPLICATIONS}\n")
        self.assertEqual(self.browse(box, [APPLICATIONS])[0], 0)
        self.assertEqual(box.run("browse", "--for", "1")[0], 0)
        for groups in ([], [DAEMON]):
            code, _, err = self.browse(box, groups)
            self.assertEqual(code, 1)
            self.assertIn(f"only root and members of the group “{APPLICATIONS}” may connect", err)
        self.assertIn("refused: not in the group", box.log())

    def test_a_group_is_named_as_the_system_names_it(self):
        with open("/etc/group") as file:
            name, _, number, _ = file.read().splitlines()[-1].split(":")
        box = self.box(f"[applications]\ngroup = {name}\n")
        self.assertEqual(self.browse(box, [int(number)])[0], 0)
        self.assertEqual(self.browse(box)[0], 1)

    def test_a_group_that_does_not_exist_lets_only_root_in(self):
        box = self.box("[applications]\ngroup = nobody-has-this\n")
        self.assertIn("there is no group “nobody-has-this”", box.log())
        self.assertEqual(box.run("browse", "--for", "1")[0], 0)
        self.assertEqual(self.browse(box)[0], 1)


if __name__ == "__main__":
    unittest.main()
