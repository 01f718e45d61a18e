"""The virtual board with a card: its starts, its console, and a shell on it over SSH."""
import os
import pathlib
import signal
import socket
import subprocess
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
BOOT = PROJECT / "board/virtual-arm64/boot.sh"
FIRST_PARTITION = 4 << 20


def card(image, *command, **options):
    """mtools on a card's first partition."""
    name, *words = command
    return subprocess.run([name, "-i", f"{image}@@{FIRST_PARTITION}", *words], check=True, capture_output=True, **options).stdout


class Board:
    """One start. `drive`: what QEMU has as the card; the image when it is not given."""

    def __init__(self, image, key, log, drive=None):
        self.key = key
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.began = time.monotonic()
        environment = {**os.environ, **({"CAUSEWAY_DRIVE": drive} if drive else {})}
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [BOOT, image, "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22", "-device", "virtio-net-pci,netdev=net"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True)

    def shell(self, command, check=True, timeout=120):
        words = ["ssh", "-q", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=10", "-o",
                 "IdentitiesOnly=yes", "-i", self.key, "-p", str(self.port), "root@127.0.0.1", command]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"`{command}` ended with {done.returncode}: {done.stdout}")
        return done.stdout if check else (done.returncode, done.stdout)

    def send(self, path, target):
        with open(path, "rb") as source:
            subprocess.run(["ssh", "-q", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes",
                            "-i", self.key, "-p", str(self.port), "root@127.0.0.1", f"cat > {target}"], stdin=source, check=True, timeout=300)

    def wait(self, command, seconds=400):
        """Until a command on the board succeeds; what it printed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError("the board has stopped")
            try:
                code, text = self.shell(command, check=False, timeout=60)
                if code == 0:
                    return text
            except subprocess.TimeoutExpired:
                pass
            time.sleep(1)
        raise AssertionError(f"`{command}` does not succeed within {seconds} s")

    def wait_end(self, seconds=300):
        """Until it is switched off, or restarts."""
        self.process.wait(seconds)

    def cut(self):
        """The power goes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
