"""A branch: invented nodes behind one member of the mesh. Their keys are real, and they begin end-to-end sessions with
the box that the member is linked with. Written from docs/protocol.md, “Sealing”."""
import struct
import time

from client import ADVERTISEMENT, INTERACTIVE, PROFILE, SEALED, SEALED_FLAG, TOPOLOGY, Identity, frame, text_field
from conversation import HANDSHAKE, HELLO, Conversation
from dtls import Session
from member import PING, PONG, RELAYS, Key, advertisement, topology

PROBE = 28
READS_BUSY = b"\2"
ADVERTISEMENT_SECONDS = 0.01
HELLO_VERIFY_REQUEST, MESSAGE_TYPE = 3, 13


class End(Conversation):
    """A conversation with long segments, two of them in flight. Its sealed hello announces that its node reads the
    refusal “busy”."""

    data_bytes_max, segments_max = 16_000, 2

    def _seal(self, kind, payload):
        super()._seal(kind, payload + self.identity.epoch + READS_BUSY if kind == HELLO else payload)

    @property
    def is_open(self):
        return self._accepted


def invent(count, box, stops, idle=lambda: None):
    """Make identities whose ids are below the box's, because the node with the lower id is the DTLS client. With
    `stops` all identities share one certificate, because no handshake of theirs completes. Calls `idle` repeatedly,
    because this takes some seconds."""
    found, shared = [], Identity() if stops else None
    while len(found) < count:
        idle()
        identity = Key() if stops else Identity()
        if identity.id < box:
            if stops:
                identity.certificate, identity.key = shared.certificate, shared.key
            found.append(identity)
    return found


class Branch:
    """Invented nodes behind a member. With `stops` each node begins a handshake, answers the box's cookie, and sends
    nothing more. Otherwise each node opens a session and sends a probe in it. `take(identity, kind, message)` is called
    with the messages that a node receives."""

    def __init__(self, member, identities, stops, take=lambda identity, kind, message: None):
        self.member, self.identities, self.stops, self.number, self.take = member, identities, stops, 0, take
        self.ends, self.refused, self.box_epoch, self.box_flags = {}, set(), None, None
        self.will_stop = False

    def announce(self, sequence=1):
        """Advertise links between the member and the invented nodes, in the names of both."""
        me = self.member
        ids = [identity.id for identity in self.identities]
        me.stream.send(advertisement(me.identity, TOPOLOGY, sequence, topology([me.box, *ids[:63]])))
        for identity in self.identities:
            me.stream.send(advertisement(identity, TOPOLOGY, sequence, topology([me.identity.id])))
            self.serve(ADVERTISEMENT_SECONDS)

    def introduce(self):
        """Send the profiles of the invented nodes. Only nodes with a profile are peers, and only peers join sessions of
        applications."""
        for number, identity in enumerate(self.identities):
            profile = text_field(f"invented {number}") + text_field("causeway") + b"\0"
            self.member.stream.send(advertisement(identity, PROFILE, 1, profile))

    def begin(self):
        """Begin a handshake with the box for one node after the other."""
        end = time.monotonic() + 10
        while self.box_epoch is None or self.box_flags is None:
            assert time.monotonic() < end, "the box does not advertise its links"
            self.serve(0.1)
        for identity in self.identities:
            if self.stops:
                self.ends[identity.id] = Session(identity.certificate, identity.key, True)
            else:
                self.ends[identity.id] = self._conversation(identity)
                self.ends[identity.id].say(PROBE, b"")
            self._tick(identity)
            self.serve(ADVERTISEMENT_SECONDS)

    def stop(self):
        """From the next call of `serve` on, every node drops its session, begins another handshake, and stops in it."""
        self.will_stop = True

    @property
    def open(self):
        """The number of invented nodes that have a session with the box."""
        return sum(1 for key, end in self.ends.items() if not self.stops and end.is_open and key not in self.refused)

    def serve(self, seconds=0.0):
        """Read the frames that arrived, and answer them in the name of the member and of the invented nodes."""
        if self.will_stop:
            self.will_stop, self.stops, self.refused = False, True, set()
            self.ends = {each.id: Session(each.certificate, each.key, True) for each in self.identities}
        for each, _ in self.member.stream.receive(seconds):
            kind, destination, source, payload = each[1], each[8:24], each[24:40], each[48:]
            if kind == PING:
                self.member.stream.send(frame(PONG, payload, self.member.identity.id))
            elif kind == ADVERTISEMENT and source == self.member.box and payload[0] == TOPOLOGY:
                self.box_epoch, self.box_flags = payload[4:12], payload[20 + 65]
            elif destination in self.ends:
                self._take(destination, kind, payload)
        for identity in self.identities:
            if identity.id in self.ends:
                self._tick(identity)

    def _take(self, node, kind, payload):
        end = self.ends[node]
        try:
            if self.stops:
                if kind == HANDSHAKE and payload[16 + MESSAGE_TYPE :][:1] == bytes([HELLO_VERIFY_REQUEST]):
                    end.receive(payload[16:])
            elif kind == HANDSHAKE:
                end.take_handshake(payload)
            elif kind == SEALED:
                end.take_sealed(payload)
        except (RuntimeError, ValueError):
            # The box has no slot for the session, or has given the slot to another node.
            self.refused.add(node)

    def _tick(self, identity):
        if identity.id in self.refused:
            return
        end = self.ends[identity.id]
        if not self.stops:
            return end.tick()
        end.time_passed()
        for datagram in end.outgoing():
            self._send(identity.id, HANDSHAKE, self.box_epoch + identity.epoch + datagram)

    def _conversation(self, identity):
        return End(
            identity, self.member.box, RELAYS, self.box_flags, self.box_epoch,
            lambda kind, payload: self._send(identity.id, kind, payload), lambda word, **pairs: None,
            lambda kind, message: self.take(identity, kind, message))

    def _send(self, source, kind, payload):
        self.number += 1
        self.member.stream.send(frame(
            kind, payload, source, struct.pack(">Q", self.number), self.member.box, SEALED_FLAG if kind == SEALED else 0,
            INTERACTIVE))


def behind(member, count, stops, **options):
    """A branch of `count` nodes that have begun handshakes. From now on `member.serve` serves the branch, too."""
    branch = Branch(member, [], stops, **options)
    # The member serves the branch while the keys are made, because the box advertises its links only once.
    member.serve = branch.serve
    branch.identities = invent(count, member.box, stops, branch.serve)
    branch.announce(2)
    branch.begin()
    return branch
