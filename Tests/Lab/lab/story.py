"""The output of a scenario, its checks and its waits."""

import contextlib
import os
import sys
import time
import traceback

_started = time.monotonic()
_keepers = []


class CheckFailed(AssertionError):
    """An expected event did not happen, or an unexpected one did."""


def say(text=""):
    """Print one line (or several) exactly as given."""
    print(text, flush=True)


def elapsed():
    return time.monotonic() - _started


@contextlib.contextmanager
def step(title):
    """A part of the scenario. Prints its title with the time it took, or that it failed. The block may call the yielded
    object with a remark for that line."""
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
    """`what` names the expected condition. `detail` (a value, or a function that returns one) is shown if it is false."""
    if not condition:
        if callable(detail):
            detail = detail()
        raise CheckFailed(what if detail is None else f"{what}; got: {detail!r}")


def wait_until(description, predicate, timeout=10.0, interval=0.05):
    """Poll the predicate until its value is true, and return the value. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        if result := predicate():
            return result
        if time.monotonic() > deadline:
            raise CheckFailed(f"{description}: not within {timeout:g} s")
        time.sleep(interval)


def keep_at_end(keeper):
    """Call `keeper` when the scenario ends, in any way. It saves information that explains a failure."""
    _keepers.append(keeper)


def main(scenario):
    """Run the scenario and exit with 0 if it completed, 1 if a check failed, 2 on any other error."""
    # Unbuffered output would split every line into two writes, each a trip through the machine's port.
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
    # Threads of a failed scenario may still block in a system call. The machine stops anyway.
    os._exit(status)
