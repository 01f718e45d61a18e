"""The connection interval of a Bluetooth LE link follows the load: long at rest, short during a file, long again. In
this scenario data waits for connection events, at 1 Mbit/s. dave, on Ethernet, sends lines and a file to bob, on
Bluetooth LE."""

# seconds: 100

import random
import statistics
import time

from lab import check, main, say, step, wait_until
from lab.command import Talk, end_talks
from lab.node import bearer
from lab.stage import Stage
from lab.transfer import Transfer

RATE = 1_000_000                                     # bit/s
FILE_BYTES = 1 << 20
LINES = 15
INITIAL, FAST, SLOW = 0.015, 0.0075, 0.09            # seconds; the air's controllers choose the shortest allowed one
FAST_WITHIN_SECONDS, SLOW_WITHIN_SECONDS = 3, 16
REST_SECONDS = 10


def interval(stage):
    (link,) = stage.air.links()
    return link["interval"]


def wait_interval(stage, wanted, timeout):
    began = time.monotonic()
    wait_until(f"the interval is {wanted * 1000:g} ms", lambda: abs(interval(stage) - wanted) < 0.001, timeout)
    return time.monotonic() - began


def lines(stage, talk, heard, count):
    took = []
    for _ in range(count):
        time.sleep(random.uniform(0.2, 0.5))
        text = f"line {talk.said}"
        said = talk.say_line(text)
        took.append((heard.wait_line(text) - said) * 1000)
    return f"{statistics.median(took):.0f} ms in the middle, {max(took):.0f} ms at most, at {interval(stage) * 1000:g} ms"


def shown(stage, word):
    """The radio details of box and bob that contain this word. Only the node that made the connection shows the
    interval."""
    return [bearer(stage[name].status(), "bluetooth-le")["detail"] for name in ("box", "bob")
            if word in bearer(stage[name].status(), "bluetooth-le")["detail"]]


def scenario():
    with step("box and bob on Bluetooth LE, dave on Ethernet") as remark:
        stage = Stage(peers=("bob", "dave"))
        bob, dave = stage["bob"], stage["dave"]
        stage.wait_acquainted()
        stage.air.set_rate(RATE)
        stage.air.set_events(True)
        remark(f"interval {interval(stage) * 1000:g} ms")
    talks = talk, heard = [Talk(a, b, "--wait", 60) for a, b in ((dave, bob), (bob, dave))]
    talk.say_line("first")
    heard.wait_line("first")

    with step("nothing much passes: the interval becomes long") as remark:
        remark(f"after {wait_interval(stage, SLOW, 2 * SLOW_WITHIN_SECONDS):.1f} s")
        check(len(shown(stage, "1 at rest")) == 1, "one end shows it", shown(stage, "psm"))

    with step("lines at rest") as remark:
        remark(lines(stage, talk, heard, LINES))
        check(abs(interval(stage) - SLOW) < 0.001, "lines leave it long", interval(stage))

    with step(f"{REST_SECONDS} s of rest") as remark:
        before = stage.air.nodes()
        time.sleep(REST_SECONDS)
        after = stage.air.nodes()
        data = sum(after[name]["packets_sent"] - before[name]["packets_sent"] for name in ("hci0", "hci1"))
        remark(f"{2 / SLOW:.0f} packets a second of connection events ({2 / INITIAL:.0f} at {INITIAL * 1000:g} ms), "
               f"{data / REST_SECONDS:.1f} of them with data")

    with step("dave sends bob a file: the interval becomes short") as remark:
        transfer = Transfer(dave, bob, FILE_BYTES)
        transfer.wait_arrived(1)
        remark(f"{wait_interval(stage, FAST, FAST_WITHIN_SECONDS):.1f} s after the first bytes had come")
        check(len(shown(stage, "1 fast")) == 1, "one end shows it", shown(stage, "psm"))
    with step("lines beside the file") as remark:
        remark(lines(stage, talk, heard, 6))
        transfer.check_under_way()
    with step("the file arrives whole") as remark:
        remark(f"{FILE_BYTES / transfer.finish() / 1000:.1f} kB/s")

    with step("the interval becomes long again") as remark:
        remark(f"{wait_interval(stage, SLOW, SLOW_WITHIN_SECONDS):.1f} s after its end")
    end_talks(talks)
    say("         " + "; ".join(shown(stage, "psm")))


main(scenario)
