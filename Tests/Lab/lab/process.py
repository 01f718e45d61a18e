"""Programs on the lab's machine. Their output is collected in /tmp/log, in memory, and copied out when the machine
stops. To write it directly to the shared directory would slow daemons so much that they miss their deadlines."""

import os
import pathlib
import signal
import subprocess

from .story import CheckFailed, wait_until

LOGS = pathlib.Path("/tmp/log")


def run(*command, check=True, timeout=30, input=None):
    """Run a command until it ends. Returns its output (stdout and stderr) without surrounding space."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, text=True, input=input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout
    )
    if check and done.returncode:
        raise CheckFailed(f"`{' '.join(words)}` ended with {done.returncode}: {done.stdout.strip()}")
    return done.stdout.strip()


class Process:
    """A program that runs in parallel with the scenario. Its output is appended to /tmp/log/NAME.log at each start."""

    def __init__(self, name, *command, environment=None):
        self.name = name
        self.command = [str(word) for word in command]
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log = LOGS / f"{name}.log"
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            )

    @property
    def pid(self):
        """The process id of the program, or None if it has ended. For a program under nsbt it is the id of nsbt's
        child."""
        if not self.is_running():
            return None
        pid = self.child.pid
        if _command_name(pid) != "nsbt":
            return pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else None

    def is_running(self):
        return self.child.poll() is None

    def terminate(self, timeout=10):
        """Send SIGTERM, which asks the program to end. Returns its exit status."""
        if self.is_running():
            self.child.send_signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self):
        """Send SIGKILL. As in a power cut, the program cannot react. Returns its exit status."""
        if pid := self.pid:
            os.kill(pid, signal.SIGKILL)
            wait_until(f"{self.name} is gone", lambda: not os.path.exists(f"/proc/{pid}") or _is_zombie(pid))
        return self.wait(10)

    def wait(self, timeout=30):
        """Wait until the program has ended. Returns its exit status."""
        try:
            return self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{self.name} still runs after {timeout} s") from None

    def resident_kib(self):
        """The resident memory of the program in KiB."""
        return _status_kib(self.pid, "VmRSS")

    def peak_resident_kib(self):
        return _status_kib(self.pid, "VmHWM")

    def descriptors(self):
        """The number of open files of the program."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def output(self):
        return self.log.read_text(errors="replace")

    def lines(self):
        """The complete lines of the output. The last line is left out: a write that crosses a page of the file becomes
        visible in two parts."""
        return self.output().split("\n")[:-1]


def _command_name(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _is_zombie(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def _status_kib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise CheckFailed(f"process {pid} has no {field}")
