"""The virtual board with a card. It can be started and cut off, and has a shell over SSH. Also the air, which connects the
board's two Bluetooth controllers."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
BOOT = PROJECT / "board/boards/virtual-arm64/boot.sh"
FIRST_PARTITION = 4 << 20


def card(image, *command, **options):
    """Run mtools on a card's first partition."""
    name, *words = command
    return subprocess.run([name, "-i", f"{image}@@{FIRST_PARTITION}", *words], check=True, capture_output=True, **options).stdout


class Air:
    """Two virtual Bluetooth controllers of the radio lab, in range of each other. Each is connected to a UART of the board."""

    def __init__(self, directory):
        self.sockets = [directory / "uart0", directory / "uart1"]
        wheels = directory / "wheels"
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--no-deps",
                        "--require-hashes", "--target", wheels, "--requirement", PROJECT / "board/lab/image/wheels.txt"], check=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "air", "--controllers", "0", "--control", directory / "air",
             *(word for path in self.sockets for word in ("--socket", path))],
            env={**os.environ, "PYTHONPATH": f"{PROJECT / 'board/lab'}:{wheels}"}, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not all(path.exists() for path in self.sockets):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("the Bluetooth controllers do not start")
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Board:
    """One start of the board, until it is switched off or restarts. `air` contains the Bluetooth controllers. `drive` are QEMU's
    options of the card, by default for the image."""

    def __init__(self, image, key, log, air, drive=None):
        self.key = key
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # All commands share one SSH connection, because a handshake takes seconds on the emulated processor. A command
        # opens its own connection if the shared one does not exist.
        self.control, self.connection = key.parent / f"ssh-{self.port}", None
        self.began = time.monotonic()
        environment = {**os.environ, **({"CAUSEWAY_DRIVE": drive} if drive else {})}
        uarts = [word for number, path in enumerate(air.sockets) for word in (
            "-chardev", f"socket,id=uart{number},path={path}", "-device", f"pci-serial,chardev=uart{number}")]
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [BOOT, image, "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22", "-device", "virtio-net-pci,netdev=net",
                 *uarts],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True)

    def ssh(self, *words):
        common = ["ssh", "-q", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=30", "-o",
                  "IdentitiesOnly=yes", "-i", self.key, "-p", str(self.port), "-S", self.control, "root@127.0.0.1"]
        if not self.connection or self.connection.poll() is not None:
            self.control.unlink(missing_ok=True)
            self.connection = subprocess.Popen([*common, "-M", "-N"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 30
            while not self.control.exists() and self.connection.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
        return [*common, *words]

    def shell(self, command, check=True, timeout=120, stdin=subprocess.DEVNULL):
        done = subprocess.run(self.ssh(command), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"`{command}` ended with {done.returncode}: {done.stdout}")
        return done.stdout if check else (done.returncode, done.stdout)

    def send(self, path, target):
        with open(path, "rb") as source:
            subprocess.run(self.ssh(f"cat > {target}"), stdin=source, check=True, timeout=1800)

    def wait(self, command, seconds=900):
        """Wait until a command on the board succeeds. Returns its output."""
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

    def wait_end(self, seconds=900):
        """Wait until QEMU ends, because the board was switched off or restarted."""
        self.process.wait(seconds)

    def cut(self):
        """Cut the power of the board, by killing QEMU."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.connection:
            self.connection.kill()
            self.connection.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
