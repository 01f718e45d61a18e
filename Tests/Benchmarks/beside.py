#!/usr/bin/env python3
"""The relay in comparison with similar relays: beside.py BINARY [--quick] [--rounds N]

The network is three namespaces, A – R – B. The box and the other relays all run in R on this machine, and are measured
in turn. A round measures every case with each relay, one after the other. Every second round runs in the opposite
order. Ratios are computed within a round; the tables show their median and extremes.

generator.c makes the load. It is an independent node of Causeway and a client of every other relay, and verifies each
message and each tag. The run fails if a message is lost. Processor time is the user and system time of all threads of
the relay.

A complete run writes its tables into docs/measurements/benchmarks.md and its chart into docs/images. With --quick the
program measures one short round, prints the tables, and writes only below build/benchmarks."""
import argparse
import pathlib
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.argv[1:] = sys.argv[1:] or [str(PROJECT / "build/x86_64/causeway")]

from bench_network import BINARY, Places  # noqa: E402
from ends import Application, Files, Handshakes, missing  # noqa: E402
from flows import Bench  # noqa: E402
from report import Report  # noqa: E402
from systems import PACKED_BYTES, RECEIVERS_MAX, SIZES, all_systems  # noqa: E402
from workshop import Workshop  # noqa: E402

STARTS = 5
FLOWS = [(receivers, size, False) for receivers in (1, RECEIVERS_MAX) for size in SIZES] + [(1, 64, True)]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def measure_relays(report, bench, systems, mode):
    """Make the measurements during which all relays run."""
    for system in systems:
        system.start(bench.workshop, bench.places)
    application = Application(bench.workshop.directory, bench.places, systems[0].box)
    application.measure(mode.seconds / 2)
    try:
        for number in range(mode.rounds):
            ordered = systems if number % 2 == 0 else systems[::-1]
            for receivers, size, one_by_one in FLOWS:
                say(f"round {number + 1}: {size} bytes, 1 → {receivers}{', one by one' if one_by_one else ''}")
                for system in ordered:
                    report.flow(number, system, receivers, size, one_by_one, bench.flow(system, size, receivers, one_by_one, mode.seconds))
            say(f"round {number + 1}: frames of many short messages")
            for system in ordered:
                if system.protocol == "causeway":
                    report.flow(number, system, 1, PACKED_BYTES, False, bench.flow(system, PACKED_BYTES, seconds=mode.seconds))
            say(f"round {number + 1}: round trips, and messages of one application")
            for system in ordered:
                report.round_trips(number, system, bench.round_trips(system, mode.seconds * 2))
            report.application(number, application.measure(mode.seconds * 3))
    finally:
        application.end()
        for system in systems:
            system.stop()


def measure_memory(report, bench, systems, mode):
    for system in systems:
        if not system.alone:
            continue
        say(f"start and memory: {system.title}")
        for _ in range(STARTS - 1):
            report.start(system, system.start(bench.workshop, bench.places))
            system.stop()
        report.start(system, system.start(bench.workshop, bench.places))
        try:
            if not mode.quick:
                report.memory(system, bench.memory(system))
        finally:
            system.stop()


def measure_ends(report, root, places, mode):
    for title, make, tell in (("handshakes", lambda: Handshakes(root), report.handshake),
                              (f"a file of {mode.file_bytes >> 20} MiB", lambda: Files(root, places, mode.file_bytes), report.file)):
        part = make()
        try:
            for number in range(mode.rounds):
                say(f"round {number + 1}: {title}")
                tell(number, part.measure())
        finally:
            part.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    mode = parser.parse_args()
    mode.rounds = mode.rounds or (1 if mode.quick else 3)
    mode.seconds, mode.file_bytes = (0.3, 32 << 20) if mode.quick else (1.0, 300 << 20)
    build = PROJECT / "build/benchmarks"
    build.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    # The files are in memory if the machine has /dev/shm, so that the speed of a disk is not measured.
    shared = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="causeway-", dir=shared) as root:
        workshop, places = Workshop(root, build, BINARY), Places()
        try:
            systems = [system for system in all_systems() if system.installed()]
            absent = sorted({system.program for system in all_systems() if not system.installed()}) + missing()
            report = Report(mode, systems, absent)
            bench = Bench(workshop, places)
            measure_relays(report, bench, systems, mode)
            measure_memory(report, bench, systems, mode)
            measure_ends(report, root, places, mode)
        finally:
            places.end()
    report.took = time.monotonic() - begin
    if mode.quick:
        report.write(build / "benchmarks.md", build / "benchmarks.svg")
    else:
        report.write(PROJECT / "docs/measurements/benchmarks.md", PROJECT / "docs/images/benchmarks.svg")
    print(report.text())


if __name__ == "__main__":
    main()
