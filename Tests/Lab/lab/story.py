"""The output of a scenario, its checks, and its waiting."""

import contextlib
import os
import sys
import time
import traceback

_started = time.monotonic()
_keepers = []


class CheckFailed(AssertionError):
    """The scenario fails: an expected event did not happen, or an unexpected event happened."""


def say(text=""):
    """Print one or several lines without changes."""
    print(text, flush=True)


def elapsed():
    return time.monotonic() - _started


@contextlib.contextmanager
def step(title):
    """A part of the scenario. Prints its title with the seconds that it took, or with FAILED. The block may call the
    yielded function with a remark that is appended to this line."""
    remarks = []
    start = time.monotonic()
    try:
        yield remarks.append
    except BaseException:
        say(f"{elapsed():7.2f}  FAILED  {title}")
        raise
    remark = "".join(f"; {text}" for text in remarks)
    say(f"{elapsed():7.2f}  ok      {title} ({time.monotonic() - start:.2f} s{remark})")


def check(condition, what, detail=None):
    """Fail if `condition` is false. `what` names the condition. `detail`, a value or a function that returns one, is
    printed with the failure."""
    if not condition:
        if callable(detail):
            detail = detail()
        raise CheckFailed(what if detail is None else f"{what}; got: {detail!r}")


def wait_until(description, predicate, timeout=10.0, interval=0.05):
    """Poll the predicate until its value is true. Returns this value. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        if result := predicate():
            return result
        if time.monotonic() > deadline:
            raise CheckFailed(f"{description}: not within {timeout:g} s")
        time.sleep(interval)


def keep_at_end(keeper):
    """Call `keeper` when the scenario ends, even if it fails. A keeper saves what explains a failure."""
    _keepers.append(keeper)


def main(scenario):
    """Run the scenario and exit: with 0 if it completed, 1 if a check failed, or 2 for any other error."""
    # Output is buffered by line: unbuffered output splits each line into two slow writes to the machine's serial port.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)
    try:
        scenario()
    except CheckFailed as failure:
        where = traceback.extract_tb(failure.__traceback__)
        say(f"{elapsed():7.2f}  CHECK FAILED: {failure}")
        for frame in where[1:]:
            say(f"             {frame.filename}:{frame.lineno}: {frame.line}")
        status = 1
    except Exception:
        say(f"{elapsed():7.2f}  BROKEN")
        say(traceback.format_exc())
        status = 2
    else:
        say(f"{elapsed():7.2f}  passed")
        status = 0
    for keeper in _keepers:
        with contextlib.suppress(Exception):
            keeper()
    sys.stdout.flush()
    # Threads of a failed scenario may block in a system call, so the process exits without waiting for them.
    os._exit(status)
