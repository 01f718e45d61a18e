"""A member of a session, written only from docs/protocol.md, “Sessions”. It accepts an invitation, completes the
handshake with each other member, and exchanges messages with them. It founds no session, admits no member, and opens no
stream."""

import hashlib
import os
import struct
import time
from dataclasses import dataclass, replace

INVITE, ANSWER, WELCOME, END, MEET, TABLE, MESSAGE, WINDOW = range(16, 24)
KINDS = range(16, 28)
ACCEPTED, SEND_ME_YOURS, LEFT, WANTED = 0, 1, 1, 1
ADDRESS_BYTES, ORIGIN_BYTES, TICKET_BYTES, MERGE_BYTES, POINT_BYTES = 20, 103, 153, 170, 65
MEET_PAYLOAD = struct.Struct(">16s4s4s4s4s16sQ")
TABLE_HEADER = struct.Struct(">16s4s4sB3x16s")
WINDOW_PAYLOAD = struct.Struct(">4s4sB3xQ")
WINDOW_BYTES, MESSAGE_COST = 65536, 192
NO_NUMBER, MESSAGES = bytes(4), bytes(4)
REPEAT_SECONDS, WAIT_SECONDS = 10, 1


def session_id(origin):
    return hashlib.sha256(b"causeway-session-1" + origin).digest()[:16]


def endpoint(service, name, user=1000):
    user, *fields = struct.pack(">I", user), service.encode(), name.encode()
    text = b"causeway-endpoint-1" + user + b"".join(bytes([len(field)]) + field for field in fields)
    return max(hashlib.sha256(text).digest()[:4], struct.pack(">I", 1))


# --- the tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ticket:
    version: int
    depth: int
    admitter: bytes
    admits: bytes
    accepts: bytes

    @classmethod
    def read(cls, raw):
        return cls(int.from_bytes(raw[:4]), raw[4], raw[5:25], raw[25:89], raw[89:153])

    @property
    def bytes(self):
        return struct.pack(">IB", self.version, self.depth) + self.admitter + self.admits + self.accepts

    @property
    def nearness(self):
        return self.depth, self.version, self.admitter, self.admits, self.accepts

    def text(self, session, member):
        """The text that the admitting and the admitted member both sign. Each puts its own prefix in front."""
        return session + member + struct.pack(">IB", self.version, self.depth) + self.admitter


@dataclass(frozen=True)
class Record:
    point: bytes
    newest: Ticket
    nearest: Ticket
    departure: bytes = b"\0"

    def merged(self, other):
        """Merge two records of the same address in the same session into one."""
        tickets = (self.newest, self.nearest, other.newest, other.nearest)
        last = min(self, other, key=lambda record: (
            -record.newest.version, -record.departure[0], record.newest.nearness))
        return replace(last, nearest=min(tickets, key=lambda ticket: ticket.nearness))


class Table:
    def __init__(self):
        self.origins, self.merges, self.records = {}, set(), {}

    @classmethod
    def read(cls, raw):
        table, at = cls(), 3
        for _ in range(raw[0]):
            table.origins[session_id(raw[at : at + ORIGIN_BYTES])] = raw[at : at + ORIGIN_BYTES]
            at += ORIGIN_BYTES
        ids = list(table.origins)
        for _ in range(raw[1]):
            lower, higher = raw[at : at + 2]
            table.merges.add((ids[lower], ids[higher], raw[at + 2 : at + MERGE_BYTES]))
            at += MERGE_BYTES
        for _ in range(raw[2]):
            session, has_second = ids[raw[at]], raw[at + 1] & 1
            address, point = raw[at + 2 : at + 22], raw[at + 22 : at + 22 + POINT_BYTES]
            at += 22 + POINT_BYTES
            newest = nearest = Ticket.read(raw[at : at + TICKET_BYTES])
            at += TICKET_BYTES
            if has_second:
                nearest = Ticket.read(raw[at : at + TICKET_BYTES])
                at += TICKET_BYTES
            end = at + (3 + raw[at + 2] + 64 if raw[at] else 1)
            table.records[session, address] = Record(point, newest, nearest, raw[at:end])
            at = end
        if at != len(raw):
            raise ValueError(f"a table of {len(raw)} bytes ends at {at}")
        return table

    def bytes(self, only=None):
        """The table as bytes, with all its records or only those of one address."""
        ids = sorted(self.origins)
        records = {key: record for key, record in self.records.items() if only in (None, key[1])}
        parts = [bytes([len(ids), len(self.merges), len(records)]), *(self.origins[id] for id in ids)]
        for lower, higher, signed in sorted(self.merges):
            parts.append(bytes([ids.index(lower), ids.index(higher)]) + signed)
        for (session, address), record in sorted(records.items(), key=lambda item: item[0]):
            has_second = record.nearest != record.newest
            parts += [bytes([ids.index(session), has_second]), address, record.point, record.newest.bytes,
                      record.nearest.bytes if has_second else b"", record.departure]
        return b"".join(parts)

    @property
    def digest(self):
        return hashlib.sha256(self.bytes()).digest()[:16]

    def take(self, other, is_signed):
        """Add the entries of another table whose signatures are valid. `is_signed(text, signature, point)` verifies a
        signature."""
        self.origins.update(other.origins)
        self.merges |= other.merges
        points = {address: record.point for table in (self, other) for (_, address), record in table.records.items()}
        for (session, address), record in other.records.items():
            known = self.records.get((session, address))
            for ticket in {record.newest, record.nearest} - ({known.newest, known.nearest} if known else set()):
                text = ticket.text(session, address)
                if not (is_signed(b"causeway-admits-1" + text, ticket.admits, points[ticket.admitter])
                        and is_signed(b"causeway-accepts-1" + text, ticket.accepts, record.point)):
                    raise ValueError(f"a ticket of {address.hex()} has a wrong signature")
            self.records[session, address] = known.merged(record) if known else record

    def members(self):
        return {address for (_, address), record in self.records.items() if record.departure[0] == 0}

    def session_of(self, address):
        """The session in which an address has the record with the highest version."""
        sessions = [session for session, each in self.records if each == address]
        return max(sessions, key=lambda session: self.records[session, address].newest.version, default=min(self.origins))


# --- the member --------------------------------------------------------------------------------------------------------


@dataclass
class Meeting:
    number: bytes
    other: bytes = NO_NUMBER
    # Whether a meet message has arrived that repeats the number of this end.
    is_repeated: bool = False
    # A function that tells whether the other end has acknowledged the last meet message with the other end's number.
    is_acknowledged: object = None
    due: float = 0.0
    # The flow control in bytes: the limits for both directions, and what this end has sent and received.
    limit: int = 0
    sent: int = 0
    taken: int = 0
    granted: int = WINDOW_BYTES
    # The time at which the other end's table first had a different digest. None while the digests do not differ, or
    # after this end has sent its table.
    differs_since: float | None = None

    @property
    def is_connected(self):
        return self.is_repeated and self.is_acknowledged is not None and self.is_acknowledged()


class Membership:
    """The member. It calls `send(node, kind, payload)` to send a message; `send` returns a function that tells whether
    the message is acknowledged. It calls `tell(word, **pairs)` to report an event."""

    def __init__(self, identity, endpoint, send, is_signed, tell):
        self.identity, self.address = identity, identity.id + endpoint
        self._send, self._is_signed, self._tell = send, is_signed, tell
        self._invites, self._meetings, self._table = {}, {}, Table()

    def connected(self):
        return [address for address, meeting in self._meetings.items() if meeting.is_connected]

    def say(self, text, to):
        """Send a text to a connected member. Returns false if the member has no buffer space for it."""
        meeting, data = self._meetings[to], text.encode()
        if meeting.sent + len(data) + MESSAGE_COST > meeting.limit:
            return False
        meeting.sent += len(data) + MESSAGE_COST
        self._send(to[:16], MESSAGE, meeting.other + data)
        return True

    def leave(self, farewell):
        session = self._table.session_of(self.address)
        record = self._table.records[session, self.address]
        text = farewell.encode()
        signed = (b"causeway-leaves-1" + session + self.address + struct.pack(">IB", record.newest.version, WANTED) + text)
        departure = bytes([LEFT, WANTED, len(text)]) + text + self.identity.sign(signed)
        self._table.records[session, self.address] = replace(record, departure=departure)
        self._tell_others()

    def take(self, node, kind, payload):
        taker = {INVITE: self._take_invite, WELCOME: self._take_welcome, MEET: self._take_meet, TABLE: self._take_table,
                 MESSAGE: self._take_message, WINDOW: self._take_window}.get(kind)
        if taker:
            taker(node, payload)
        else:
            self._tell("session-message", kind=kind, bytes=payload.hex())

    def tick(self):
        """Retransmit meet messages, and send the table to members whose digest still differs. Call it several times a
        second."""
        now = time.monotonic()
        for address in self._others():
            meeting = self._meeting(address)
            if not meeting.is_connected and now >= meeting.due:
                self._meet(address)
            if meeting.differs_since is not None and now >= meeting.differs_since + WAIT_SECONDS:
                meeting.differs_since = None
                self._send_table(address, self._table.bytes())

    # --- joining -------------------------------------------------------------------------------------------------------

    def _take_invite(self, node, payload):
        number, seconds, inviter, invitee = struct.unpack_from(">4sH4s4s", payload)
        origin, context = payload[16 : 16 + ORIGIN_BYTES], payload[16 + ORIGIN_BYTES :]
        if invitee != self.address[16:]:
            return
        self._invites[node, number] = (node + inviter, session_id(origin))
        self._tell("invited", by=(node + inviter).hex(), seconds=seconds, context=context.decode())
        # The zeros of the answer stand for an empty explanation and no attached message.
        self._send(node, ANSWER, number + bytes([ACCEPTED, 0, 0]))

    def _take_welcome(self, node, payload):
        inviter, session = self._invites.pop((node, payload[:4]), (None, None))
        if inviter is None or payload[4] != 1:
            return
        version, depth = struct.unpack_from(">IB", payload, 5)
        admits, count = payload[10:74], payload[74]
        newcomers = [payload[75 + ADDRESS_BYTES * number :][:ADDRESS_BYTES] for number in range(count)]
        self._table.take(Table.read(payload[75 + ADDRESS_BYTES * count :]), self._is_signed)
        ticket = Ticket(version, depth, inviter, admits, b"")
        ticket = replace(ticket, accepts=self.identity.sign(b"causeway-accepts-1" + ticket.text(session, self.address)))
        own = Record(self.identity.point, ticket, ticket)
        known = self._table.records.get((session, self.address))
        self._table.records[session, self.address] = known.merged(own) if known else own
        self._tell("joined", session=session.hex(), members=len(self._table.members()))
        # The table is sent before the first meet message, because other members accept such a message only from members
        # in their tables.
        self._tell_others(newcomers)
        self.tick()

    # --- handshakes with members ---------------------------------------------------------------------------------------

    def _others(self):
        members = self._table.members()
        return members - {self.address} if self.address in members else set()

    def _meeting(self, address):
        if address not in self._meetings:
            self._meetings[address] = Meeting(os.urandom(4))
        return self._meetings[address]

    def _meet(self, address):
        meeting = self._meeting(address)
        meeting.due = time.monotonic() + REPEAT_SECONDS + (2 if self.address > address else 0)
        is_acknowledged = self._send(address[:16], MEET, MEET_PAYLOAD.pack(
            self._table.session_of(address), self.address[16:], address[16:], meeting.number, meeting.other,
            self._table.digest, meeting.granted))
        if meeting.other != NO_NUMBER:
            meeting.is_acknowledged = is_acknowledged

    def _take_meet(self, node, payload):
        _, sender, receiver, other, own, digest, limit = MEET_PAYLOAD.unpack(payload)
        address = node + sender
        if receiver != self.address[16:] or address not in self._others():
            return
        meeting = self._meeting(address)
        is_new = other != meeting.other
        if is_new:
            began_anew = meeting.other != NO_NUMBER and own != meeting.number
            meeting = self._meetings[address] = Meeting(os.urandom(4) if began_anew else meeting.number, other)
        meeting.limit = max(meeting.limit, limit)
        meeting.is_repeated = meeting.is_repeated or own == meeting.number
        if is_new or own != meeting.number:
            self._meet(address)
        self._compare(address, digest)

    def _compare(self, address, digest):
        differs = digest != self._table.digest
        meeting = self._meeting(address)
        meeting.differs_since = (meeting.differs_since or time.monotonic()) if differs else None

    # --- tables --------------------------------------------------------------------------------------------------------

    def _send_table(self, address, table):
        self._send(address[:16], TABLE, TABLE_HEADER.pack(
            self._table.session_of(address), self.address[16:], address[16:], 0, self._table.digest) + table)

    def _tell_others(self, newcomers=()):
        """Send all members the records that this member has signed."""
        own = self._table.bytes(self.address)
        for address in sorted((self._table.members() | set(newcomers)) - {self.address}):
            self._send_table(address, own)

    def _take_table(self, node, payload):
        _, sender, receiver, flags, digest = TABLE_HEADER.unpack_from(payload)
        address = node + sender
        if receiver != self.address[16:] or not self._table.records:
            return
        if table := payload[TABLE_HEADER.size :]:
            before = self._table.members()
            self._table.take(Table.read(table), self._is_signed)
            for gone in before - self._table.members():
                self._meetings.pop(gone, None)
                self._tell("gone", member=gone.hex())
            self.tick()
        if flags & SEND_ME_YOURS:
            self._send_table(address, self._table.bytes())
        elif address in self._others():
            self._compare(address, digest)

    # --- messages ------------------------------------------------------------------------------------------------------

    def _take_message(self, node, payload):
        address = next((each for each, meeting in self._meetings.items()
                        if each[:16] == node and meeting.number == payload[:4]), None)
        if address is None:
            return
        meeting = self._meetings[address]
        meeting.taken += len(payload) - 4 + MESSAGE_COST
        if meeting.taken + WINDOW_BYTES >= meeting.granted + WINDOW_BYTES // 4:
            meeting.granted = meeting.taken + WINDOW_BYTES
            self._send(node, WINDOW, WINDOW_PAYLOAD.pack(meeting.other, MESSAGES, 0, meeting.granted))
        self._tell("text", member=address.hex(), text=payload[4:].decode())

    def _take_window(self, node, payload):
        own, stream, _, limit = WINDOW_PAYLOAD.unpack(payload)
        for address, meeting in self._meetings.items():
            if address[:16] == node and meeting.number == own and stream == MESSAGES:
                meeting.limit = max(meeting.limit, limit)
