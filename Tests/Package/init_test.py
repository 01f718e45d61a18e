#!/usr/bin/env python3
"""The scripts config/causeway.openrc and config/causeway.init, by which process 1 starts the daemon. usage: init_test.py

The machines are OpenRC of Debian 12 and 13, BusyBox alone, and Debian that starts as under sysvinit. The test uses
build/x86_64/causeway and needs root. mmdebstrap fetches the root directories from the archive that apt uses."""
import functools
import pathlib
import re
import shutil
import signal
import tempfile
import unittest

from debian import PROJECT, Root, run
from machine import CONTROL_GROUPS, LED, Machine, busybox_root, wait

CAPABILITIES = 1 << 12 | 1 << 10  # NET_ADMIN, NET_BIND_SERVICE
MEMORY_BYTES = int(re.search(r"^MemoryMax=(\d+)M$", (PROJECT / "config/causeway.service").read_text(), re.M)[1]) << 20
OPENRC = "::sysinit:/sbin/openrc sysinit\n::wait:/sbin/openrc boot\n::wait:/sbin/openrc default\n"


@functools.lru_cache
def debian(suite):
    """The root directory of a Debian release. It is fetched once, and each test uses a copy."""
    root = Root(suite, "openrc", "busybox-static", "passwd")
    unittest.addModuleCleanup(shutil.rmtree, root.path)
    return root


class InitTest(unittest.TestCase):
    def root(self, suite=None):
        """A temporary root directory with the daemon and its users. Without `suite`, BusyBox is the only other program."""
        path = pathlib.Path(tempfile.mkdtemp(prefix="causeway-init-"))
        self.addCleanup(shutil.rmtree, path)
        if suite:
            path.rmdir()
            run("cp", "-a", debian(suite).path, path)
            for words in ("groupadd --system causeway", "groupadd --system causeway-apps",
                          "groupadd --system causeway-config",
                          "useradd --system --no-create-home --home-dir /var/lib/causeway --gid causeway --groups causeway-config causeway"):
                run("chroot", path, *words.split())
        else:
            busybox_root(path, debian("trixie").path)
        shutil.copy(PROJECT / "build/x86_64/causeway", path / "usr/bin/")
        (path / "etc/causeway").mkdir()
        self.configuration = path / "etc/causeway/causeway.conf"
        shutil.copy(PROJECT / "config/causeway.conf", self.configuration)
        with open(self.configuration, "a") as file:
            file.write("\n[board]\nstatus-led = ACT\n[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n")
        run("chroot", path, "chown", "root:causeway-config", "/etc/causeway/causeway.conf")
        self.configuration.chmod(0o640)
        return path

    def install(self, root, script, place):
        """Install the script in the root. It is changed so that it checks every second, instead of every minute, whether the daemon
        answers, and so that one missing answer suffices."""
        text, minutes = re.subn(r"(?<=[ =])60\b", "1", (PROJECT / "config" / script).read_text())
        text, tries = re.subn(r"\b1 2 3 4 5 6;", "1;", text)
        self.assertTrue(minutes and tries, "the script looks otherwise than this test knows")
        (root / place).write_text(text)
        (root / place).chmod(0o755)

    def boot(self, root, inittab):
        (root / "etc/inittab").write_text(inittab)
        machine = Machine(root)
        self.addCleanup(machine.end)
        try:
            wait("it has booted, and the daemon answers", lambda: self.answers(machine))
        except AssertionError as failure:
            raise AssertionError(f"{failure}: {machine.log.read_text()}, {machine.processes()}") from None
        return machine

    def answers(self, machine):
        return machine.daemon() and machine.run("/usr/bin/causeway", "status")[0] == 0

    def status_of(self, pid):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return {key: value.strip() for key, value in (line.split(":", 1) for line in lines)}

    def is_its_user(self, machine):
        status = self.status_of(machine.daemon())
        self.assertEqual(status["Uid"].split()[0], str(machine.path("run/causeway").stat().st_uid))
        self.assertNotEqual(status["Uid"].split()[0], "0")
        for name in ("CapEff", "CapPrm", "CapAmb"):
            self.assertEqual(int(status[name], 16), CAPABILITIES, name)
        self.assertEqual(status["NoNewPrivs"], "1")

    def led(self, machine):
        """The milliseconds for which the LED is lit, as they were written last."""
        return (machine.root / LED / "delay_on").read_text()

    def story(self, machine, *script, tells_death=False):
        """Check the script through an operator's commands and failures of the daemon. `script` is the service command without its
        verb, such as “start”. `tells_death`: the LED shows at once that the daemon died."""
        def verb(word, code=0):
            found, said = machine.run(*script, word)
            self.assertEqual(found, code, f"{word}: {said}")
            return said

        def another(than):
            return (pid := machine.daemon()) != than and self.answers(machine) and pid

        verb("status")
        pid = machine.daemon()
        state = machine.path("var/lib/causeway").stat()
        self.assertEqual((state.st_mode & 0o777, state.st_uid), (0o700, machine.path("run/causeway").stat().st_uid))
        wait("its LED flashes: it is alone", lambda: self.led(machine) == "50")
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        self.assertRegex(limits, rf"Max data size +{MEMORY_BYTES} ")
        self.assertRegex(limits, "Max open files +1024 ")
        self.assertEqual(re.findall(r"^Umask:\s+(\d+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M), ["0077"])

        verb("start")
        self.assertEqual(machine.daemon(), pid, "a second start changes nothing")

        good = self.configuration.read_text()
        self.configuration.write_text(good + "[journal]\nlevel = loud\n")
        for word in ("reload", "restart"):
            found, said = machine.run(*script, word)
            self.assertNotEqual(found, 0, word)
            self.assertIn("“loud” is not accepted", said)
            self.assertEqual(machine.daemon(), pid, f"{word}: a mistake in the file stops nothing")
        self.assertTrue(self.answers(machine))
        self.configuration.write_text(good + "[journal]\nlevel = debug\n")
        verb("reload")
        self.assertEqual(machine.daemon(), pid)
        wait("the new level counts", lambda: self.answers(machine) and " debug " in machine.run("/usr/bin/causeway", "log", "--level", "debug")[1])

        node = machine.run("/usr/bin/causeway", "status")[1].splitlines()[0]
        machine.kill()
        if tells_death:
            wait("its LED blinks fast", lambda: self.led(machine) == "100")
        pid = wait("a daemon that was killed is back", lambda: another(pid))
        self.assertEqual(machine.run("/usr/bin/causeway", "status")[1].splitlines()[0], node)
        machine.kill(signal.SIGSTOP)
        pid = wait("a daemon that hangs is killed, and is back", lambda: another(pid), 60)
        verb("restart")
        wait("another one runs", lambda: another(pid))

        verb("stop")
        self.nothing_is_left(machine)
        self.assertEqual([file.name for file in machine.path("run/causeway").iterdir()], ["journal"], "the log outlives it, and no socket")
        verb("status", 3)
        verb("stop")
        verb("start")
        wait("it is back", lambda: self.answers(machine))
        machine.kill(signal.SIGSTOP)
        verb("stop")
        self.nothing_is_left(machine)

    def nothing_is_left(self, machine):
        wait("no process is left", lambda: not machine.processes())
        self.assertFalse(machine.path("run/causeway.pid").exists())
        self.assertEqual(int(self.led(machine)), 0, "its LED is dark")

    def openrc(self, suite, setpriv=True):
        root = self.root(suite)
        for link in (root / "etc/runlevels").glob("*/*"):
            link.unlink()
        (root / "etc/rc.conf").write_text("rc_cgroup_mode=unified\n")
        if not setpriv:
            (root / "usr/bin/setpriv").unlink()
        self.install(root, "causeway.openrc", "etc/init.d/causeway")
        run("chroot", root, "rc-update", "add", "causeway", "default")
        machine = self.boot(root, OPENRC)
        for name, value in (("memory.max", MEMORY_BYTES), ("memory.swap.max", 0), ("pids.max", 16)):
            self.assertEqual((machine.path(CONTROL_GROUPS[suite]) / name).read_text(), str(value), name)
        return machine

    def test_openrc_of_debian_12(self):
        machine = self.openrc("bookworm")
        self.is_its_user(machine)
        self.story(machine, "rc-service", "causeway")

    def test_openrc_of_debian_13(self):
        machine = self.openrc("trixie")
        self.is_its_user(machine)
        self.story(machine, "rc-service", "causeway")

    def test_openrc_gives_the_capability_where_there_is_no_setpriv(self):
        machine = self.openrc("trixie", setpriv=False)
        self.assertIn("--capabilities ^cap_net_admin,^cap_net_bind_service", " ".join(machine.processes().values()))
        self.is_its_user(machine)

    def test_openrc_without_capabilities_and_without_setpriv_starts_it_as_root(self):
        machine = self.openrc("bookworm", setpriv=False)
        self.assertEqual(self.status_of(machine.daemon())["Uid"].split()[0], "0")

    def test_busybox_alone(self):
        root = self.root()
        self.install(root, "causeway.init", "etc/init.d/S50causeway")
        machine = self.boot(root, "::sysinit:/etc/init.d/S50causeway start\n")
        self.assertEqual(self.status_of(machine.daemon())["Uid"].split()[0], "0", "its setpriv knows no users")
        self.story(machine, "/etc/init.d/S50causeway", tells_death=True)

    def test_busybox_alone_by_its_inittab(self):
        root = self.root()
        self.install(root, "causeway.init", "etc/init.d/S50causeway")
        line = re.search(r"^# +(::respawn:.*)$", (PROJECT / "config/causeway.init").read_text(), re.M)[1]
        machine = self.boot(root, line + "\n")
        supervisor = next(pid for pid, words in machine.processes().items() if words.endswith("S50causeway supervise"))
        pid = machine.daemon()
        machine.run("/etc/init.d/S50causeway", "stop")
        wait("init starts both again", lambda: self.answers(machine) and machine.daemon() != pid)
        self.assertNotIn(supervisor, machine.processes())

    def test_debian_with_links_of_sysvinit(self):
        root = self.root("trixie")
        self.install(root, "causeway.init", "etc/init.d/causeway")
        run("chroot", root, "update-rc.d", "causeway", "defaults")
        link = next((root / "etc/rc2.d").glob("S??causeway"))
        machine = self.boot(root, f"::sysinit:/etc/rc2.d/{link.name} start\n")
        self.is_its_user(machine)
        self.story(machine, "/etc/init.d/causeway", tells_death=True)


if __name__ == "__main__":
    unittest.main()
