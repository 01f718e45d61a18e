#!/usr/bin/env python3
"""The instructions of the relay per forwarded frame, compared with a budget: instructions.py [--write]
[ARCHITECTURE...]

The firmware runs under QEMU's user mode, which counts its instructions. Two independent peers link with the firmware
over the loopback interface. One peer sends sealed frames outside TLS to the other, one or several in a write, and waits
until all have arrived. So the work is the same in each round. The result is the median of the rounds. More than 5 %
above the budget (budget.json) is a failure. With --write the results become the budget.

QEMU's processors have instructions for AES, but the tags of sealed frames do not use AES. Links with sealed frames
inside TLS are not measured."""
import argparse
import json
import mmap
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / name) for name in ("Tests/Daemons/support", "Tests/Lab/lab")]
sys.argv.insert(1, str(PROJECT / "build/x86_64/causeway"))          # the binary whose commands daemons.py uses

from bypass import sealed_unit  # noqa: E402
from daemons import Daemon, wait  # noqa: E402
from member import BYPASS, PING, PONG, RELAYS, SEALED, SEALED_FLAG, Member, frame  # noqa: E402

BUDGET = pathlib.Path(__file__).parent / "budget.json"
RISE_MAX = 0.05
ROUNDS = 60
INTERACTIVE_CLASS = 2
# Each case: the bytes of a frame's payload, and the number of frames in one write.
CASES = ((64, 1), (64, 32), (1024, 1), (1024, 32), (16384, 1), (16384, 4))


def plugin(directory):
    """Compile the plugin that counts, for this machine's QEMU. Returns its path."""
    text = subprocess.run(["qemu-x86_64", "--version"], check=True, capture_output=True, text=True).stdout
    major = int(re.search(r"version (\d+)", text).group(1))
    path = directory / "count_instructions.so"
    source = pathlib.Path(__file__).parent / "count_instructions.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-DVERSION={1 if major < 9 else 2}", "-o", path, source], check=True)
    return path


class CountedBox(Daemon):
    """A daemon under QEMU, whose instructions are counted."""

    def __init__(self, root, architecture, counter):
        super().__init__(root, architecture)
        self.file = pathlib.Path(root) / f"{architecture}.count"
        self.file.write_bytes(bytes(8))
        self.command = [f"qemu-{architecture}", "-plugin", f"{counter},count={self.file}", PROJECT / "build" / architecture / "causeway"]
        with open(self.file, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8)

    def start(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.command, "run", "--config", self.config], stderr=subprocess.DEVNULL)
        wait(f"{self.name} answers", lambda: self.run("status")[0] == 0)
        return self

    def count(self):
        """Wait until the daemon is idle. Returns the number of instructions that it has executed."""
        while True:
            before = struct.unpack("=Q", self.memory[:])
            time.sleep(0.01)
            after = struct.unpack("=Q", self.memory[:])
            if before == after:
                return after[0]


class Flow:
    """Sealed frames from one peer to another through the box."""

    def __init__(self, box):
        self.box, self.number = box, 0
        self.sender, self.receiver = (Member(box.port, f"127.0.0.{host}", capabilities=RELAYS | BYPASS) for host in (2, 3))
        for peer in (self.sender, self.receiver):
            peer.announce()
        wait("a frame arrives", lambda: self.pass_on(self.units(16, 1), 1, 0.2))

    def units(self, size, frames):
        """Make sealed frames for the second peer, in the form in which they are sent outside TLS records."""
        payload, units, stream = os.urandom(size), b"", self.sender.stream
        for _ in range(frames):
            self.number += 1
            stream.sequence += 1
            whole = frame(SEALED, payload, self.sender.identity.id, struct.pack(">Q", self.number), self.receiver.identity.id, SEALED_FLAG,
                          INTERACTIVE_CLASS)
            units += sealed_unit(stream.sending_key, stream.sequence, whole)
        return units

    def pass_on(self, units, frames, seconds=5):
        """Send these frames in one write. Returns whether all of them arrive within `seconds`."""
        self.sender.stream.send_raw(units)
        end = time.monotonic() + seconds
        while frames and time.monotonic() < end:
            self.sender.serve()
            for got, beside in self.receiver.stream.receive(0.02):
                frames -= got[1] == SEALED and beside
                if got[1] == PING:
                    self.receiver.stream.send(frame(PONG, got[48:], self.receiver.identity.id))
        return frames == 0

    def measure(self, size, frames):
        """Measure the instructions per frame. Returns the median of the rounds."""
        counts = []
        for _ in range(ROUNDS):
            units = self.units(size, frames)
            before = self.box.count()
            if not self.pass_on(units, frames):
                raise SystemExit("frames were lost")
            counts.append((self.box.count() - before) / frames)
        return round(statistics.median(counts))


def figures(architecture, counter):
    with tempfile.TemporaryDirectory() as root:
        box = CountedBox(root, architecture, counter).start()
        try:
            flow = Flow(box)
            return {f"{size} bytes, {frames} in one write": flow.measure(size, frames) for size, frames in CASES}
        finally:
            box.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("architectures", nargs="*", default=["x86_64", "aarch64"])
    arguments = parser.parse_args()
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    over = False
    with tempfile.TemporaryDirectory() as directory:
        counter = plugin(pathlib.Path(directory))
        for architecture in arguments.architectures:
            for case, count in figures(architecture, counter).items():
                allowed = budget.setdefault(architecture, {}).get(case)
                change = f"{count / allowed - 1:+.1%} beside the budget of {allowed}" if allowed else "no budget"
                print(f"{architecture}  {case:28} {count:7} instructions a frame, {change}", flush=True)
                over = over or bool(allowed) and count > allowed * (1 + RISE_MAX)
                budget[architecture][case] = count if arguments.write or not allowed else allowed
    if arguments.write:
        BUDGET.write_text(json.dumps(budget, indent=2) + "\n")
    elif over:
        sys.exit(f"more than {RISE_MAX:.0%} above the budget: find the cause, or accept it by --write")


if __name__ == "__main__":
    main()
