"""Short messages over Bluetooth LE. The scenario measures the packets on the air for each message in two cases: each
message waits for the result of the one before, or many messages are in flight and share frames. An application of dave,
on Ethernet, sends them to an application of bob, on Bluetooth LE at 1 Mbit/s."""

import threading
import time

import causeway
from lab import check, main, say, step, wait_until
from lab.application import Application
from lab.stage import Stage

RATE = 1_000_000                                     # bit/s
DATA = bytes(64)
ALONE = 40
SPEAKERS, EACH = 32, 10


class Air:
    """The packets that the controllers of box and bob send after this object was made."""

    def __init__(self, stage):
        self.stage, self.began = stage, time.monotonic()
        self.before = self.counts()

    def counts(self):
        nodes = self.stage.air.nodes()
        return nodes["hci0"]["packets_sent"], nodes["hci1"]["packets_sent"], nodes["hci0"]["busy_seconds"]

    def of_each(self, count):
        """For one of `count` messages: the packets to bob, the packets back, and the milliseconds for which the air was
        busy."""
        there, back, busy = (now - then for now, then in zip(self.counts(), self.before))
        return there / count, back / count, busy / count * 1000

    def describe(self, count):
        there, back, busy = self.of_each(count)
        return f"{there:.2f} packets there and {back:.2f} back, {busy:.2f} ms of the air; {count / (time.monotonic() - self.began):.0f} a second"


def scenario():
    with step("box and bob on Bluetooth LE, dave on Ethernet"):
        stage = Stage(peers=("bob", "dave"))
        stage.wait_acquainted()
        stage.air.set_rate(RATE)

    with step("two applications gather in one session"):
        bob, dave = (Application(stage[name]) for name in ("bob", "dave"))
        wait_until("they meet", lambda: dave.meets([bob]) and bob.meets([dave]), 40, 0.05)

    def send(count):
        for _ in range(count):
            results = dave.session.send(DATA, to=[bob.address], timeout=30)
            check(results == {bob.address: causeway.Result.DELIVERED}, "a message is delivered", results)

    send(5)
    with step(f"{ALONE} messages of {len(DATA)} bytes, each after the result of the one before") as remark:
        air = Air(stage)
        send(ALONE)
        alone = sum(air.of_each(ALONE)[:2])
        remark(air.describe(ALONE))

    with step(f"{SPEAKERS * EACH} of them, {SPEAKERS} on their way at any time") as remark:
        air = Air(stage)
        speakers = [threading.Thread(target=send, args=[EACH]) for _ in range(SPEAKERS)]
        for speaker in speakers:
            speaker.start()
        for speaker in speakers:
            speaker.join()
        together = sum(air.of_each(SPEAKERS * EACH)[:2])
        remark(air.describe(SPEAKERS * EACH))
        wait_until("bob has all", lambda: len(bob.messages) == 5 + ALONE + SPEAKERS * EACH, 10, 0.05)

    say(f"         a message that shares frames takes {together / alone:.2f} of the packets that one alone takes")
    check(together < alone / 2, "messages that are on their way together share frames", (together, alone))


main(scenario)
