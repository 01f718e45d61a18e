#!/usr/bin/env python3
"""The relay's instructions per forwarded frame, beside a budget: instructions.py [--write] [ARCHITECTURE...]

The firmware runs under QEMU's user mode, which counts its instructions. Two independent peers link with it over the
loopback interface. One sends the other sealed frames beside TLS, some in one write, and waits until all have arrived,
so each round is the same work. The median of the rounds counts. More than 5 % above the budget (budget.json) is a
failure; --write makes the current figures the budget.

QEMU's processors have instructions for AES here. The tags of sealed frames use none, and links inside TLS are not
measured."""
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
sys.path.insert(0, str(PROJECT / "Tests/Daemons"))
sys.argv.insert(1, str(PROJECT / "build/x86_64/causeway"))          # daemons.py: the binary that answers about a daemon

from bypass import sealed_unit  # noqa: E402
from daemons import Daemon, wait  # noqa: E402
from member import BYPASS, PING, PONG, RELAYS, SEALED, SEALED_FLAG, Member, frame  # noqa: E402

BUDGET = pathlib.Path(__file__).parent / "budget.json"
RISE_MAX = 0.05
ROUNDS = 60
INTERACTIVE_CLASS = 2
# Bytes of a frame's payload, and frames in one write.
CASES = ((64, 1), (64, 32), (1024, 1), (1024, 32), (16384, 1), (16384, 4))


def plugin(directory):
    """Compile the counter for this machine's QEMU."""
    text = subprocess.run(["qemu-x86_64", "--version"], check=True, capture_output=True, text=True).stdout
    major = int(re.search(r"version (\d+)", text).group(1))
    path = directory / "count_instructions.so"
    source = pathlib.Path(__file__).parent / "count_instructions.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-DVERSION={1 if major < 9 else 2}", "-o", path, source], check=True)
    return path


class CountedBox(Daemon):
    """A daemon whose instructions are counted."""

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
        """The executed instructions, once the daemon is idle."""
        while True:
            before = struct.unpack("=Q", self.memory[:])
            time.sleep(0.01)
            after = struct.unpack("=Q", self.memory[:])
            if before == after:
                return after[0]


class Flow:
    """Sealed frames from one peer to another."""

    def __init__(self, box):
        self.box, self.number = box, 0
        self.sender, self.receiver = (Member(box.port, f"127.0.0.{host}", capabilities=RELAYS | BYPASS) for host in (2, 3))
        for peer in (self.sender, self.receiver):
            peer.announce()
        wait("a frame arrives", lambda: self.pass_on(self.units(16, 1), 1, 0.2))

    def units(self, size, frames):
        """Frames in their form on the wire."""
        payload, units, stream = os.urandom(size), b"", self.sender.stream
        for _ in range(frames):
            self.number += 1
            stream.sequence += 1
            whole = frame(SEALED, payload, self.sender.identity.id, struct.pack(">Q", self.number), self.receiver.identity.id, SEALED_FLAG,
                          INTERACTIVE_CLASS)
            units += sealed_unit(stream.sending_key, stream.sequence, whole)
        return units

    def pass_on(self, units, frames, seconds=5):
        """Send them in one write. Returns whether all arrive."""
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
        """The instructions per frame, the median of the rounds."""
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
