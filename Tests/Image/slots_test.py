#!/usr/bin/env python3
"""The shell scripts of an image, tested without a board: slots_test.py [CLASS…]

`slots`, `causeway-update` and `causeway-first-start` run in a directory, with stubs in place of mount, rauc and systemctl. The class
`Bundles` makes bundles with RAUC of Debian 12 and of Debian 13. It needs root: mmdebstrap fetches the root of each release from the archive
that apt uses."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from board import PROJECT
from bundles import Maker, Signer
from false_updates import NEWER, NO_REGULAR_FILES, UNEXPECTED_FILES

sys.path.insert(0, str(PROJECT / "Tests/Package"))
from debian import Root

ROOT = PROJECT / "board/build/image/root"
CONFIG = "os_prefix=a/\narm_64bit=1\nkernel=kernel.gz\n"
PROGRAMS = {
    "mount": "exit 0", "umount": "exit 0", "sync": "exit 0", "blockdev": "echo 100000", "busctl": "exit 1",
    "systemctl": 'echo "$*" >> "$STAND/systemctl"; [ ! -e "$STAND/hold" ] || sleep 3',
    # This stub calls the handlers as RAUC does. image_test.py tests RAUC's own checks on a board.
    "rauc": """
        case "$*" in
            "status mark-good") exec "$STAND/slots" set-state $(sed 's/.*slot=//' "$STAND/cmdline") good ;;
            "status mark-active other") exec "$STAND/slots" set-primary $(sed 's/.*slot=//' "$STAND/cmdline" | tr ab ba) ;;
            install*) echo "rauc $*" >> "$STAND/systemctl"; exit 1 ;;
        esac""",
}


class Stand(unittest.TestCase):
    """A simulated system in a directory. Slot a runs, and both slots can be started."""

    def setUp(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="causeway-slots-"))
        self.addCleanup(shutil.rmtree, self.path)
        self.boot, self.update, self.device = self.path / "boot", self.path / "update", self.path / "slot-b"
        for directory in ("bin", "boot/a", "boot/b", "update"):
            (self.path / directory).mkdir(parents=True)
        for name, body in PROGRAMS.items():
            (self.path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.path / "bin" / name).chmod(0o755)
        (self.path / "image.conf").write_text('board="virtual-arm64"\nversion="0.1.0"\nrestart=firmware\n')
        (self.path / "keyring.pem").write_text("a certificate\n")
        for slot in "ab":
            (self.boot / slot / "cmdline.txt").write_text(f"quiet causeway.slot={slot}\n")
        self.run_slot("a")
        self.config(CONFIG)
        self.device.write_bytes(bytes(100000))
        for program, places in (("usr/lib/causeway/slots", ("/usr/share/causeway/image.conf", "/run/causeway-boot", "/run/causeway-slots.lock",
                                                            "/run/causeway-update.reason", "/proc/cmdline", "/proc/sys/vm/drop_caches")),
                                ("usr/sbin/causeway-update", ("/usr/share/causeway/image.conf", "/usr/lib/causeway/slots", "/run/causeway-update.lock",
                                                              "/run/causeway-update.reason", "/etc/rauc/keyring.pem"))):
            text = (ROOT / program).read_text()
            for place in places:
                self.assertIn(place, text, program)
                text = text.replace(place, str(self.path / place.rsplit("/", 1)[1].replace("causeway-boot", "boot")))
            target = self.path / program.rsplit("/", 1)[1]
            target.write_text(text)
            target.chmod(0o755)
        for name in ("before-install", "after-install"):
            (self.path / name).symlink_to("slots")
        self.environment = {**os.environ, "PATH": f"{self.path / 'bin'}:{os.environ['PATH']}", "STAND": str(self.path)}

    def run_slot(self, slot):
        (self.path / "cmdline").write_text(f"quiet causeway.slot={slot}\n")

    def config(self, text):
        (self.boot / "config.txt").write_bytes(text.encode())

    def call(self, name, *words, code=0, **environment):
        done = subprocess.run([self.path / name, *words], env={**self.environment, **environment}, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        self.assertEqual(done.returncode, code, f"{name} {words}: {done.stdout}")
        return done.stdout

    def calls_of_systemctl(self):
        path = self.path / "systemctl"
        return path.read_text() if path.exists() else ""

    def slot_failed(self):
        """Whether causeway-slot-failed.service would restart the board, which it checks ten minutes after a start."""
        unit = (ROOT / "usr/lib/systemd/system/causeway-slot-failed.service").read_text()
        condition = next(line for line in unit.splitlines() if line.startswith("ExecCondition=")).split("'")[1]
        self.assertIn("/usr/sbin/causeway-update", condition)
        condition = condition.replace("/usr/sbin/causeway-update", str(self.path / "causeway-update"))
        return subprocess.run(["/bin/sh", "-c", condition], env=self.environment, stderr=subprocess.DEVNULL).returncode == 0


class Configuration(Stand):
    RIGHT = {"as built": CONFIG, "lines end in CR LF": CONFIG.replace("\n", "\r\n"), "a blank behind the name": CONFIG.replace("a/", "a/ "),
             "blanks and a tabulator": CONFIG.replace("a/", "a/ \t "), "the line alone": "os_prefix=a/"}
    FALSE = {"empty": "", "no line": "arm_64bit=1\n", "a second line": CONFIG + "[pi4]\nos_prefix=a/\n", "another slot for a model": CONFIG + "[pi4]\nos_prefix=b/\n",
             "a second line, with blanks": CONFIG + " os_prefix = b/\n", "a second line, in capitals": CONFIG + "OS_PREFIX=b/\n",
             "no slot": CONFIG.replace("a/", "c/"), "no name": CONFIG.replace("a/", ""), "two names": CONFIG.replace("a/", "a/ b/"),
             "lines end in CR alone": CONFIG.replace("\n", "\r"), "a mark of UTF-8 before it": "\ufeff" + CONFIG, "a comment before it": "# mine\n" + CONFIG,
             "a blank before it": " " + CONFIG}

    def test_what_editors_leave_names_a_slot(self):
        for what, text in self.RIGHT.items():
            with self.subTest(what):
                self.run_slot("a")
                self.config(text)
                self.assertEqual(self.call("slots", "get-primary"), "a\n")
                self.assertIn("and is started", self.call("causeway-update", "--status"))
                self.assertEqual(self.call("causeway-update", "--confirm"), "")
                self.assertFalse(self.slot_failed())
                # Slot b is started on trial, and then confirmed.
                self.call("causeway-update", "--back")
                trial = (self.boot / "tryboot.txt").read_bytes().decode()
                self.assertEqual(trial.split("\n")[0].rstrip(), "os_prefix=b/")
                self.assertEqual(trial.split("\n")[1:], text.split("\n")[1:])
                self.run_slot("b")
                self.assertIn("on trial; slot a is started next", self.call("causeway-update", "--status"))
                self.assertTrue(self.slot_failed())
                self.assertIn("slot b is started from now on", self.call("causeway-update", "--confirm"))
                self.assertEqual((self.boot / "config.txt").read_bytes(), text.replace("a/", "b/").encode())
                self.assertIn("and is started", self.call("causeway-update", "--status"))
                self.assertFalse(self.slot_failed())

    def test_what_names_no_slot_is_an_error_and_no_trial(self):
        for running in "ab":
            self.run_slot(running)
            for what, text in self.FALSE.items():
                with self.subTest(what, running=running):
                    self.config(text)
                    for words in (["--status"], ["--confirm"], ["--back"], [str(self.path / "image.conf")]):
                        said = self.call("causeway-update", *words, code=1)
                        self.assertIn("config.txt names no slot", said)
                        self.assertNotIn("on trial", said)
                        self.assertEqual(len(said.splitlines()), 1, said)
                    for words in (["set-state", "a", "good"], ["set-state", "b", "good"], ["set-state", "a", "bad"], ["set-state", "b", "bad"],
                                  ["set-primary", "a"], ["set-primary", "b"]):
                        self.call("slots", *words, code=1)
                    self.assertFalse(self.slot_failed(), "no restart")
                    self.assertEqual((self.boot / "config.txt").read_bytes(), text.encode())
                    self.assertEqual(sorted(path.name for path in self.boot.glob("*/cmdline.txt")), ["cmdline.txt"] * 2)
                    self.assertFalse((self.boot / "tryboot.txt").exists())
        self.assertEqual(self.calls_of_systemctl(), "")

    def test_a_confirmation_ends_no_installation_that_has_begun(self):
        self.run_slot("b")
        (self.path / "hold").touch()
        confirmation = subprocess.Popen([self.path / "causeway-update", "--confirm"], env=self.environment, stdout=subprocess.DEVNULL)
        self.addCleanup(confirmation.wait)
        end = time.monotonic() + 20
        while "stop rauc.service" not in self.calls_of_systemctl():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        # At this moment slot b is confirmed, and the command waits for the stop of RAUC's service.
        self.assertEqual(self.call("slots", "get-primary"), "b\n")
        self.assertIn("another update is running", self.call("causeway-update", str(self.path / "image.conf"), code=1))
        self.assertNotIn("rauc install", self.calls_of_systemctl())
        self.assertEqual(confirmation.wait(20), 0)

    def test_a_confirmation_waits_for_the_lock(self):
        self.run_slot("b")
        holder = subprocess.Popen(["flock", self.path / "causeway-update.lock", "sleep", "2"])
        self.addCleanup(holder.wait)
        time.sleep(0.5)
        self.assertIn("slot b is started from now on", self.call("causeway-update", "--confirm"))
        self.assertIsNotNone(holder.poll())


class Contents(Stand):
    """The files of an update that the handlers before-install and after-install accept. The update is a directory."""

    def setUp(self):
        super().setUp()
        (self.boot / "b/cmdline.txt").unlink()
        for name, content in {**Maker.FILES, "manifest.raucm": b"", "bcm2711-rpi-4-b.dtb": b"tree"}.items():
            (self.update / name).write_bytes(content)

    def handler(self, name, code=0, image="slot.img"):
        return self.call(name, code=code, RAUC_TARGET_SLOTS="1", RAUC_SLOT_BOOTNAME_1="b", RAUC_SLOT_DEVICE_1=str(self.device),
                         RAUC_IMAGE_NAME_1=image, RAUC_BUNDLE_MOUNT_POINT=str(self.update))

    def refused(self, reason, **options):
        """Check that both handlers refuse the update for this reason, and that they write no file for slot b."""
        for name in ("before-install", "after-install"):
            self.assertEqual(self.handler(name, code=1, **options), f"{name}: {reason}\n")
            self.assertEqual((self.path / "causeway-update.reason").read_text(), reason + "\n")
        self.assertEqual([path.name for path in (self.boot / "b").iterdir()], [])

    def test_an_update_is_taken(self):
        self.handler("before-install")
        self.device.write_bytes((self.update / "slot.img").read_bytes() + bytes(100))
        self.handler("after-install")
        files = {path.name: path.read_bytes() for path in (self.boot / "b").iterdir()}
        self.assertEqual(files.pop("cmdline.txt"), b"quiet causeway.slot=b\n")
        self.assertEqual(files, {name: (self.update / name).read_bytes() for name in ("kernel.gz", "initrd", "bcm2711-rpi-4-b.dtb")})

    def test_a_slot_that_was_not_written_as_it_should_be_is_not_started(self):
        self.handler("before-install")
        self.assertIn("was not read from the card", self.handler("after-install", code=1))
        self.assertFalse((self.boot / "b/cmdline.txt").exists())

    def test_no_other_name_is_taken(self):
        for name in UNEXPECTED_FILES:
            with self.subTest(name):
                (self.update / name).write_bytes(b"init=/bin/sh\n")
                self.refused(f"it has an unexpected “{name}”")
                (self.update / name).unlink()

    def test_what_is_no_regular_file_is_not_taken(self):
        for what, (name, kind) in NO_REGULAR_FILES.items():
            with self.subTest(what):
                shutil.copytree(self.update, self.path / "kept")
                target = self.update / name
                target.unlink(missing_ok=True)
                word, rest = kind[0], kind.split()[4:]
                if word == "s":
                    target.symlink_to(rest[0])
                elif word == "d":
                    target.mkdir()
                else:
                    os.mkfifo(target)
                self.refused(f"it has an unexpected “{name}”")
                shutil.rmtree(self.update)
                (self.path / "kept").rename(self.update)

    def test_an_update_has_all_that_a_slot_needs(self):
        self.refused("its image for a slot is not slot.img", image="kernel.gz")
        self.refused("its image for a slot is not slot.img", image="../update/slot.img")
        for name in Maker.FILES:
            (self.update / name).rename(self.path / name)
            self.refused(f"it has no {name}")
            (self.path / name).rename(self.update / name)
        (self.update / "slot.img").write_bytes(bytes(100001))
        self.refused(f"its slot does not fit into {self.device}")


class FirstStart(unittest.TestCase):
    """The first start of a card, with causeway-first-start. The first partition is a directory."""

    STUBS = {
        "mount": '[ ! -e "$STAND/broken" ]', "umount": "exit 0", "sync": "exit 0",
        # The owners of a card's files do not exist here.
        "install": 'while [ "$1" != "" ]; do case $1 in -o | -g) shift 2 ;; -D) shift ;; -m) shift 2 ;; *) break ;; esac; done; cp "$1" "$2"',
        "ssh-keygen": 'while [ $# -gt 1 ]; do shift; done; echo key > "$1"; echo key > "$1.pub"',
        "causeway": 'echo "$*" >> "$STAND/leds"; cat "$4" >> "$STAND/leds"',
    }
    PLACES = ("/etc/causeway", "/etc/ssh/keys", "/etc/machine-id", "/usr/share/causeway", "/dev/causeway-boot", "/data", "/run", "/boot")
    BOARD = ("config.txt", "cmdline.txt", "tryboot.txt", "start4.elf", "fixup4.dat", "bootcode.bin", "a", "b")

    def setUp(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="causeway-first-"))
        self.addCleanup(shutil.rmtree, self.path)
        for place in (*self.PLACES, "/bin"):
            (self.path / place[1:]).mkdir(parents=True)
        for name, body in self.STUBS.items():
            (self.path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.path / "bin" / name).chmod(0o755)
        text = (ROOT / "usr/sbin/causeway-first-start").read_text()
        for place in self.PLACES:
            self.assertRegex(text, rf"(?<![\w-]){place}")
            text = re.sub(rf"(?<![\w/-]){place}(?![\w-])", str(self.path / place[1:]), text)
        (self.path / "start").write_text(text)
        (self.path / "usr/share/causeway/causeway.conf").write_text("the default\n")
        (self.path / "data/machine-id").write_text("1\n")
        self.boot, self.configuration, self.leds = self.path / "boot", self.path / "etc/causeway/causeway.conf", self.path / "leds"
        self.keys = self.path / "etc/ssh/keys/authorized_keys"
        for name in self.BOARD:
            (self.boot / name).write_text("the board's\n")
        (self.boot / "authorized_keys").write_text("a key\n")

    def start(self, code):
        done = subprocess.run(["/bin/sh", self.path / "start"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=30,
                              env={**os.environ, "PATH": f"{self.path / 'bin'}:{os.environ['PATH']}", "STAND": str(self.path)})
        self.assertEqual(done.returncode, code, done.stdout)
        if (self.boot / "authorized_keys").exists() and not (self.path / "broken").exists():
            self.assertEqual(self.keys.read_text(), "a key\n")
        else:
            self.assertFalse(self.keys.exists())
        return done.stdout

    def installed(self):
        return self.configuration.read_text() if self.configuration.exists() else None

    def test_the_configuration_of_the_card_is_installed_and_without_one_the_default(self):
        self.assertEqual((self.start(0), self.installed()), ("", "the default\n"))
        self.configuration.unlink()
        (self.boot / "causeway.conf").write_text("mine\n")
        (self.boot / "wpa_supplicant.conf").write_text("another program's\n")
        self.assertEqual((self.start(0), self.installed()), ("", "mine\n"))
        self.assertFalse(self.leds.exists())

    def test_a_configuration_with_a_wrong_name_stops_the_box_until_it_is_renamed(self):
        for name in ("causeway.conf.txt", "CAUSEWAY.CONF.TXT", "Causeway.Conf", "causeway.txt", "causeway", "causeway (1).conf", "causway.conf",
                     "box.conf", "box.CONF.txt", "my.config"):
            with self.subTest(name):
                (self.boot / name).write_text("mine\n")
                self.assertEqual(self.start(1), f"causeway: no configuration: the first partition has “{name}” and no causeway.conf; "
                                 "rename or remove the file\n")
                self.assertIsNone(self.installed())
                self.assertRegex(self.leds.read_text(), r"^leds --ended --config \S+\n\[board\]\nstatus-led = ACT\n$")
                (self.boot / name).rename(self.boot / "causeway.conf")
                self.assertEqual((self.start(0), self.installed()), ("", "mine\n"))
                for path in (self.boot / "causeway.conf", self.configuration, self.leds):
                    path.unlink()

    def test_a_key_with_a_wrong_name_is_reported_and_stops_nothing(self):
        for name in ("authorized_keys.txt", "Authorised-Keys", "id_ed25519.pub"):
            with self.subTest(name):
                (self.boot / "authorized_keys").rename(self.boot / name)
                self.assertEqual(self.start(0), f"causeway: nobody can log in: the first partition has “{name}” and no authorized_keys; "
                                 "rename the file\n")
                (self.boot / name).rename(self.boot / "authorized_keys")
        self.assertEqual(self.start(0), "")
        (self.boot / "authorized_keys").rename(self.boot / "authorized_keys.txt")
        self.assertEqual(subprocess.run(["/bin/sh", self.path / "start"], capture_output=True, stdin=subprocess.DEVNULL,
                                        env={**os.environ, "PATH": f"{self.path / 'bin'}:{os.environ['PATH']}", "STAND": str(self.path)}).stderr, b"",
                         "a card that has its key needs none on the first partition")

    def test_a_wrong_name_on_a_card_that_has_its_configuration_stops_nothing(self):
        self.start(0)
        (self.boot / "causeway.conf.txt").write_text("mine\n")
        self.assertEqual((self.start(0), self.installed()), ("", "the default\n"))

    def test_files_of_editors_and_updates_are_no_configuration(self):
        for name in ("._causeway.conf", ".causeway.conf.swp", "causeway.update", "notes.txt"):
            (self.boot / name).write_text("x\n")
        self.assertEqual((self.start(0), self.installed()), ("", "the default\n"))

    def test_no_sign_of_the_name_steers_the_terminal(self):
        (self.boot / "causeway\x1b[2J\n.conf").write_text("mine\n")
        self.assertIn("has “causeway?[2J?.conf” and", self.start(1))

    def test_a_first_partition_that_cannot_be_mounted_stops_the_box(self):
        (self.path / "broken").touch()
        self.assertEqual(self.start(1), "causeway: the card's first partition cannot be mounted\n")
        self.assertIsNone(self.installed())
        self.assertTrue(self.leds.exists())


class Bundles(unittest.TestCase):
    """The bundles that RAUC of each Debian release makes, valid ones and false updates."""

    def bundles(self, suite):
        root = Root(suite, "rauc", "squashfs-tools").path
        self.addCleanup(shutil.rmtree, root)
        maker = Maker(root / "made", Signer.new(root / "key", "update"), root)
        names = [line.split("squashfs-root/")[1] for line in maker.content(maker.make("good", NEWER, files={"bcm2711-rpi-4-b.dtb": b"tree"}))]
        self.assertEqual(names, ["bcm2711-rpi-4-b.dtb", "initrd", "kernel.gz", "manifest.raucm", "slot.img"])
        for name in UNEXPECTED_FILES:
            lines = maker.content(maker.make("false", NEWER, files={name: b"x"}))
            self.assertIn(name, [line.split("squashfs-root/")[1] for line in lines])
        for name, kind in NO_REGULAR_FILES.values():
            lines = maker.content(maker.make("false", NEWER, pseudo=[f"{name} {kind}"]))
            kinds = [line[0] for line in lines if line.split("squashfs-root/")[1].split(" -> ")[0] == name]
            self.assertEqual(kinds, ["l" if kind[0] == "s" else kind[0]], lines)

    def test_of_debian_12(self):
        self.bundles("bookworm")

    def test_of_debian_13(self):
        self.bundles("trixie")


if __name__ == "__main__":
    unittest.main()
