#!/usr/bin/env python3
"""What a hostile member costs others: hostile.py BINARY [--attacks NAME[,NAME...]] [--rounds N] [--messages N] [--round-trips N]

a – box – b as in relay.py, two applications at the box, and a process with a key of its own that links with the box and does
not play by the rules. For each attack, in turn with an honest neighbour that sends as many frames of the same length, or, where
he spends other things than frames, with nobody: the time of 50 MB from a to b, messages there and back, and the processor
time of the box meanwhile. Names that are joined by + are several attacks at once, each at an address of its own. Then, while it
lasts, how long it takes until a newcomer is everybody's peer, and until its applications are in sessions with those at the box;
and how long after it until all is as before. Nothing is asserted; hostile_test.py does."""
import argparse
import dataclasses
import itertools
import os
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import session_attacks
from branch import behind
from bypass import Ended
from daemons import BINARY, Daemon, Watch, wait
from member import SEALED, SEALED_FLAG, TOPOLOGY, Identity, Key, Member, advertisement, frame, topology
from relay import SEALED as IS_SEALED
from relay import Network
from session_attacks import STALLER, Applications
from talk import Mode

HOSTILE_ADDRESS, HONEST_ADDRESS, SINK_ADDRESS = "127.9.0.{}", "127.8.0.{}", "127.7.0.{}"
SEGMENT, INTERACTIVE_CLASS, BULK_CLASS = 32, 2, 3
# 50 MB take half a second. Shorter transfers vary by half.
MESSAGES, MESSAGE_BYTES = 3_200, 16_384
TRANSFERS = 4
ROUND_TRIPS = 1000
BATCH_SECONDS = 0.01
FULL_SPEED = 100_000
# As many as an honest neighbour can send, too, whose frames go on to another one.
FAST = 50_000
WAIT_SECONDS = 30


# --- what he sends: endless frames -------------------------------------------------------------------------------------


def spoofed(me, port, sender, receiver):
    """Frames of another one's id, with the identifiers that its next messages will have."""
    for number in itertools.cycle(range(1, 61)):
        yield frame(SEALED, os.urandom(64), sender, struct.pack(">Q", number), receiver, SEALED_FLAG, INTERACTIVE_CLASS)


def forged(me, port, sender, receiver):
    """Advertisements of invented nodes with wrong signatures."""
    keys = [Key() for _ in range(250)]
    for sequence in itertools.count(1):
        for key in keys:
            yield advertisement(key, TOPOLOGY, sequence, topology([]), sign=lambda message: os.urandom(64))


def invented(me, port, sender, receiver):
    """The same, rightly signed: all of them without a route."""
    keys = [Key() for _ in range(250)]
    for sequence in itertools.count(1):
        for key in keys:
            yield advertisement(key, TOPOLOGY, sequence, topology([]))


def subtree(me, port, sender, receiver):
    """300 invented nodes that his own topology makes reachable."""
    branches = [(Key(), [Key() for _ in range(4)]) for _ in range(60)]
    for sequence in itertools.count(2):
        yield advertisement(me.identity, TOPOLOGY, sequence, topology([me.box] + [branch.id for branch, _ in branches]))
        for branch, leaves in branches:
            yield advertisement(branch, TOPOLOGY, sequence, topology([me.identity.id] + [leaf.id for leaf in leaves]))
            for leaf in leaves:
                yield advertisement(leaf, TOPOLOGY, sequence, topology([branch.id]))


def flows(me, port, sender, receiver):
    """Long frames of 48 invented sources."""
    payload = os.urandom(1200)
    for number in itertools.count():
        source = struct.pack(">QQ", number % 48 + 1, 1)
        yield frame(SEGMENT, payload, source, struct.pack(">Q", number), receiver, 0, BULK_CLASS)


def replays(me, port, sender, receiver):
    """His own first advertisement, again and again, after the second."""
    old = advertisement(me.identity, TOPOLOGY, 1, topology([me.box]))
    me.announce(2)
    yield from itertools.repeat(old)


def keys(me, port, sender, receiver):
    """No frames: 64 keys of one address, each of which wants a link."""
    identities = [Identity() for _ in range(64)]
    members = []
    while True:
        for identity in identities:
            try:
                members = [*members[-63:], Member(port, HOSTILE_ADDRESS.format(me.place), identity)]
            except (Ended, OSError):
                pass
            yield b""


def branch(count, stops):
    """No frames of his own: invented nodes behind him, which begin end-to-end sessions with the box."""

    def frames(me, port, sender, receiver):
        behind(me, count, stops)
        yield from itertools.repeat(b"")

    return frames


def honest(length):
    """What he is compared with: sealed frames to a neighbour that takes them."""

    def frames(me, port, sender, receiver):
        sink = Member(port, SINK_ADDRESS.format(me.place))
        sink.announce()
        payload = os.urandom(max(length - 48, 1))
        # Made before: what makes them takes longer than what sends them.
        made = [frame(SEALED, payload, me.identity.id, struct.pack(">Q", number), sink.identity.id, SEALED_FLAG,
                      INTERACTIVE_CLASS) for number in range(1, 1001)]
        while True:
            for number, each in enumerate(made):
                if number % 100 == 0:
                    sink.serve()
                yield each

    return frames


# name: its frames, how many a second, and the length of one, or none where an honest neighbour has none like them
ATTACKS = {
    "spoofed": (spoofed, 1000, 112), "forged": (forged, 1000, 201), "invented": (invented, 800, 201),
    "subtree": (subtree, 800, 240), "flows": (flows, 3000, 1248), "replays": (replays, FAST, 225),
    "keys": (keys, 20, None), "handshakes": (branch(60, True), 20, None), "sessions": (branch(64, False), 20, None),
    "tables": (session_attacks.tables, 20, None), "invitations": (session_attacks.invitations, 36, None),
    "stalls": (session_attacks.stalls, 20, None)}


# --- his process -------------------------------------------------------------------------------------------------------


def misbehave(port, name, rate, length, place, sender, receiver, root):
    """Send until standard input is closed; link again when the box closes. A line on standard output, as soon as it has
    begun and then five times a second: frames so far, seconds, and links."""
    address = (HONEST_ADDRESS if name == "honest" else HOSTILE_ADDRESS).format(place)
    make = honest(length) if name == "honest" else ATTACKS[name][0]
    identity, me, frames, links, sent, start, told = Identity(), None, None, 0, 0, None, 0
    while not select.select([0], [], [], BATCH_SECONDS)[0]:
        try:
            if me is None:
                me = Member(port, address, identity)
                me.place, me.root = place, root
                links += 1
                me.announce()
            if frames is None:
                frames = make(me, port, sender, receiver)
                next(frames)
                start = time.monotonic()
            spent = time.monotonic() - start
            due = min(int(spent * rate) - sent, FULL_SPEED * BATCH_SECONDS)
            batch = b"".join(itertools.islice(frames, int(due)))
            sent += int(due)
            if batch:
                me.stream.send(batch)
            me.serve()
            if spent >= told:
                print(sent, spent, links, flush=True)
                told = spent + 0.2
        except (Ended, OSError):
            me = None


class Process:
    """Somebody who sends, from its first frame on. `place` tells those apart that do so at once."""

    def __init__(self, network, name, rate, length, place=1):
        root = os.path.dirname(network.box.directory)
        words = [name, network.box.port, rate, length or 0, place, network.a.id, network.b.id, root]
        self.process = subprocess.Popen(
            [sys.executable, __file__, BINARY, "--send", *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        if not self.process.stdout.readline():
            raise SystemExit(f"{name}: he did not begin")

    def stop(self):
        """Frames a second, and links; nothing when it was stopped before."""
        if self.process.returncode is not None:
            return None
        try:
            told = self.process.communicate("", timeout=2)[0]
        except subprocess.TimeoutExpired:
            # The box does not read, and he waits for it.
            self.process.kill()
            told = self.process.communicate()[0]
        sent, seconds, links = (told.splitlines() or ["0 1 1"])[-1].split()
        return int(sent) / float(seconds), int(links)


class Processes:
    """Several at once: their names, each with frames a second and the length of one."""

    def __init__(self, network, senders):
        self.processes = []
        try:
            for place, sender in enumerate(senders, 1):
                self.processes.append(Process(network, *sender, place))
        except BaseException:
            self.stop()
            raise

    def stop(self):
        return [process.stop() for process in self.processes]


def parts(attack):
    return [(name, *ATTACKS[name][1:]) for name in attack.split("+")]


# --- what it costs -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Costs:
    """Seconds of each transfer from a to b, mean microseconds of a round of messages there and back and those of each one, and the
    part of a processor that the box takes in a round."""
    transfers: list = dataclasses.field(default_factory=list)
    means: list = dataclasses.field(default_factory=list)
    round_trips: list = dataclasses.field(default_factory=list)
    loads: list = dataclasses.field(default_factory=list)

    def add(self, network, messages, round_trips):
        self.transfers.extend(network.send(messages, MESSAGE_BYTES, Mode.BULK)[0] for _ in range(TRANSFERS))
        used, start = network.box.processor_seconds(), time.monotonic()
        times = network.round_trips(round_trips)
        self.loads.append((network.box.processor_seconds() - used) / (time.monotonic() - start))
        # A message meets what is sent in bursts, or does not: the middle one of a round says nothing, the mean does.
        self.means.append(statistics.fmean(times))
        self.round_trips += times

    def compared(self, other):
        """The ratios to another one's of transfer and message."""
        return [statistics.median(theirs) / statistics.median(own) for own, theirs in (
            (self.transfers, other.transfers), (self.means, other.means))]

    def __str__(self):
        """Milliseconds there and back in median and 95th percentile, and the box's load."""
        times = sorted(self.round_trips)
        return (f"{statistics.median(times) / 1000:7.2f} {times[int(len(times) * 0.95)] / 1000:7.2f} ms"
                f"{statistics.median(self.loads):5.0%}")


def measure(network, attack, rounds, *amounts):
    """Costs beside him, and beside an honest neighbour or nobody; frames a second and links of the attackers; frames a second of
    the honest ones."""
    hostile, honest_pace = parts(attack), 0
    beside_him, beside_other = Costs(), Costs()
    told = [(rate, 1) for _, rate, _ in hostile]
    for number in range(rounds):
        honest_ones = [("honest", pace, length) for (pace, _), (_, _, length) in zip(told, hostile) if length]
        turns = [(beside_him, hostile), (beside_other, honest_ones)]
        # Each comes first in turn: what the machine does meanwhile is charged to nobody.
        for costs, senders in turns if number % 2 == 0 else reversed(turns):
            processes = Processes(network, senders)
            try:
                costs.add(network, *amounts)
            finally:
                end = processes.stop()
            if senders is hostile:
                told = [ended for ended in end if ended] or told
            else:
                honest_pace = sum(ended[0] for ended in end if ended)
    return beside_him, beside_other, (sum(pace for pace, _ in told), sum(links for _, links in told)), honest_pace


def join(network, newcomer):
    """Seconds from the start of a newcomer until it and all others see each other."""
    start = time.monotonic()
    watch = Watch(newcomer.start())
    with watch.socket:
        for other in (network.a, network.b, network.box):
            watch.wait_peer(other.name)
    wait("others see the newcomer", lambda: all(newcomer.name in names(each) for each in (network.a, network.b)), WAIT_SECONDS)
    return time.monotonic() - start


def names(daemon):
    return {peer["name"] for peer in daemon.status["peers"]}


def state(network, newcomer):
    """What is to be as it was: everybody's peers and the box's links, but for the newcomer."""
    return [names(each) - {newcomer.name} for each in (network.a, network.b, network.box)] + [
        set(network.box.neighbours()) - {newcomer.name}]


def disturb(network, applications, newcomer, before, name):
    """The seconds until a newcomer is everybody's peer, and in sessions, while the attack lasts, and those until all is as before
    when it is over."""
    process = Processes(network, parts(name))
    try:
        start = time.monotonic()
        joined = join(network, newcomer)
        applications.visit(newcomer)
        in_session = time.monotonic() - start
        process.stop()
        return joined, in_session, recover(network, applications, newcomer, before)
    finally:
        process.stop()
        newcomer.stop()


def recover(network, applications, newcomer, before):
    """The seconds until all is as before, from now on: who is there, and what applications get of each other."""
    start = time.monotonic()
    wait("all is as before", lambda: state(network, newcomer) == before, WAIT_SECONDS)
    applications.visit(network.a)
    return time.monotonic() - start


def stage(root):
    """The network, its applications at the box, a newcomer that has not come yet, and the state before."""
    network = Network(root, IS_SEALED)
    others = [Daemon(root, name, [network.box], relay=False) for name in ("newcomer", STALLER)]
    for other in others:
        other.identity("new")
    applications = Applications(root, network.box, [network.a, *others])
    applications.visit(network.a)
    return network, applications, others[0], state(network, others[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attacks", default=",".join([*ATTACKS, "forged+flows", "invented+replays"]))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of {MESSAGE_BYTES} bytes in a transfer")
    parser.add_argument("--round-trips", type=int, default=ROUND_TRIPS, help="in a round")
    parser.add_argument("--send", nargs=8, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        name, *numbers, sender, receiver, root = options.send
        port, rate, length, place = (float(number) for number in numbers)
        return misbehave(
            int(port), name, rate, int(length), int(place), bytes.fromhex(sender), bytes.fromhex(receiver), root)
    print("attack            frames/s  honest  links  50 MB  message  median     p95     CPU  newcomer   session  as before   "
          "without him: median, p95, CPU")
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        network, applications, newcomer, before = stage(root)
        try:
            for name in options.attacks.split(","):
                his, other, (pace, links), honest_pace = measure(
                    network, name, options.rounds, options.messages, options.round_trips)
                ratios = his.compared(other)
                joined, in_session, after = disturb(network, applications, newcomer, before, name)
                print(f"{name:16} {pace:9,.0f} {honest_pace:7,.0f} {links:6} {ratios[0]:6.2f} {ratios[1]:8.2f} {his} {joined:7.1f} s "
                      f"{in_session:7.1f} s {after:8.1f} s   {other}", flush=True)
        finally:
            applications.stop()
            network.stop()


if __name__ == "__main__":
    main()
