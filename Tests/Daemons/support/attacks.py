"""Attacks of a hostile member on a mesh of real daemons, each in its own process, and the network that they attack. A
member links with the box and violates the protocol. The network is a – box – b, with two more applications at the box.

attacks.py BINARY NAME PORT RATE LENGTH PLACE SENDER RECEIVER ROOT     one sender, started by `Process`"""
import itertools
import os
import select
import struct
import subprocess
import sys
import time

import session_attacks
from branch import behind
from bypass import Ended
from daemons import BINARY, Daemon, Watch, wait
from line import SEALED as IS_SEALED
from line import Network
from member import SEALED, SEALED_FLAG, TOPOLOGY, Identity, Key, Member, advertisement, frame, topology
from session_attacks import STALLER, Applications

HOSTILE_ADDRESS, HONEST_ADDRESS, SINK_ADDRESS = "127.9.0.{}", "127.8.0.{}", "127.7.0.{}"
SEGMENT, INTERACTIVE_CLASS, BULK_CLASS = 32, 2, 3
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


# Each attack: its generator of frames, the frames per second, and the length of a frame in bytes. If the length is
# None, no honest neighbour sends comparable frames.
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
            [sys.executable, __file__, BINARY, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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


# --- the network ------------------------------------------------------------------------------------------------------


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
    name, *numbers, sender, receiver, root = sys.argv[1:]
    port, rate, length, place = (float(number) for number in numbers)
    misbehave(int(port), name, rate, int(length), int(place), bytes.fromhex(sender), bytes.fromhex(receiver), root)


if __name__ == "__main__":
    main()
