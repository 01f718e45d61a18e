"""Sixteen peers on Bluetooth LE around a box whose radio has seven places. Everybody sees everybody, a line gets from
anybody to anybody, and when all talk at once nobody is left out. Argument: relay: one of the sixteen forwards, too."""

import subprocess
import sys
import threading
import time

from lab import BluetoothAir, Box, Node, check, main, say, step, wait_until
from lab.stage import links_up

LEAVES = 16
PLACES = 7
SEEN_SECONDS, LINE_SECONDS = 30, 3


class Client:
    """A `causeway peer …` command beside the scenario, whose lines are stamped as they come."""

    def __init__(self, node, *arguments):
        # The shared directories are those of the box; no namespace needs to be entered for the control socket.
        command = ["causeway", "peer", arguments[0], "--config", node.configuration_file, *arguments[1:]]
        self.child = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.append((time.monotonic(), line.decode(errors="replace").strip()))

    def say(self, line):
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()
        return time.monotonic()

    def heard(self, text):
        return next((when for when, line in list(self.lines) if text in line), None)

    def end(self):
        self.child.kill()
        self.child.wait()


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
        browsers = [Client(node, "browse", "--follow") for node in nodes]

        def seen(browser):
            found = {}
            for when, line in list(browser.lines):
                word, name = line.split()[:2]
                if word == "found":
                    found.setdefault(name, when)
                elif word == "lost":
                    found.pop(name, None)
            return found

        wait_until("everybody sees everybody",
                   lambda: all(len(seen(browser)) == len(names) - 1 for browser in browsers), 120, 0.2)
        last = max(max(seen(browser).values()) for browser in browsers) - up
        remark(f"the last one {max(last, 0):.1f} s after all ran")
        for browser in browsers:
            browser.end()
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
        with step(f"a line of each to the peer {shift} further on, one after the other") as remark:
            talks = [Client(node, "chat", "--to", ends[(number + shift) % len(ends)].name)
                     for number, node in enumerate(ends)]
            time.sleep(8)                            # they have found their daemons, and idle leaves are parked again
            times = []
            for number, talk in enumerate(talks):
                other = talks[(number + shift) % len(ends)]
                text = f"line {shift} of {ends[number].name}."
                said = talk.say(text)
                wait_until(f"{ends[number].name}'s line arrives", lambda: other.heard(text), 60, 0.02)
                times.append(other.heard(text) - said)
            remark(f"{sorted(times)[len(times) // 2]:.2f} s in the middle, {max(times):.2f} s at most")
            check(max(times) <= LINE_SECONDS, f"within {LINE_SECONDS} s", [f"{seconds:.2f}" for seconds in times])
        if shift == 6:
            with step("all say five lines at once") as remark:
                said = time.monotonic()
                for count in range(5):
                    for number, talk in enumerate(talks):
                        talk.say(f"turn {count} of {ends[number].name}.")

                def arrivals():
                    return [talks[(number + shift) % len(ends)].heard(f"turn {count} of {ends[number].name}.")
                            for number in range(len(ends)) for count in range(5)]

                wait_until("all lines arrive", lambda: all(arrivals()), 90, 0.2)
                remark(f"the last of {5 * len(ends)} arrives after {max(arrivals()) - said:.1f} s")
        for talk in talks:
            talk.end()

    with step("half a minute of rest: nobody is missed") as remark:
        before = nodes[0].status()
        time.sleep(30)
        after = nodes[0].status()
        check(len(after["peers"]) == len(names) - 1, "the box sees everybody", after["peers"])
        lost = sum(node.cli("log", "--level", "notice").count("vanished") for node in nodes)
        check(lost == 0, "nobody was missed", lost)
        remark(f"{after['box']['frames_forwarded'] - before['box']['frames_forwarded']} frames forwarded")
    say(nodes[0].cli("status"))


main(scenario)
