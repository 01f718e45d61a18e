#!/usr/bin/env python3
"""The cost of a hostile member of the mesh for other nodes: hostile.py BINARY [--attacks NAME[,NAME...]] [--rounds N]
[--messages N] [--round-trips N]

The network is a – box – b as in relay.py, with two more applications at the box. The attacker is a process with its own
key. It links with the box and violates the protocol.

For each attack the program measures the time of 50 MB from a to b, the round trips of messages, and the box's processor
time. In turn with the attack it measures the same beside an honest neighbour, which sends as many frames of the same
length. Attacks that do not rely on frames are compared with a network without an attacker. Names joined by + are
several attacks at once, each from its own address.

During the attack the program measures two times of a new node: until it is everybody's peer, and until its applications
are in sessions with those at the box. After the attack it measures the time until the network is as before. The assertions are in hostile_test.py; this program only prints."""
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
# A transfer of 50 MB takes half a second. The times of shorter transfers vary by half.
MESSAGES, MESSAGE_BYTES = 3_200, 16_384
TRANSFERS = 4
ROUND_TRIPS = 1000
BATCH_SECONDS = 0.01
FULL_SPEED = 100_000
# A rate that an honest neighbour, whose frames are forwarded, can also reach.
FAST = 50_000
WAIT_SECONDS = 30


# --- attacks: endless frames ------------------------------------------------------------------------------------------


def spoofed(me, port, sender, receiver):
    """Frames with the id of another node. Their identifiers are those that the other node's next messages will have."""
    for number in itertools.cycle(range(1, 61)):
        yield frame(SEALED, os.urandom(64), sender, struct.pack(">Q", number), receiver, SEALED_FLAG, INTERACTIVE_CLASS)


def forged(me, port, sender, receiver):
    """Advertisements of invented nodes whose signatures are wrong."""
    keys = [Key() for _ in range(250)]
    for sequence in itertools.count(1):
        for key in keys:
            yield advertisement(key, TOPOLOGY, sequence, topology([]), sign=lambda message: os.urandom(64))


def invented(me, port, sender, receiver):
    """Advertisements of invented nodes with valid signatures. None of these nodes is reachable."""
    keys = [Key() for _ in range(250)]
    for sequence in itertools.count(1):
        for key in keys:
            yield advertisement(key, TOPOLOGY, sequence, topology([]))


def subtree(me, port, sender, receiver):
    """Advertisements of 300 invented nodes. The attacker's own topology makes them reachable."""
    branches = [(Key(), [Key() for _ in range(4)]) for _ in range(60)]
    for sequence in itertools.count(2):
        yield advertisement(me.identity, TOPOLOGY, sequence, topology([me.box] + [branch.id for branch, _ in branches]))
        for branch, leaves in branches:
            yield advertisement(branch, TOPOLOGY, sequence, topology([me.identity.id] + [leaf.id for leaf in leaves]))
            for leaf in leaves:
                yield advertisement(leaf, TOPOLOGY, sequence, topology([branch.id]))


def flows(me, port, sender, receiver):
    """Long frames from 48 invented sources to the receiver."""
    payload = os.urandom(1200)
    for number in itertools.count():
        source = struct.pack(">QQ", number % 48 + 1, 1)
        yield frame(SEGMENT, payload, source, struct.pack(">Q", number), receiver, 0, BULK_CLASS)


def replays(me, port, sender, receiver):
    """The first advertisement of the attacker, sent again and again after its second one."""
    old = advertisement(me.identity, TOPOLOGY, 1, topology([me.box]))
    me.announce(2)
    yield from itertools.repeat(old)


def keys(me, port, sender, receiver):
    """No frames: 64 keys at one address open one link after the other."""
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
    """No frames of the attacker itself. Invented nodes behind the attacker begin end-to-end sessions with the box."""

    def frames(me, port, sender, receiver):
        behind(me, count, stops)
        yield from itertools.repeat(b"")

    return frames


def honest(length):
    """The comparison: sealed frames of `length` bytes to an honest neighbour that reads them."""

    def frames(me, port, sender, receiver):
        sink = Member(port, SINK_ADDRESS.format(me.place))
        sink.announce()
        payload = os.urandom(max(length - 48, 1))
        # The frames are made in advance, because to make a frame takes longer than to send it.
        made = [frame(SEALED, payload, me.identity.id, struct.pack(">Q", number), sink.identity.id, SEALED_FLAG,
                      INTERACTIVE_CLASS) for number in range(1, 1001)]
        while True:
            for number, each in enumerate(made):
                if number % 100 == 0:
                    sink.serve()
                yield each

    return frames


# Each attack: its generator of frames, the frames per second, and the length of a frame in bytes. None as
# the length means that no honest neighbour sends comparable frames.
ATTACKS = {
    "spoofed": (spoofed, 1000, 112), "forged": (forged, 1000, 201), "invented": (invented, 800, 201),
    "subtree": (subtree, 800, 240), "flows": (flows, 3000, 1248), "replays": (replays, FAST, 225),
    "keys": (keys, 20, None), "handshakes": (branch(60, True), 20, None), "sessions": (branch(64, False), 20, None),
    "tables": (session_attacks.tables, 20, None), "invitations": (session_attacks.invitations, 36, None),
    "stalls": (session_attacks.stalls, 20, None)}


# --- the attacker's process -------------------------------------------------------------------------------------------


def misbehave(port, name, rate, length, place, sender, receiver, root):
    """Send frames until standard input is closed, and link again when the box closes the link. Prints a line at the
    first frame and five lines a second after that: the frames sent so far, the seconds, and the number of links."""
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
            if start is None:
                frames = None                           # the box closed the link before the first frame


class Process:
    """The process of one sender. The constructor returns when the process has sent its first frame. `place` gives each
    simultaneous sender its own address."""

    def __init__(self, network, name, rate, length, place=1):
        root = os.path.dirname(network.box.directory)
        words = [name, network.box.port, rate, length or 0, place, network.a.id, network.b.id, root]
        self.process = subprocess.Popen(
            [sys.executable, __file__, BINARY, "--send", *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        if not self.process.stdout.readline():
            raise SystemExit(f"{name}: he did not begin")

    def stop(self):
        """Stop the process. Returns its frames per second and links, or None if it was stopped before."""
        if self.process.returncode is not None:
            return None
        try:
            told = self.process.communicate("", timeout=2)[0]
        except subprocess.TimeoutExpired:
            # The process is blocked in a write, because the box does not read.
            self.process.kill()
            told = self.process.communicate()[0]
        sent, seconds, links = (told.splitlines() or ["0 1 1"])[-1].split()
        return int(sent) / float(seconds), int(links)


class Processes:
    """Several sender processes at once. Each sender is given as its name, its frames per second, and the length of a
    frame."""

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


# --- the cost ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Costs:
    """Measurements in several rounds: the seconds of each transfer from a to b; the mean microseconds of the messages
    of each round; the microseconds of each round trip; and the share of a processor that the box used in each round."""
    transfers: list = dataclasses.field(default_factory=list)
    means: list = dataclasses.field(default_factory=list)
    round_trips: list = dataclasses.field(default_factory=list)
    loads: list = dataclasses.field(default_factory=list)

    def add(self, network, messages, round_trips):
        self.transfers.extend(network.send(messages, MESSAGE_BYTES, Mode.BULK)[0] for _ in range(TRANSFERS))
        used, start = network.box.processor_seconds(), time.monotonic()
        times = network.round_trips(round_trips)
        self.loads.append((network.box.processor_seconds() - used) / (time.monotonic() - start))
        # Some messages meet a burst of the attacker and others do not. So a round is represented by the mean and not by
        # the median.
        self.means.append(statistics.fmean(times))
        self.round_trips += times

    def compared(self, other):
        """The ratios of `other` to these costs: for transfer times, and for message times."""
        return [statistics.median(theirs) / statistics.median(own) for own, theirs in (
            (self.transfers, other.transfers), (self.means, other.means))]

    def __str__(self):
        """The median and the 95th percentile of the round trips in milliseconds, and the box's load."""
        times = sorted(self.round_trips)
        return (f"{statistics.median(times) / 1000:7.2f} {times[int(len(times) * 0.95)] / 1000:7.2f} ms"
                f"{statistics.median(self.loads):5.0%}")


def measure(network, attack, rounds, *amounts):
    """Measure in turn beside the attackers, and beside honest neighbours or nobody. Returns the costs of both cases,
    the attackers' frames per second and links, and the honest neighbours' frames per second."""
    hostile, honest_pace = parts(attack), 0
    beside_him, beside_other = Costs(), Costs()
    told = [(rate, 1) for _, rate, _ in hostile]
    for number in range(rounds):
        honest_ones = [("honest", pace, length) for (pace, _), (_, _, length) in zip(told, hostile) if length]
        turns = [(beside_him, hostile), (beside_other, honest_ones)]
        # Each case is first in every second round, so that other load of the machine affects both cases alike.
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
    """Start a new node. Returns the seconds until the new node and all others are peers of each other."""
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
    """The state that must return after the attack: the peers of every node, and the neighbours of the box. The new node
    is left out."""
    return [names(each) - {newcomer.name} for each in (network.a, network.b, network.box)] + [
        set(network.box.neighbours()) - {newcomer.name}]


def disturb(network, applications, newcomer, before, name):
    """Attack, and let a new node join. Returns three times in seconds: until the new node is everybody's peer, until
    its applications are in sessions, and from the end of the attack until the state is as before."""
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
    """Wait until peers and links are as before and applications can exchange data. Returns the seconds that this
    took."""
    start = time.monotonic()
    wait("all is as before", lambda: state(network, newcomer) == before, WAIT_SECONDS)
    applications.visit(network.a)
    return time.monotonic() - start


def stage(root):
    """Start the network and the applications at the box. Returns both, a new node that is not started, and the state
    before attacks."""
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
