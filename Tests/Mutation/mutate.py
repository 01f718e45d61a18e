#!/usr/bin/env python3
"""Disables the checks of the sources one by one, and expects a test to fail each time.

mutate.py [--workers N] [--seeds N] [--only TEXT] [--apart]

A row of mutations.py is one mutation: it disables one check. All rows are put into one copy of the project and built once
(together.py). Then the program runs each row's tests: the unit tests that the row names, or the simulator over some seeds. Rows
that cannot be built together are built separately; with --apart, all rows are. Each suite first runs once without a mutation,
because a suite that fails without a mutation proves nothing. A row whose tests pass is a check without a test. The exit status
is 1 if there is such a row, or if a row's text no longer occurs in the sources.
"""
import argparse
import os
import pathlib
import queue
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import together  # noqa: E402
from mutations import ROWS  # noqa: E402
from row import SIMULATOR  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build/mutation/project"
ENVIRONMENT = {**os.environ, "SWIFT_BACKTRACE": "enable=no", "SWIFT_SECONDS_MAX": "3600",
               "SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH": str(2 * (os.cpu_count() or 1))}
BUILD_SECONDS_MAX = 3600
RUN_SECONDS_MAX = 300
# The limit on the memory of one process, because a mutation can cause a test that never ends and uses more and more memory.
PROCESS_BYTES_MAX = 8 << 30
COMPLAINT = re.compile(r"recorded an issue.* at (\S+\.swift:\d+.*)")
# The limit on the attempts to build all rows together. Each attempt leaves out the rows for which the compiler reported errors.
BUILDS_MAX = 12


def target(suite):
    return "simulate" if suite == SIMULATOR else suite.split(".")[0]


def write(path, content):
    """Write a file only if it changes. An unchanged file keeps its time, so the next build is incremental."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy_project(suites):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                            check=True).stdout.split("\n")
    files = {name for name in listed if name and (ROOT / name).is_file() and not (ROOT / name).is_symlink()}
    for folder in ("Sources", "Tests"):
        for old in list((COPY / folder).rglob("*")):
            if old.is_file() and str(old.relative_to(COPY)) not in files:
                old.unlink()
    for name in files:
        write(COPY / name, (ROOT / name).read_bytes())
        (COPY / name).chmod((ROOT / name).stat().st_mode)
    # Package.swift builds only these targets.
    ENVIRONMENT["CAUSEWAY_ONLY"] = " ".join(sorted({target(suite) for suite in suites}))
    (COPY / "build").mkdir(exist_ok=True)
    if not (COPY / "build/sysroot").exists():
        (COPY / "build/sysroot").symlink_to((ROOT / "build/sysroot").resolve())


def bound_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_BYTES_MAX, PROCESS_BYTES_MAX))


# The running builds and tests. Each build or test is a process group of its own, which is killed when this program
# ends.
RUNNING = set()


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, seconds, number=0, until=None):
    """Run a command. Returns (status, output). The first line that matches `until` ends the command early, with status 1."""
    process = subprocess.Popen(command, cwd=COPY, env={**ENVIRONMENT, together.VARIABLE: str(number)}, text=True, errors="replace",
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=bound_memory, process_group=0)
    RUNNING.add(process)
    late = threading.Event()
    timer = threading.Timer(seconds, lambda: (late.set(), end_group(process)))
    timer.start()
    output, is_found = [], False
    try:
        for line in process.stdout:
            output.append(line)
            is_found = until is not None and until.search(line) is not None
            if is_found:
                break
        if not is_found:
            process.wait()
    finally:
        timer.cancel()
        # The group also contains the processes that a test has started.
        end_group(process)
        process.wait()
        RUNNING.discard(process)
    if late.is_set():
        output.append(f"still running after {seconds} s")
    return 1 if is_found else process.returncode, "".join(output)


def build(is_simulator):
    # Debugger information takes a tenth of the build time.
    what = ["-c", "release", "--product", "simulate"] if is_simulator else ["--build-tests", "-debug-info-format", "none"]
    return run(["board/build/swift.sh", "host", "build", *what], BUILD_SECONDS_MAX)


def test(suite, seeds, number=0):
    if suite != SIMULATOR:
        return run([str(COPY / ".build/debug/causewayPackageTests.xctest"), "--testing-library", "swift-testing", "--filter", f"^{suite}"],
                   RUN_SECONDS_MAX, number, COMPLAINT)
    status, output = run([sys.executable, "Tests/Simulate/run.py", str(COPY / ".build/release/simulate"), "--seeds", str(seeds),
                          "--workers", "1", "--expect-failure"], RUN_SECONDS_MAX, number)
    failures = [line for line in output.splitlines() if line.startswith("seed ")]
    return (1, failures[0]) if failures else (0 if "nothing was found" in output else -1, output)


def first_complaint(output):
    """The first failed expectation or failed seed in the output, or else how the run ended."""
    for line in output.splitlines():
        found = COMPLAINT.search(line) or re.search(r"(^seed .*|Fatal error.*|still running.*)", line)
        if found:
            return found[1][:110]
    running = [line for line in output.splitlines() if re.search(r"Test .* started", line)]
    return (f"it ended in the middle: {running[-1]}" if running else output.strip()[-110:])[:110]


def build_together(rows, is_simulator):
    """Build the copy with these rows, {number: row}. Returns the rows that were left out, {number: reason}."""
    left = {}
    for name in {row.file.split("/")[1] for row in rows.values() if row.file.endswith(".swift")}:
        write(COPY / f"Sources/{name}/MutationInForce.swift", together.DECLARATION.encode())
    for _ in range(BUILDS_MAX):
        places = {}
        for file in {row.file for row in rows.values()}:
            inside = {number: row for number, row in rows.items() if row.file == file and number not in left and file.endswith(".swift")}
            text, places[file], outside = together.compose((ROOT / file).read_text(encoding="utf-8"), inside)
            left |= {number: "it stands outside of functions" for number in outside}
            write(COPY / file, text.encode())
        left |= {number: "it is C" for number, row in rows.items() if not row.file.endswith(".swift")}
        status, output = build(is_simulator)
        if status == 0:
            return left
        refused = {}
        for file, line, complaint in re.findall(r"(Sources/\S+\.swift):(\d+):\d+: error: (.*)", output):
            fitting = [place for place in places.get(file, []) if int(line) in place.lines]
            # The smallest place is the text of one row. For an error outside of these texts, the place is a function
            # with all rows that change the function.
            for number in min(fitting, key=lambda place: len(place.lines)).numbers if fitting else []:
                refused[number] = complaint
        if not refused:
            break
        left |= refused
    errors = [line for line in output.splitlines() if re.match(r"\S+:\d+:\d+: error:", line)]
    sys.exit("The copy does not build:\n" + "\n".join(errors[:5] or [output[-300:]]))


def judge(suite, seeds, number=0):
    """Run a suite with the mutation `number`, 0 for none. Returns (colour, observation)."""
    status, output = test(suite, seeds, number)
    if re.search(r"Test run with 0 tests", output):
        return "broken", f"{suite} has no test"
    return ("green", "nothing noticed") if status == 0 else ("red", first_complaint(output))


def judge_apart(row, seeds):
    path, original = COPY / row.file, (ROOT / row.file).read_text(encoding="utf-8")
    write(path, original.replace(row.before, row.after).encode())
    try:
        status, output = build(row.suite == SIMULATOR)
        if status != 0:
            errors = [line for line in output.splitlines() if "error:" in line]
            return "broken", f"does not build: {(errors or ['?'])[0][:100]}"
        return judge(row.suite, seeds)
    finally:
        write(path, original.encode())


class Run:
    def __init__(self, options):
        self.options = options
        self.colours = []
        self.lock = threading.Lock()
        self.own = {}

    def tell(self, row, colour, seen, seconds):
        with self.lock:
            self.colours.append(colour)
            print(f"{colour:6} {seconds:4.0f} s  {row.suite:14} {row.what}\n       {row.file}: {seen}", flush=True)

    def carry_out(self, row, judgement):
        start = time.monotonic()
        with self.lock:
            known = self.own.get(row.suite)
        if known is None:
            known = judge(row.suite, self.options.seeds)
            with self.lock:
                self.own[row.suite] = known
        colour, seen = judgement() if known[0] == "green" else ("broken", f"without it: {known[0]}, {known[1]}")
        self.tell(row, colour, seen, time.monotonic() - start)

    def all(self, rows):
        """Run rows that are all for the simulator, or all for unit tests."""
        is_simulator = any(row.suite == SIMULATOR for row in rows.values())
        start = time.monotonic()
        left = {number: "" for number in rows} if self.options.apart else build_together(rows, is_simulator)
        if not self.options.apart:
            print(f"built {len(rows) - len(left)} rows together in {time.monotonic() - start:.0f} s; left out:", *sorted(
                f"{rows[number].what} ({reason})" for number, reason in left.items()), sep="\n    ", flush=True)
        waiting = queue.Queue()
        # The rows of a suite are adjacent, so that seldom two workers both run the suite without a mutation.
        for number in sorted(rows, key=lambda number: rows[number].suite):
            if number not in left:
                waiting.put(number)

        def work():
            while True:
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                self.carry_out(rows[number], lambda: judge(rows[number].suite, self.options.seeds, number))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, self.options.workers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not left:
            return
        for row in rows.values():
            write(COPY / row.file, (ROOT / row.file).read_bytes())
        status, output = build(is_simulator)
        if status != 0:
            sys.exit(f"The copy does not build without a mutation: {output[-300:]}")
        for number in left:
            self.carry_out(rows[number], lambda: judge_apart(rows[number], self.options.seeds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--only", default="", help="rows whose title, file or suite contains this; with | between, one of these")
    parser.add_argument("--apart", action="store_true", help="build each row by itself")
    options = parser.parse_args()
    rows = {number: row for number, row in enumerate(ROWS, 1)
            if any(wanted in text for wanted in options.only.split("|") for text in (row.what, row.file, row.suite))}
    if not rows:
        sys.exit("no such row")
    course = Run(options)
    sound = {}
    for number, row in rows.items():
        times = (ROOT / row.file).read_text(encoding="utf-8").count(row.before)
        if times == 1:
            sound[number] = row
        else:
            course.tell(row, "stale", f"the text stands there {times} times", 0)
    copy_project({row.suite for row in sound.values()})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for is_simulator in (False, True):
            kind = {number: row for number, row in sound.items() if (row.suite == SIMULATOR) == is_simulator}
            if kind:
                course.all(kind)
    finally:
        for process in list(RUNNING):
            end_group(process)
    print(f"{course.colours.count('red')} of {len(rows)} mutations were noticed")
    sys.exit(0 if course.colours.count("red") == len(rows) else 1)


if __name__ == "__main__":
    main()
