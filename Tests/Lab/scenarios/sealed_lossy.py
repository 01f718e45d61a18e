"""Two nodes begin a sealed session over the worst LE hop: slow, silent for more than half of the time, and cut in the middle
of their handshake. It completes, and what they say arrives."""

import re
import threading
import time

from lab import check, main, step
from lab.stage import Command, Stage, chat, links_up

BITS_PER_SECOND = 64_000
SILENT_SECONDS, AUDIBLE_SECONDS = 0.3, 0.2


class Fading:
    """The two ends hear each other only now and then, until the end of the block."""

    def __init__(self, air, a, b):
        self.air, self.ends, self.times = air, (a, b), 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._ended.is_set():
            self.air.set_range(*self.ends, "far")
            time.sleep(SILENT_SECONDS)
            self.air.set_range(*self.ends, "near")
            self.times += 1
            self._ended.wait(AUDIBLE_SECONDS)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()


def scenario():
    with step("box, bob on Bluetooth LE and dave on Ethernet see each other, and have said nothing yet"):
        stage = Stage(peers=("bob", "dave"))
        box, bob, dave = (stage[name] for name in ("box", "bob", "dave"))
        stage.wait_acquainted()
        check(sessions(bob) == [], "there is no session", sessions(bob))

    with step(f"the air is slow, and silent {SILENT_SECONDS} s of every {SILENT_SECONDS + AUDIBLE_SECONDS} s") as remark:
        stage.air.set_rate(BITS_PER_SECOND)
        with Fading(stage.air, "hci0", "hci1") as fading:
            start = time.monotonic()
            chat(bob, dave)
            (handshake,) = sessions(bob)
            remark(f"both lines after {time.monotonic() - start:.1f} s, handshake {handshake} ms, {fading.times} silences")
        stage.air.set_rate(None)

    with step("bob starts anew, and his link is cut while they shake hands") as remark:
        bob.restart()
        stage.wait_acquainted()
        stage.air.set_rate(BITS_PER_SECOND)
        talk = Command(dave, "peer", "chat", "--to", "bob", "--seconds", "60", "--wait-for", "1", input="Are you there?\n")
        answer = Command(bob, "peer", "chat", "--to", "dave", "--seconds", "60", "--wait-for", "1", input="I am.\n")
        time.sleep(0.3)
        check(stage.air.cut("hci0", "hci1") >= 1, "there was a link to cut")
        start = time.monotonic()
        check("Are you there?" in answer.wait(), "dave's line arrives", answer.output)
        check("I am." in talk.wait(), "bob's line arrives", talk.output)
        remark(f"both lines {time.monotonic() - start:.1f} s after the cut, handshake {sessions(bob)[-1]} ms")
        stage.air.set_rate(None)
        check(links_up(box.status(), "bluetooth-le"), "the link is back")


def sessions(node):
    """The sessions that the journal tells of, each by the milliseconds that its handshake took."""
    told = re.findall(r"established, (\d+) ms", node.cli("log", "--level", "debug"))
    return [int(milliseconds) for milliseconds in told]


main(scenario)
