#!/usr/bin/env python3
"""Runs the tests and measurements with real daemons.

run.py [-j N] BINARY               all suites of `tests`, N at a time (default 2), the longest first
run.py BINARY NAME [ARGUMENT...]   one suite of `tests` or one program of `measurements`, with its output unchanged

Without NAME, prints a line per suite, then the whole output of each suite that failed, and `N passed, M failed`.
The exit status is 1 if a suite failed. A line `# seconds: N` in the file of a suite declares a duration above 20 s.

With NAME, the arguments of a suite are those of unittest, such as `BundleTest.test_no_secret_is_in_it`.

Suites and measurements import the modules of `support`, Examples/python and Tests/Lab/lab. The runner extends Python's
search path for them."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
# The folders whose modules suites and measurements import.
MODULES = (HERE / "support", PROJECT / "Examples/python", PROJECT / "Tests/Lab/lab")
SECONDS_DEFAULT = 20
# A suite that runs longer than this time is ended. The longest suite, library_test, builds for up to 400 s.
SECONDS_MAX = 1800


def programs(folder):
    """The Python files of a folder, by name."""
    return {path.stem: path for path in sorted((HERE / folder).glob("*.py"))}


def command(path, binary, *arguments):
    return [sys.executable, str(path), binary, *arguments]


def environment():
    """The environment of every suite and measurement, which extends Python's module search path."""
    path = [*map(str, MODULES), os.environ.get("PYTHONPATH")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def declared_seconds(path):
    match = re.search(r"^# seconds: (\d+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return int(match[1]) if match else SECONDS_DEFAULT


class Suite:
    """A running suite. Its output is in a file, because a pipe would stay open until all processes of the suite have ended."""

    def __init__(self, name, path, binary):
        self.name, self.begun, self.is_late = name, time.monotonic(), False
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command(path, binary), env=environment(), stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT)

    def has_ended(self):
        if self.process.poll() is None and time.monotonic() - self.begun > SECONDS_MAX:
            self.is_late = True
            self.process.kill()
            self.process.wait()
        return self.process.returncode is not None

    def report(self):
        """Print the line of the suite. Returns whether it passed."""
        status, seconds = self.process.returncode, time.monotonic() - self.begun
        if status == 0:
            print(f"PASS  {seconds:6.1f} s  {self.name}", flush=True)
        else:
            reason = f"still running after {SECONDS_MAX} s" if self.is_late else f"status {status}"
            print(f"FAIL  {seconds:6.1f} s  {self.name} ({reason})", flush=True)
        return status == 0

    def print_output(self):
        print(f"{self.name}:")
        self.output.seek(0)
        for line in self.output.read().decode(errors="replace").splitlines():
            print(f"  | {line}")


def run_all(binary, jobs):
    """Run all suites. Returns the exit status."""
    suites = programs("tests")
    waiting = sorted(suites, key=lambda name: -declared_seconds(suites[name]))
    running, failed = [], []
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            running.append(Suite(name, suites[name], binary))
        time.sleep(0.1)
        for suite in [each for each in running if each.has_ended()]:
            running.remove(suite)
            if not suite.report():
                failed.append(suite)
    for suite in failed:
        suite.print_output()
    print(f"{len(suites) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def run_one(binary, name, arguments):
    """Replace this process by a suite or a measurement."""
    tests, measurements = programs("tests"), programs("measurements")
    path = {**tests, **measurements}.get(name)
    if path is None:
        sys.exit(f"there is no suite and no measurement “{name}”. Suites: {' '.join(tests)}. Measurements: {' '.join(measurements)}.")
    os.execve(sys.executable, command(path, binary, *arguments), environment())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", type=int, default=2, metavar="N", help="how many suites run at a time (default 2)")
    parser.add_argument("binary", metavar="BINARY", help="the firmware, such as build/x86_64/causeway")
    parser.add_argument("name", metavar="NAME", nargs="?", help="one suite or measurement, instead of all suites")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args()
    if options.name:
        run_one(options.binary, options.name, options.arguments)
    if not os.access(options.binary, os.X_OK):
        sys.exit(f"{options.binary} is not a program; build the firmware: board/build/swift.sh firmware x86_64")
    sys.exit(run_all(options.binary, max(options.j, 1)))


if __name__ == "__main__":
    main()
