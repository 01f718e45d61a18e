#!/usr/bin/env python3
"""The times of builds and tests, as a table: times.py [--all]

Clones the last commit into build/times, so that every build begins cold, and runs the commands there one after the other.
Packages and caches that exist are used; `--all` adds `make demo` and `make test`. Run it on a machine that does nothing else."""
import argparse
import os
import pathlib
import shutil
import subprocess
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CLONE = PROJECT / "build/times"
CORE, RIM = "Sources/Mesh/ShortestPaths.swift", "Sources/Relay/FaultReports.swift"
QUICK, DEVELOPMENT = "make quick MODULE=Mesh", "board/build/swift.sh development x86_64"
NOTHING, LINE, DECLARATION = "", "line", "declaration"
SELFTEST = "build/development/x86_64/causeway selftest > /dev/null"
ROWS = [
    ("the unit tests of one module of the core, cold", QUICK, None, NOTHING),
    ("the same after a change inside a function", QUICK, CORE, LINE),
    ("the same after a new declaration", QUICK, CORE, DECLARATION),
    ("the development firmware and its self-test, cold", f"{DEVELOPMENT} && {SELFTEST}", None, NOTHING),
    ("the same after a change inside a function of the rim", f"{DEVELOPMENT} && {SELFTEST}", RIM, LINE),
    ("the same after a change inside a function of the core", f"{DEVELOPMENT} && {SELFTEST}", CORE, LINE),
]
LONG_ROWS = [
    ("the demo, cold", "make clean demo", None, NOTHING),
    ("everything that CI runs, cold", "make clean test", None, NOTHING),
]


def change(path, kind):
    """Change a source so that its behaviour stays the same: a statement in the first function, or a new declaration."""
    source = (CLONE / path).read_text()
    if kind == LINE:
        begin = source.index("{\n", source.index("func ")) + 2
        source = source[:begin] + f"    _ = {time.monotonic_ns()}\n" + source[begin:]
    else:
        source += f"\nlet measured{time.monotonic_ns()} = 0\n"
    (CLONE / path).write_text(source)


def seconds(command):
    begun = time.monotonic()
    run = subprocess.run(command, shell=True, cwd=CLONE, env={**os.environ, "CI": "true"}, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
    if run.returncode != 0:
        raise SystemExit(f"{command} failed:\n{run.stdout[-3000:]}")
    return time.monotonic() - begun


def text(span):
    return f"{span:.1f} s" if span < 60 else f"{int(span) // 60} min {int(span) % 60} s"


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--all", action="store_true", help="also the demo and everything that CI runs")
    rows = ROWS + LONG_ROWS if arguments.parse_args().all else ROWS
    shutil.rmtree(CLONE, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", PROJECT, CLONE], check=True)
    print("| what | command | time |\n|---|---|---|")
    for what, command, path, kind in rows:
        if path:
            change(path, kind)
        print(f"| {what} | `{command.partition(' &&')[0]}` | {text(seconds(command))} |", flush=True)
    shutil.rmtree(CLONE)


if __name__ == "__main__":
    main()
