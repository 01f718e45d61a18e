#!/usr/bin/env python3
"""Disables one check after the other and sees that a test notices.

mutate.py [--workers N] [--seeds N] [--only TEXT]

Each row of mutations.py is put into a copy of the core, built, and run: the simulator over some seeds, or the unit
tests of one module. Rows of the rim are put into a copy of the whole project, of which there is one, because its build
needs the third-party libraries and takes longer. A row that stays green is a check that nothing proves. Exit status 1
when one does, or when a row's text is not in the sources any more.
"""
import argparse
import os
import pathlib
import queue
import re
import resource
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from mutations import ROWS  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build" / "mutation"
CORE = ["Primitives", "Journal", "Frame", "Link", "Mesh", "Channel", "Seal", "Session", "LocalAPI", "Node"]
RIM = SCRATCH / "rim"
ENVIRONMENT = {**os.environ, "SWIFT_BACKTRACE": "enable=no"}
BUILD_SECONDS_MAX = 600
RUN_SECONDS_MAX = 300
# Memory of one process: a mutation may make a test that never ends and keeps all it has seen.
PROCESS_BYTES_MAX = 8 << 30


def is_rim(row):
    return row.file.split("/")[1] not in CORE


def copy_project(place):
    """Copies what differs of all that a build for tests needs. The sysroot is the project's own."""
    for name in ("Sources", "Tests", "board"):
        for folder, _, files in os.walk(ROOT / name):
            target = place / pathlib.Path(folder).relative_to(ROOT)
            target.mkdir(parents=True, exist_ok=True)
            for old in target.iterdir():
                if old.is_file() and old.name not in files:
                    old.unlink()
            for file in files:
                write(target / file, (pathlib.Path(folder) / file).read_bytes())
                (target / file).chmod((pathlib.Path(folder) / file).stat().st_mode)
    write(place / "Package.swift", (ROOT / "Package.swift").read_bytes())
    (place / "build").mkdir(exist_ok=True)
    if not (place / "build/sysroot").exists():
        (place / "build/sysroot").symlink_to((ROOT / "build/sysroot").resolve())


def copy_sources(place):
    """Copies what differs, so that the build after it is an incremental one."""
    if place == RIM:
        return copy_project(place)
    place.mkdir(parents=True, exist_ok=True)
    names = [f"Sources/{module}" for module in CORE] + ["Tests/Support", "Tests/SessionStories", "Tests/Simulator", "Tests/Simulate"]
    names += [f"Tests/{module}Tests" for module in CORE if module != "Journal"]
    for name in names:
        target = place / name
        target.mkdir(parents=True, exist_ok=True)
        wanted = {source.name: source for source in (ROOT / name).iterdir() if source.is_file()}
        for old in target.iterdir():
            if old.name not in wanted:
                old.unlink()
        for file_name, source in wanted.items():
            write(target / file_name, source.read_bytes())
    write(place / "Package.swift", (ROOT / "Tests/Mutation/Package.swift").read_bytes())


def write(path, content):
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def bound_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_BYTES_MAX, PROCESS_BYTES_MAX))


def run(place, command, seconds):
    try:
        done = subprocess.run(command, cwd=place, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, preexec_fn=bound_memory)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        return -1, f"{(late.stdout or b'').decode(errors='replace')}\nstill running after {seconds} s"


def build(place, suite):
    if place == RIM:
        return run(place, ["board/swift.sh", "host", "build", "--build-tests"], BUILD_SECONDS_MAX)
    if suite == "simulator":
        return run(place, ["swift", "build", "-c", "release", "--product", "simulate"], BUILD_SECONDS_MAX)
    return run(place, ["swift", "build", "--build-tests"], BUILD_SECONDS_MAX)


def test(place, suite, seeds):
    if place == RIM:
        return run(place, ["board/swift.sh", "host", "test", "--skip-build", "--filter", suite], RUN_SECONDS_MAX)
    if suite == "simulator":
        command = [sys.executable, str(place / "Tests/Simulate/run.py"), str(place / ".build/release/simulate"),
                   "--seeds", str(seeds), "--workers", "1", "--expect-failure"]
        status, output = run(place, command, RUN_SECONDS_MAX)
        failures = [line for line in output.splitlines() if line.startswith("seed ")]
        if failures:
            return 1, failures[0]
        return (0 if "nothing was found" in output else -1), output
    return run(place, ["swift", "test", "--skip-build", "--filter", suite], RUN_SECONDS_MAX)


def first_complaint(output):
    """A failed expectation, a failed seed, or what else ended the run."""
    for line in output.splitlines():
        found = re.search(r"recorded an issue.* at (\S+\.swift:\d+.*)", line) or re.search(r"(^seed .*|Fatal error.*|still running.*)", line)
        if found:
            return found[1][:110]
    running = [line for line in output.splitlines() if re.match(r"◇ Test .* started", line)]
    return (f"it ended in the middle: {running[-1]}" if running else output.strip()[-110:])[:110]


def judge(place, row, seeds):
    """(colour, what was seen)"""
    path = place / row.file
    original = path.read_text(encoding="utf-8")
    if original.count(row.before) != 1:
        return "stale", f"the text stands there {original.count(row.before)} times"
    path.write_text(original.replace(row.before, row.after), encoding="utf-8")
    try:
        status, output = build(place, row.suite)
        if status != 0:
            errors = [line for line in output.splitlines() if "error:" in line]
            return "broken", f"does not build: {(errors or ['?'])[0][:100]}"
        status, output = test(place, row.suite, seeds)
        if re.search(r"Test run with 0 tests", output):
            return "broken", f"{row.suite} has no test here"
        return ("green", "nothing noticed") if status == 0 else ("red", first_complaint(output))
    finally:
        path.write_text(original, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--only", default="", help="rows whose title, file or suite contains this; with | between, one of these")
    options = parser.parse_args()
    rows = [row for row in ROWS if any(wanted in text for wanted in options.only.split("|")
                                       for text in (row.what, row.file, row.suite))]
    waiting = {True: queue.Queue(), False: queue.Queue()}
    # Rows of one suite together: the builds between them are smaller.
    for row in sorted(rows, key=lambda row: (row.suite != "simulator", row.suite)):
        waiting[is_rim(row)].put(row)
    colours = []
    lock = threading.Lock()

    def work(place):
        if waiting[place == RIM].empty():
            return
        copy_sources(place)
        while True:
            try:
                row = waiting[place == RIM].get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            colour, seen = judge(place, row, options.seeds)
            with lock:
                colours.append(colour)
                print(f"{colour:6} {time.monotonic() - start:4.0f} s  {row.suite:14} {row.what}\n"
                      f"       {row.file}: {seen}", flush=True)

    if not rows:
        sys.exit("no such row")
    places = [RIM] + [SCRATCH / str(index) for index in range(max(1, min(options.workers, len(rows))))]
    threads = [threading.Thread(target=work, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{colours.count('red')} of {len(rows)} mutations were noticed")
    sys.exit(0 if colours.count("red") == len(rows) else 1)


main()
