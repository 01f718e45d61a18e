"""Sixteen peers on Bluetooth LE around a box whose radio allows seven connections. Every node sees all others. A ping
between any two peers is answered, and so are all pings when every peer pings at once. With the argument `relay` one of
the sixteen peers forwards, too."""

import json
import subprocess
import sys
import threading
import time

from lab import BluetoothAir, Box, Node, check, main, say, step, wait_until
from lab.stage import links_up, peer_names

LEAVES = 16
PLACES = 7
SEEN_SECONDS, LINE_SECONDS = 30, 3
# The allowed ratio of the slowest question to the median of the same run. The emulator's speed differs by a third
# between runs, which changes all questions alike. A peer that waits too long for its turn exceeds the ratio in each
# run.
SLOWEST_RATIO = 4


class Question:
    """A run of `causeway ping` from one node to another, in parallel with the scenario."""

    def __init__(self, node, other, count=1):
        # The command reaches the control socket without entering a namespace, because all boxes share the node's
        # directory.
        words = ["causeway", "ping", "--config", node.configuration_file, "--count", count, "--timeout", 60, "--json",
                 other.name]
        self.child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.answers, self.failure = [], ""
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.child.stdout:
            event = json.loads(line)
            if event["event"] != "end":
                self.answers.append((time.monotonic(), event))
        self.failure = self.child.stderr.read().decode(errors="replace").strip()

    def seconds(self):
        """Wait until the command ends. Returns the seconds until the first answer."""
        self.thread.join(90)
        check(self.answers and self.answers[0][1]["event"] == "answer", "there is an answer",
              self.answers or self.failure)
        return self.answers[0][1]["microseconds"] / 1e6


def scenario():
    relays = [0, 1] if "relay" in sys.argv[1:] else [0]
    names = ["box"] + [f"peer{number}" for number in range(1, LEAVES + 1)]

    with step(f"a box and {LEAVES} peers, {len(relays) - 1} of them a relay") as remark:
        BluetoothAir(controllers=len(names))
        place = Box("room")
        nodes = [
            Node(place, name, adapter=f"hci{number}", start=False,
                 extra={"node": {"relay": "yes" if number in relays else "no"}, "journal": {"level": "info"}})
            for number, name in enumerate(names)
        ]
        start = time.monotonic()
        for node in nodes:
            node.start(wait=False)
        for node in nodes:
            wait_until(f"{node.name} answers", node.is_answering, 60, 0.2)
        remark(f"the last one runs after {time.monotonic() - start:.1f} s")
        up = time.monotonic()

    with step("everybody sees everybody") as remark:
        # The nodes are asked in sequence, because commands of all nodes at once would keep the machine busy.
        for node in nodes:
            others = set(names) - {node.name}
            wait_until(f"{node.name} sees everybody", lambda: others <= peer_names(node.status()), 120, 0.5)
        last = time.monotonic() - up
        remark(f"the last one {last:.1f} s after all ran")
        check(last <= SEEN_SECONDS, f"within {SEEN_SECONDS} s", last)

    with step("leaves leave each other's places free; some are parked") as remark:
        ends = [nodes[number] for number in range(len(nodes)) if number not in relays]
        boxes = {nodes[number].name for number in relays}
        statuses = {node.name: node.status() for node in nodes}
        for leaf in ends:
            strangers = [link["name"] for link in links_up(statuses[leaf.name]) if link["name"] not in boxes]
            check(not strangers, f"{leaf.name} has links with relays only", strangers)
        parked = {name: [peer["name"] for peer in statuses[name]["peers"] if peer["parked"]] for name in sorted(boxes)}
        for name in boxes:
            check(len(links_up(statuses[name])) <= PLACES, f"{name} has {PLACES} places", statuses[name]["links"])
        remark(", ".join(f"{name} has {len(links_up(statuses[name]))} links and {len(parked[name])} parked"
                         for name in sorted(boxes)))

    for shift in (1, 6):
        pairs = [(node, ends[(number + shift) % len(ends)]) for number, node in enumerate(ends)]
        with step(f"a question of each to the peer {shift} further on and its answer, one after the other") as remark:
            time.sleep(8)                            # by then idle leaves are parked: linked without a connection
            times = [Question(node, other).seconds() for node, other in pairs]
            middle = sorted(times)[len(times) // 2]
            remark(f"{middle:.2f} s in the middle, {max(times):.2f} s at most")
            shown = [f"{seconds:.2f}" for seconds in times]
            check(middle <= LINE_SECONDS, f"the middle one within {LINE_SECONDS} s", shown)
            check(max(times) <= SLOWEST_RATIO * middle, f"none takes {SLOWEST_RATIO} times the middle one", shown)

    with step("all ask five times at once") as remark:
        start = time.monotonic()
        questions = [Question(node, other, count=5) for node, other in pairs]
        for question in questions:
            question.seconds()
            check(all(event["event"] == "answer" for _, event in question.answers), "each is answered", question.answers)
        last = max(question.answers[-1][0] for question in questions) - start
        remark(f"the last of {5 * len(ends)} answers after {last:.1f} s")

    with step("half a minute of rest: nobody is missed") as remark:
        before = nodes[0].status()
        time.sleep(30)
        after = nodes[0].status()
        check(len(after["peers"]) == len(names) - 1, "the box sees everybody", after["peers"])
        lost = {node.name: [line for line in node.cli("log", "--level", "notice").splitlines() if "vanished" in line]
                for node in nodes}
        check(not any(lost.values()), "nobody was missed", {name: lines for name, lines in lost.items() if lines})
        remark(f"{after['box']['frames_forwarded'] - before['box']['frames_forwarded']} frames forwarded")
    say(nodes[0].cli("status"))


main(scenario)
