"""Runs a root directory as a separate machine. BusyBox's init is its process 1, and its network has no interface but loopback."""
import os
import pathlib
import signal
import subprocess
import time

from debian import ENVIRONMENT, run

# Plain files in place of the board's LED, and of the version 2 control groups in which OpenRC 0.45 and 0.56 start the daemon.
LED = "sys/class/leds/ACT"
CONTROL_GROUPS = {"bookworm": "sys/fs/cgroup/causeway", "trixie": "sys/fs/cgroup/openrc.causeway"}


def wait(what, predicate, seconds=20):
    """Call the predicate until its value is true. Returns that value. Raises AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := predicate()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return found


def command_line(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()


class Machine:
    """A machine that runs /etc/inittab of a root directory until `end` is called."""

    def __init__(self, root):
        self.root = root
        for name, text in (("trigger", "none [timer]"), ("brightness", ""), ("delay_on", ""), ("delay_off", "")):
            self._write(f"{LED}/{name}", text)
        places = f"""mount -t proc proc {root}/proc; mount -t tmpfs tmpfs {root}/run; mount -t tmpfs tmpfs {root}/sys/fs/cgroup
            for group in {" ".join(CONTROL_GROUPS.values())}; do
                mkdir {root}/$group
                touch {root}/$group/memory.max {root}/$group/memory.swap.max {root}/$group/pids.max {root}/$group/cgroup.procs
            done
            exec chroot {root} /bin/busybox init"""
        os.makedirs(f"{root}/sys/fs/cgroup", exist_ok=True)
        self.log = pathlib.Path(root, "boot.log")
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                ["unshare", "--fork", "--kill-child", "--pid", "--mount", "--net", "--uts", "--ipc", "sh", "-ec", places],
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        child = self.process.pid
        children = pathlib.Path(f"/proc/{child}/task/{child}/children")
        wait("process 1 is there", lambda: children.read_text() and command_line(children.read_text().strip()) == "/bin/busybox init")
        # The number that the host gives to process 1 of the machine.
        self.first = int(children.read_text())

    def _write(self, path, text):
        file = pathlib.Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def end(self):
        # unshare ignores SIGTERM. When unshare is killed, the kernel kills process 1 (--kill-child), and thus all other
        # processes.
        self.process.kill()
        self.process.wait(10)

    def run(self, *words):
        """Run a command in the machine. Returns the exit status, and output and errors together."""
        done = subprocess.run(["nsenter", f"--target={self.first}", "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wd", *ENVIRONMENT,
                               *words], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        return done.returncode, done.stdout

    def path(self, name):
        """The path by which the host reaches a file of the machine, also below the machine's mounts."""
        return pathlib.Path(f"/proc/{self.first}/root/{name}")

    def processes(self):
        """The command lines of the machine's processes, by the process number that the host uses. Process 1 is left out."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(entry) != self.first and os.readlink(f"/proc/{entry}/ns/pid") == os.readlink(f"/proc/{self.first}/ns/pid"):
                    found[int(entry)] = command_line(entry)
            except OSError:
                pass            # the process has just ended
        return found

    def daemon(self):
        """The process number of the daemon on the host, or 0. There must not be a second daemon."""
        daemons = [pid for pid, words in self.processes().items() if words == "/usr/bin/causeway run"]
        assert len(daemons) <= 1, daemons
        return daemons[0] if daemons else 0

    def kill(self, number=signal.SIGKILL):
        os.kill(self.daemon(), number)


def busybox_root(path, debian):
    """Make a root directory that contains only BusyBox, with the static binary of a Debian root."""
    for directory in ("bin", "sbin", "usr/bin", "usr/sbin", "etc/init.d", "proc", "run", "dev", "var/lib"):
        os.makedirs(f"{path}/{directory}")
    run("cp", f"{debian}/bin/busybox", f"{path}/bin/")
    run("chroot", path, "/bin/busybox", "--install", "-s")
    run("mknod", "-m", "666", f"{path}/dev/null", "c", "1", "3")
    run("mknod", "-m", "666", f"{path}/dev/urandom", "c", "1", "9")
    pathlib.Path(path, "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\ncauseway:x:100:101::/var/lib/causeway:/bin/false\n")
    pathlib.Path(path, "etc/group").write_text("root:x:0:\ncauseway:x:101:\ncauseway-apps:x:102:\ncauseway-config:x:103:causeway\n")
