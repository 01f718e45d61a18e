"""Two nodes begin a sealed session over the worst LE hop. The hop is slow, silent for more than half of the time, and
cut in the middle of their handshake. The handshake completes, and their messages arrive."""

import re
import threading
import time

from lab import check, main, step, wait_until
from lab.command import Talk, chat, end_talks
from lab.stage import Stage, links_up

BITS_PER_SECOND = 64_000
SILENT_SECONDS, AUDIBLE_SECONDS = 0.3, 0.2


class Fading:
    """A context in which two controllers are in range of each other only now and then."""

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
            chat(bob, dave, timeout=120)
            (handshake,) = sessions(bob)
            remark(f"both lines after {time.monotonic() - start:.1f} s, handshake {handshake} ms, {fading.times} silences")
        stage.air.set_rate(None)

    with step("bob starts anew, and his link is cut while they shake hands") as remark:
        bob.restart()
        stage.wait_acquainted()
        stage.air.set_rate(BITS_PER_SECOND)
        before, forwarded = len(sessions(bob)), box.status()["box"]["frames_forwarded"]
        talk, answer = Talk(dave, bob, "--wait", 60), Talk(bob, dave, "--wait", 60)
        talk.say_line("Are you there?")
        answer.say_line("I am.")
        # The first frames that the box forwards after this point belong to the handshake.
        wait_until("they begin", lambda: box.status()["box"]["frames_forwarded"] > forwarded, 30, 0.02)
        check(stage.air.cut("hci0", "hci1") >= 1, "there was a link to cut")
        check(len(sessions(bob)) == before, "they had not finished", sessions(bob))
        start = time.monotonic()
        answer.wait_line("Are you there?")
        talk.wait_line("I am.")
        remark(f"both lines {time.monotonic() - start:.1f} s after the cut, handshake {sessions(bob)[-1]} ms")
        check(links_up(box.status(), "bluetooth-le"), "the link is back")
        end_talks([talk, answer])


def sessions(node):
    """The sealed sessions in the journal. Each is represented by the milliseconds of its handshake."""
    told = re.findall(r"established, (\d+) ms", node.cli("log", "--level", "debug"))
    return [int(milliseconds) for milliseconds in told]


main(scenario)
