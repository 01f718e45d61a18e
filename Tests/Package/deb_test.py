#!/usr/bin/env python3
"""The Debian package on Debian 12 and 13: it is installed, upgraded, removed and purged in temporary roots. usage: deb_test.py

The test packages build/ARCH/causeway with board/build/deb.sh. It needs root. mmdebstrap fetches the root directory of each release
from the archive that apt uses."""
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

from debian import PROJECT, Root, run

# Files that dpkg, apt and the tools for accounts leave on every system, so these files do not belong to this package.
NOT_OURS = re.compile(r"/(run/systemd/|var/(lib/dpkg|log|cache|lib/systemd/deb-systemd)|etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd\.lock))")


def package(version, architecture="amd64"):
    run(PROJECT / "board/build/deb.sh", architecture, version)
    return PROJECT / f"build/causeway_{version}_{architecture}.deb"


class Installation(Root):
    """A Debian release in a directory, in which the test installs packages."""

    def __init__(self, suite):
        super().__init__(suite, "systemd", "init-system-helpers", "passwd")

    def dpkg(self, action, what):
        if isinstance(what, pathlib.Path):
            shutil.copy(what, self.path / "tmp/package.deb")
            what = "/tmp/package.deb"
        said = self.run("dpkg", "--force-confdef", "--force-confold", action, what)
        (self.path / "tmp/package.deb").unlink(missing_ok=True)
        return said

    def files(self):
        found = run("find", self.path, "-xdev", "-not", "-type", "d").splitlines()
        return {name.removeprefix(str(self.path)) for name in found if not NOT_OURS.match(name.removeprefix(str(self.path)))}

    def names(self, database):
        return {line.split(":")[0] for line in (self.path / "etc" / database).read_text().splitlines()}

    def access(self, path):
        """Mode, owner and group of a file, as stat(1) prints them."""
        return self.run("stat", "--format=%a %U:%G", path).strip()

    def identity(self):
        """Run the daemon as the systemd unit would, with the same user. Returns its node id."""
        for place in ("var/lib/causeway", "run/causeway"):
            (self.path / place).mkdir(parents=True, exist_ok=True)
            self.run("chown", "causeway:causeway", f"/{place}")
        daemon = subprocess.Popen(
            ["unshare", "--net", "chroot", str(self.path), "setpriv", "--reuid=causeway", "--regid=causeway", "--init-groups",
             "/usr/bin/causeway", "run"], stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 20
            while subprocess.run(["chroot", str(self.path), "/usr/bin/causeway", "status"], capture_output=True).returncode:
                assert time.monotonic() < end and daemon.poll() is None, "the daemon does not answer"
                time.sleep(0.2)
            return re.search(r"^node +(\w+)$", self.run("causeway", "identity", "show"), re.M)[1]
        finally:
            daemon.terminate()
            daemon.wait(10)


class PackageTest(unittest.TestCase):
    def story(self, suite):
        root = Installation(suite)
        self.addCleanup(shutil.rmtree, root.path)
        before, users, groups = root.files(), root.names("passwd"), root.names("group")

        root.dpkg("--install", package("0.1.0"))
        self.assertIn("causeway 0.1.0", root.run("causeway", "version"))
        self.assertEqual(root.names("passwd") - users, {"causeway", "causeway-diag"})
        self.assertTrue({"causeway", "causeway-apps", "causeway-config", "netdev", "gpio"} <= root.names("group"))
        self.assertTrue(os.path.islink(root.path / "etc/systemd/system/multi-user.target.wants/causeway.service"), "it is enabled")
        units = [f"/usr/lib/systemd/system/causeway{unit}" for unit in (".service", "-poweroff.path", "-poweroff.service")]
        self.assertEqual(root.run("systemd-analyze", "verify", "--man=no", *units).replace("\n", ""), "")
        self.assertFalse(os.path.lexists(root.path / "etc/systemd/system/multi-user.target.wants/causeway-poweroff.path"), "root enables it")
        root.run("systemctl", "enable", "causeway-poweroff.path")

        self.assertEqual(root.access("/etc/causeway/causeway.conf"), "640 root:causeway-config", "it may hold a passphrase")

        identity = root.identity()
        configuration = root.path / "etc/causeway/causeway.conf"
        configuration.write_text(configuration.read_text() + "\n[node]\ndisplay-name = attic\n")
        root.run("chown", "root:daemon", "/etc/causeway/causeway.conf")
        root.run("chmod", "644", "/etc/causeway/causeway.conf")
        root.dpkg("--install", package("0.1.1"))
        self.assertEqual(root.access("/etc/causeway/causeway.conf"), "644 root:daemon", "an administrator's choice outlives an upgrade")
        self.assertEqual(root.identity(), identity, "an upgrade keeps the box's key")
        self.assertIn("display-name = attic", configuration.read_text(), "and its configuration")

        root.dpkg("--remove", "causeway")
        self.assertTrue((root.path / "var/lib/causeway").is_dir() and configuration.exists(), "what is removed may come back")
        root.dpkg("--install", package("0.1.1"))
        self.assertEqual(root.identity(), identity)
        self.assertEqual(root.access("/etc/causeway/causeway.conf"), "644 root:daemon", "and a return")

        root.dpkg("--purge", "causeway")
        self.assertEqual(root.files() - before, set(), "nothing is left")
        self.assertEqual(root.names("passwd"), users)
        self.assertEqual(root.names("group") - groups - {"netdev", "gpio"}, set())

    def test_debian_12(self):
        self.story("bookworm")

    def test_debian_13(self):
        self.story("trixie")


class BytesTest(unittest.TestCase):
    def test_the_same_input_makes_the_same_package(self):
        first = package("0.1.0").read_bytes()
        self.assertEqual(package("0.1.0").read_bytes(), first)

    def test_lintian_has_no_error_and_no_warning(self):
        for architecture in ("amd64", "arm64"):
            self.assertEqual(run("lintian", "--allow-root", "--fail-on", "error,warning", package("0.1.0", architecture)).strip(), "")

    def test_both_architectures_have_the_same_files(self):
        lists = [re.findall(r"\./\S+", run("dpkg-deb", "--contents", package("0.1.0", architecture))) for architecture in ("amd64", "arm64")]
        self.assertEqual(*lists)

    def test_each_command_has_a_manual_page(self):
        pages = set(re.findall(r"man1/causeway-([a-z]+)\.1\.gz", run("dpkg-deb", "--contents", package("0.1.0"))))
        commands = set(re.findall(r"^  ([a-z]+)  ", run(PROJECT / "build/x86_64/causeway", "--help"), re.M))
        self.assertEqual(pages, commands)

    def test_the_completion_knows_commands_and_options(self):
        script = f"""PATH={PROJECT}/build/x86_64:$PATH; . {PROJECT}/board/build/deb/causeway.bash
            COMP_WORDS=(causeway sta) COMP_CWORD=1; _causeway; echo "${{COMPREPLY[*]}}"
            COMP_WORDS=(causeway log --l) COMP_CWORD=2; _causeway; echo "${{COMPREPLY[*]}}" """
        self.assertEqual(run("bash", "-c", script).split("\n")[:2], ["status", "--level"])


if __name__ == "__main__":
    unittest.main()
