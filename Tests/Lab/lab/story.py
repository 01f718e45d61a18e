"""Telling what happens in a scenario, checking it and waiting for it."""

import contextlib
import os
import sys
import time
import traceback

_started = time.monotonic()
_keepers = []


class CheckFailed(AssertionError):
    """Something did not happen that should have, or the other way round."""


def say(text=""):
    """One line (or several) of the scenario's story, exactly as given."""
    print(text, flush=True)


def elapsed():
    return time.monotonic() - _started


@contextlib.contextmanager
def step(title):
    """A part of the scenario: says its title with the time it took, or that it failed. The block may call the object
    it gets with a remark for that line."""
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
    """`what` says what is expected to hold. `detail` (a value, or a function giving one) is shown if it does not."""
    if not condition:
        if callable(detail):
            detail = detail()
        raise CheckFailed(what if detail is None else f"{what}; got: {detail!r}")


def wait_until(description, predicate, timeout=10.0, interval=0.05):
    """Ask the predicate until it says something true, and return that; fail after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        if result := predicate():
            return result
        if time.monotonic() > deadline:
            raise CheckFailed(f"{description}: not within {timeout:g} s")
        time.sleep(interval)


def keep_at_end(keeper):
    """Call `keeper` when the scenario is over, however it ended: it saves what explains a failure."""
    _keepers.append(keeper)


def main(scenario):
    """Run the scenario and leave with 0 if it came to its end, 1 if a check failed, 2 if something broke."""
    # Unbuffered output would split every line in two writes, and each costs a trip through the machine's port.
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
    # Threads of a failed scenario may still sit in a system call; the machine stops anyway.
    os._exit(status)
