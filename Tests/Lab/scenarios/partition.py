"""The network is partitioned and becomes whole again, once in the air and once at a cable. The separated peer is
reported lost. A chat line to that peer is refused with a reason, or held. When the partition ends all peers are back.
No node ever lists a peer twice."""

import time

from lab import check, main, step, wait_until
from lab.box import set_radio_range
from lab.command import Command, Talk, chat, end_talks
from lab.stage import Stage, links_up, look_for_doubles, peer_names

HELD, ANSWER = "Are you there?", "Now I am."
TOGETHER, APART = 1, 2                               # the groups of two radios that are in range or out of range


class Cut:
    """A way to separate one peer from the network. The checks are the same for all ways."""

    def __init__(self, stage, name, other, apart, heal):
        self.stage, self.name, self.other = stage, name, other
        self.apart, self.heal = apart, heal

    def statuses(self):
        return look_for_doubles(self.stage.nodes.values())

    def is_missed(self):
        statuses = self.statuses()
        alone = statuses.pop(self.name)
        return not alone["peers"] and not any(self.name in peer_names(status) for status in statuses.values())

    def is_healed(self):
        return all(
            peer_names(status) == set(self.stage.nodes) - {name} for name, status in self.statuses().items()
        )

    def run(self):
        lost, other = self.stage[self.name], self.stage[self.other]
        with step(f"{self.name} is cut off, and missed by all") as remark:
            began = time.monotonic()
            self.apart()
            wait_until(f"{self.name} is missed", self.is_missed, 40, 0.2)
            remark(f"after {time.monotonic() - began:.1f} s")
            status = self.stage["box"].status()
            check(len(links_up(status)) == len(self.stage.nodes) - 2, "the box has its other links", status["links"])

        with step(f"{self.other} has a line for {self.name}: refused, and another one held"):
            refused = Command(other, "chat", "--with", self.name, "--wait", "1", input="Hello?\n")
            refused.end(4, 20)
            why = f"causeway: “{self.name}” did not appear within 1 s: 1 line was not delivered"
            check(refused.errors == [why], "the refusal says why", refused.errors)
            holding, reading = Talk(other, lost, "--wait", 60), Talk(lost, other, "--wait", 60)
            holding.say_line(HELD)
            reading.say_line(ANSWER)

        with step(f"{self.name} is back, and has the line") as remark:
            began = time.monotonic()
            self.heal()
            wait_until("everybody sees everybody", self.is_healed, 60, 0.2)
            remark(f"everybody there after {time.monotonic() - began:.1f} s")
            when = reading.wait_line(HELD)
            check(when > began, "the line was held until then")
            holding.wait_line(ANSWER)
            end_talks([holding, reading])
            for talk, line in ((reading, f"<{self.other}> {HELD}"), (holding, f"<{self.name}> {ANSWER}")):
                check(talk.lines() == [line], "the line that was held came once", talk.lines())
            remark(f"the line {when - began:.1f} s")

        with step("they chat as before"):
            chat(lost, other)
            look_for_doubles(self.stage.nodes.values())


def scenario():
    with step("box, carol on Wi-Fi Direct and dave on Ethernet see each other, and chat"):
        stage = Stage(peers=("carol", "dave"))
        stage.wait_acquainted()
        chat(stage["carol"], stage["dave"])
    box = stage.boxes["box"]
    Cut(stage, "carol", "dave", lambda: set_radio_range(1, APART), lambda: set_radio_range(1, TOGETHER)).run()
    Cut(stage, "dave", "carol", lambda: box.set_link("eth0", up=False), lambda: box.set_link("eth0", up=True)).run()


main(scenario)
