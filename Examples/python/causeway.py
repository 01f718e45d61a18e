"""The Causeway client for Python: one file, only the standard library. Written from docs/local-api.md.

    node = Node.connect("chat")
    session = node.open_session("chat")
    session.gather()
    service = node.advertise("chat", {"room": "4"})
    for event in session:
        if isinstance(event, Message):
            print(event.data)

A dedicated thread reads the socket. Every method may be called from any thread. Methods that wait take `timeout` in seconds,
None for no limit, and raise CausewayError when the time has passed. An object that is iterated has one reader.
"""
import collections
import enum
import queue
import socket
import struct
import threading

SOCKET = "/run/causeway/api.sock"
VERSION = 1
WINDOW = 262_144            # bytes of messages of a session that the application has not read
OVERHEAD = 64               # bytes by which each message uses more of the window than its content
STREAM_WINDOW = 131_072     # bytes of a stream that the application has not read
STREAM_BYTES = 4_096        # bytes of a stream in a packet, at most


class Code(enum.IntEnum):
    """The reason of a refusal, or DONE."""
    DONE, UNSUPPORTED, UNKNOWN, INVALID, NOT_ALLOWED, UNAVAILABLE, FULL, BUSY, INCOMPATIBLE, ALREADY_MEMBER, IN_USE = range(11)
    TIMED_OUT, NOT_CONNECTED = 100, 101     # from this module, not from the daemon


class Mode(enum.IntEnum):
    RELIABLE, BULK, UNRELIABLE = range(3)


class Result(enum.IntEnum):
    """The result of sending a message to one member."""
    DELIVERED, FAILED, NO_ROOM, NOT_CONNECTED = range(4)


class State(enum.IntEnum):
    """The state of a member."""
    CONNECTING, CONNECTED, AWAY, REJECTED, LEFT, EJECTED, PAUSED = range(7)


class Outcome(enum.IntEnum):
    """How an invitation ended."""
    CONNECTED, DECLINED, TIMED_OUT, CANCELLED, BUSY, FULL, NO_SERVICE, INCOMPATIBLE, SESSION_ENDED = range(9)


class StreamEnd(enum.IntEnum):
    """How a stream ended. Only a FINISHED stream has delivered all its bytes."""
    FINISHED, CUT, REFUSED, NO_PLACE, BROKEN, LOST = range(6)


class CausewayError(Exception):
    def __init__(self, code, text=""):
        super().__init__(text or (code.name if isinstance(code, enum.Enum) else f"code {code}"))
        self.code, self.text = code, text


class StreamError(CausewayError):
    """A stream ended early: the received bytes are a prefix of the bytes written."""

    def __init__(self, end):
        super().__init__(Code.UNAVAILABLE, f"the stream ended: {end.name if isinstance(end, enum.Enum) else end}")
        self.end = end


class Address(collections.namedtuple("Address", "node endpoint")):
    """The address of an application. It identifies a member of a session, and is the same after a restart."""
    __slots__ = ()

    @property
    def bytes(self):
        return self.node + struct.pack(">I", self.endpoint)

    def __str__(self):
        return f"{self.node.hex()[:8]}/{self.endpoint:08x}"


Peer = collections.namedtuple("Peer", "hops is_verified name")
Sighting = collections.namedtuple("Sighting", "kind address peer info")     # kind: found, changed, lost, allTold (alone)
Member = collections.namedtuple("Member", "address peer state reason text")
Message = collections.namedtuple("Message", "sender data is_reliable")
Room = collections.namedtuple("Room", "address")
Question = collections.namedtuple("Question", "address peer certificates")  # DER, the member's own first
Ended = collections.namedtuple("Ended", "reason text")


class Reader:
    """Reads the fields of a packet in order. Bytes that are not read belong to a later version."""

    def __init__(self, packet):
        self.packet, self.offset = packet, 0

    def number(self, count):
        return int.from_bytes(self.bytes(count))

    def bytes(self, count):
        if len(self.packet) - self.offset < count:
            raise ValueError("a packet ends before its last field")
        self.offset += count
        return self.packet[self.offset - count : self.offset]

    def text(self):
        return self.bytes(self.number(1)).decode(errors="replace")

    def address(self):
        return Address(self.bytes(16), self.number(4))

    def peer(self):
        return Peer(self.number(1), bool(self.number(1) & 1), self.text())

    def certificates(self):         # a daemon of the first version sends none
        return [self.bytes(self.number(2)) for _ in range(self.number(1))] if self.offset < len(self.packet) else []

    def service(self):
        entry = Reader(self.bytes(self.number(2)))
        return entry.number(4), entry.text(), _info(entry.text() for _ in range(entry.number(1)))


def _info(pairs):
    return dict(pair.partition("=")[::2] for pair in pairs)


def text(value):
    encoded = value.encode()
    if len(encoded) > 255:
        raise CausewayError(Code.INVALID, "a text has at most 255 bytes")
    return bytes([len(encoded)]) + encoded


def packet(kind, number, *fields):
    body = struct.pack(">BI", kind, number) + b"".join(fields)
    return struct.pack(">I", len(body)) + body


def hello(number, name):
    return packet(1, number, struct.pack(">HH", VERSION, VERSION), text(name))


def advertise(number, service, info):
    pairs = [text(f"{key}={value}") for key, value in info.items()]
    return packet(2, number, text(service), bytes([len(pairs)]), *pairs)


def browse(number, service):
    return packet(3, number, text(service))


def open_session(number, service, flags, members_max, decides=False):
    return packet(4, number, text(service), bytes([flags, members_max]), b"\1" if decides else b"")


def close(number, what):
    return packet(5, number, struct.pack(">I", what))


def invite(number, session, address, milliseconds, context):
    return packet(6, number, struct.pack(">I", session), address.bytes, struct.pack(">IH", milliseconds, len(context)), context)


def cancel(number, invitation):
    return packet(7, number, struct.pack(">I", invitation))


def answer(number, invitation, session, explanation):
    return packet(8, number, struct.pack(">II", invitation, session), text(explanation))


def leave(number, session, farewell):
    return packet(9, number, struct.pack(">I", session), text(farewell))


def send(number, session, mode, to, data):
    return packet(10, number, struct.pack(">IBB", session, mode, len(to)), *(address.bytes for address in to),
                  struct.pack(">I", len(data)), data)


def window(session, limit):
    return packet(11, 0, struct.pack(">IQ", session, limit))


def gather(number, session):
    return packet(12, number, struct.pack(">I", session))


def open_stream(number, session, address, name):
    return packet(13, number, struct.pack(">I", session), address.bytes, text(name))


def take(number, stream, wanted, limit):
    return packet(14, number, struct.pack(">IBQ", stream, wanted, limit))


def write(stream, data):
    return packet(15, 0, struct.pack(">II", stream, len(data)), data)


def stream_window(stream, limit):
    return packet(16, 0, struct.pack(">IQ", stream, limit))


def finish(number, stream):
    return packet(17, number, struct.pack(">I", stream))


def reset(number, stream):
    return packet(18, number, struct.pack(">I", stream))


def eject(number, session, address, farewell):
    return packet(19, number, struct.pack(">I", session), address.bytes, text(farewell))


def decide(number, session, address, accepted):
    return packet(20, number, struct.pack(">I", session), address.bytes, bytes([accepted]))


def connect(number, session, address, milliseconds):
    return packet(21, number, struct.pack(">I", session), address.bytes, struct.pack(">I", milliseconds))


# Objects of an application


class _Events:
    """A queue of events for one reader."""

    def __init__(self, node, number):
        self._node, self._number, self._queue, self._is_over = node, number, queue.SimpleQueue(), False

    def next(self, timeout=None):
        """The next event; None at the end."""
        if self._is_over:
            return None
        try:
            event = self._queue.get(timeout=timeout)
        except queue.Empty:
            raise CausewayError(Code.TIMED_OUT, "nothing happened in time") from None
        self._is_over = event is None
        return event

    def __iter__(self):
        return iter(self.next, None)

    def _put(self, event):
        self._queue.put(event)

    def close(self):
        """Closes the object and ends the iteration."""
        self._node._ask(close, self._number)
        self._node._forget(self._number)
        self._put(None)


class Browse(_Events):
    """Sightings of services of one type."""

    def __init__(self, node, number):
        super().__init__(node, number)
        self._references, self._known = {}, {}      # nodes by reference; services by node

    def _services(self, reader):
        reference, id, peer, now = reader.number(2), reader.bytes(16), reader.peer(), {}
        for _ in range(reader.number(1)):
            endpoint, _, info = reader.service()
            now[Address(id, endpoint)] = (peer, info)
        former = self._references.pop(reference, None)
        if now:
            self._references[reference] = id
            self._tell(id, now)
        # A node that now has another reference is not lost.
        if former not in self._references.values():
            self._tell(former, {})

    def _tell(self, id, now):
        before = self._known.pop(id, {})
        for address, (peer, info) in before.items():
            if address not in now:
                self._put(Sighting("lost", address, peer, info))
        for address, (peer, info) in now.items():
            if before.get(address) != (peer, info):
                self._put(Sighting("changed" if address in before else "found", address, peer, info))
        if now:
            self._known[id] = now


class Advertisement(_Events):
    """An advertised service: a sequence of the invitations to it."""

    def __init__(self, node, number, service):
        super().__init__(node, number)
        self._service, self.address = service, None     # address: to which others send invitations

    def update(self, info):
        """Replaces the discovery info."""
        self._node._ask(advertise, self._service, info, number=self._number)


class Invitation:
    """A received invitation. `context` is any bytes that the sender chose: do not trust them."""

    def __init__(self, node, number, reader):
        self._node, self._number = node, number
        self.sender, self.peer = reader.address(), reader.peer()
        flags, self.members_max, self.member_count = reader.number(1), reader.number(1), reader.number(1)
        self.only_founder_admits, self.unsealed = bool(flags & 1), bool(flags & 2)
        self.seconds = reader.number(4) / 1000
        self.context = reader.bytes(reader.number(2))
        self._end = queue.SimpleQueue()

    def accept(self, into):
        self._node._ask(answer, self._number, into._number, "")

    def decline(self, explanation=""):
        self._node._ask(answer, self._number, 0, explanation)

    def wait(self, timeout=None):
        """Waits for the end of the invitation. Returns its Outcome and an explanation."""
        return _wait(self._end, timeout)


class SentInvitation:
    def __init__(self, node, number):
        self._node, self._number, self._end = node, number, queue.SimpleQueue()

    def wait(self, timeout=None):
        """Waits for the end of the invitation. Returns its Outcome and an explanation."""
        return _wait(self._end, timeout)

    def cancel(self):
        self._node._ask(cancel, self._number)


class Sending:
    """A request in flight, such as a message."""

    def __init__(self):
        self._answer, self._results = queue.SimpleQueue(), {}

    def wait(self, timeout=None):
        """Waits for the answer to the request. For a message, returns the results as `Session.send` does."""
        code, explanation = _wait(self._answer, timeout)
        if code != Code.DONE:
            raise CausewayError(Code(code) if code in list(Code) else code, explanation)
        return self._results


class _Stream:
    def __init__(self, node, number):
        self._node, self._number, self._changed, self._end = node, number, threading.Condition(), None

    @property
    def end(self):
        """The StreamEnd of the stream; None while the stream is open."""
        return self._end

    def _ended(self, end):
        with self._changed:
            self._end = end if self._end is None else self._end
            self._changed.notify_all()

    def _wait(self, condition, timeout):
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise CausewayError(Code.TIMED_OUT, "nothing happened in time")

    def reset(self):
        """Resets the stream. It ends for the writer and for the reader."""
        self._ask_while_open(reset, self._number)

    def _ask_while_open(self, *request):
        try:
            self._node._ask(*request)
        except CausewayError as error:
            if error.code != Code.UNKNOWN:  # the stream has ended in the meantime
                raise


class OutgoingStream(_Stream):
    """A stream to a member."""

    def __init__(self, node, number):
        super().__init__(node, number)
        self._limit = self._written = 0

    def write(self, data, timeout=None):
        """Writes bytes, and waits until all are sent to the daemon. `timeout` limits each wait for the stream's window."""
        data = memoryview(data)
        while data:
            self._wait(lambda: self._end is not None or self._written < self._limit, timeout)
            if self._end is not None:
                raise StreamError(self._end)
            count = min(STREAM_BYTES, self._limit - self._written, len(data))
            part, data = data[:count], data[count:]
            self._written += count
            self._node._write(write(self._number, bytes(part)))

    def finish(self, timeout=None):
        """Finishes the stream, and waits until the member's application has received all bytes."""
        try:
            self._node._ask(finish, self._number)
        except CausewayError as error:
            if error.code != Code.UNKNOWN:  # the stream has ended in the meantime
                raise
        self._wait(lambda: self._end is not None, timeout)
        if self._end != StreamEnd.FINISHED:
            raise StreamError(self._end)

    def _room(self, limit):
        with self._changed:
            self._limit = limit
            self._changed.notify_all()


class IncomingStream(_Stream):
    """A stream that a member opened. The first `read` accepts it."""

    def __init__(self, node, received, sender, name):
        super().__init__(node, None)
        self._received, self.sender, self.name = received, sender, name
        self._bytes, self._limit, self._taken = bytearray(), 0, 0

    def read(self, timeout=None):
        """The next bytes, at least one; b"" at the end of a finished stream. Raises StreamError after any other end."""
        if self._number is None and self._end is None:
            self._accept()
        self._wait(lambda: self._bytes or self._end is not None, timeout)
        with self._changed:
            data = bytes(self._bytes)
            self._bytes.clear()
        if data:
            self._taken += len(data)
            if self._end is None and self._taken + STREAM_WINDOW // 2 >= self._limit:
                self._limit = self._taken + STREAM_WINDOW
                self._node._write(stream_window(self._number, self._limit))
        elif self._end != StreamEnd.FINISHED:
            raise StreamError(self._end)
        return data

    def __iter__(self):
        return iter(self.read, b"")

    def refuse(self):
        self._node._forget(("stream", self._received))
        self._ask_while_open(take, self._received, 0, 0)

    def _accept(self):
        self._number, self._limit = self._node._number(), STREAM_WINDOW
        self._node._held[self._number] = self
        try:
            self._node._ask(take, self._received, 1, self._limit, number=self._number)
        except CausewayError as error:
            self._node._forget(self._number)
            if error.code != Code.UNKNOWN:
                raise
            self._ended(StreamEnd.LOST)
        self._node._forget(("stream", self._received))

    def _came(self, data):
        with self._changed:
            self._bytes += data
            self._changed.notify_all()


class Session(_Events):
    """A sequence of Member, Message, Room, IncomingStream, Question and finally Ended. Reading lets members send more."""

    def __init__(self, node, number):
        super().__init__(node, number)
        self.id, self.address, self.members = None, None, {}    # address: of this application
        self._limit = self._taken = 0

    def next(self, timeout=None):
        event = super().next(timeout)
        if isinstance(event, Message):
            self._taken += len(event.data) + OVERHEAD
            self._grant()
        return event

    def _grant(self):
        if self._taken + WINDOW // 2 >= self._limit:
            self._limit = self._taken + WINDOW
            self._node._write(window(self._number, self._limit))

    def connected(self):
        """The addresses of the members that are connected."""
        return [address for address, member in list(self.members.items()) if member.state in (State.CONNECTED, State.PAUSED)]

    def invite(self, address, context=b"", timeout=30):
        return self._invite(invite, address, int(timeout * 1000), context)

    def connect(self, address, timeout=30):
        """Connects two applications that know each other's address. Each calls this with the address of the other, and
        nobody is prompted. Returns a SentInvitation."""
        return self._invite(connect, address, int(timeout * 1000))

    def _invite(self, request, *fields):
        invitation = self._node._hold(SentInvitation)
        try:
            self._node._ask(request, self._number, *fields, number=invitation._number)
        except CausewayError:
            self._node._forget(invitation._number)
            raise
        return invitation

    def send(self, data, to=None, mode=Mode.RELIABLE, timeout=None):
        """Sends a message to all connected members, or to the addresses in `to`, and waits for the results. Returns a
        dictionary from addresses to Result, which is empty for an unreliable message."""
        return {} if to == [] else self.post(data, to, mode).wait(timeout)

    def post(self, data, to=None, mode=Mode.RELIABLE):
        """Sends a message without waiting for the results, so that many messages can be in flight. Returns a Sending."""
        return self._node._request(send, self._number, mode, to or [], data)

    def gather(self):
        """Invites all that advertise this session's type. Those that also call this join unprompted. Advertise afterwards."""
        self._node._ask(gather, self._number)

    def open_stream(self, name, to):
        return self._node._begin(OutgoingStream, open_stream, self._number, to, name)

    def eject(self, address, farewell=""):
        """Ejects a member. Only the founder of the session may do it."""
        self._node._ask(eject, self._number, address, farewell)

    def decide(self, address, accepted):
        """Answers a Question: whether the member is admitted. The session was opened with `decides`."""
        self._node._ask(decide, self._number, address, accepted)

    def leave(self, farewell=""):
        self._node._ask(leave, self._number, farewell)

    close = leave

    def _member(self, reader):
        member = Member(
            reader.address(), reader.peer(), reader.number(1), reader.number(1), reader.text())
        if member.state in (State.LEFT, State.EJECTED):
            self.members.pop(member.address, None)
        else:
            self.members[member.address] = member
        self._put(member)


def _wait(results, timeout):
    try:
        result = results.get(timeout=timeout)
    except queue.Empty:
        raise CausewayError(Code.TIMED_OUT, "no answer in time") from None
    results.put(result)
    if isinstance(result, Exception):
        raise result
    return result


class Node:
    """A connection to the daemon. Its end withdraws the application's services and leaves its sessions."""

    @classmethod
    def connect(cls, name, path=SOCKET):
        """Connects as the application `name`. Two applications of a user that run at the same time need different names."""
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.connect(path)
        except OSError as error:
            stream.close()
            raise CausewayError(Code.NOT_CONNECTED, f"{path}: {error.strerror}; check that the daemon runs") from error
        node = cls(stream)
        node._ask(hello, name)
        return node

    def __init__(self, stream):
        self._stream = stream
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._last, self._held, self._asked = 0, {}, {}
        self.id = self.name = self.version = self.end = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def browse(self, service):
        return self._begin(Browse, browse, service)

    def advertise(self, service, info={}):
        return self._begin(Advertisement, advertise, service, info, made_with=(service,))

    def open_session(self, service, members_max=0, only_founder_admits=False, unsealed=False, decides=False):
        session = self._begin(
            Session, open_session, service, (1 if only_founder_admits else 0) | (2 if unsealed else 0), members_max,
            decides)
        session._grant()
        return session

    def gather(self, service, info={}, members_max=0):
        """Opens a session that joins all applications which call this for `service`. Advertises it until the connection ends."""
        session = self.open_session(service, members_max)
        session.gather()
        self.advertise(service, info)
        return session

    def close(self):
        try:
            self._stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # Requests

    def _number(self):
        with self._lock:
            self._last = self._last % 0xFFFF_FFFF + 1
            return self._last

    def _hold(self, kind, *made_with):
        number = self._number()
        held = self._held[number] = kind(self, number, *made_with)
        return held

    def _forget(self, number):
        self._held.pop(number, None)

    def _begin(self, kind, encode, *fields, made_with=()):
        held = self._hold(kind, *made_with)
        try:
            self._ask(encode, *fields, number=held._number)
        except CausewayError:
            self._forget(held._number)
            raise
        return held

    def _ask(self, encode, *fields, number=None, timeout=None):
        """Sends a request and waits for its answer."""
        return self._request(encode, *fields, number=number).wait(timeout)

    def _request(self, encode, *fields, number=None):
        number = number or self._number()
        request = self._asked[number] = Sending()
        try:
            if self.end:
                raise self.end
            self._write(encode(number, *fields))
        except CausewayError:
            self._asked.pop(number, None)
            raise
        return request

    def _write(self, bytes):
        with self._writing:
            try:
                self._stream.sendall(bytes)
            except OSError as error:
                # The daemon may have sent the reason before closing the connection.
                self._reader.join(1)
                raise (self.end or CausewayError(Code.NOT_CONNECTED)) from error

    # Events

    def _read(self):
        reason = "the daemon closed the connection"
        try:
            with self._stream.makefile("rb") as stream:
                while head := stream.read(4):
                    packet = stream.read(int.from_bytes(head))
                    if packet[:5] == b"\x80" + bytes(4):
                        reason = Reader(packet[6:]).text()
                    self._hear(packet)
        except OSError:
            pass
        self._stream.close()
        self.end = CausewayError(Code.NOT_CONNECTED, reason)
        for request in list(self._asked.values()):
            request._answer.put(self.end)
        for held in list(self._held.values()):
            if isinstance(held, _Events):
                held._put(None)
            elif isinstance(held, _Stream):
                held._ended(StreamEnd.LOST)
            else:
                held._end.put(self.end)

    def _hear(self, packet):
        reader = Reader(packet)
        kind, number = reader.number(1), reader.number(4)
        if kind in (128, 138):
            return self._answered(kind, number, reader)
        if kind == 129:
            self.version, _, self.id, self.name = reader.number(2), reader.bytes(8), reader.bytes(16), reader.text()
            if request := self._asked.pop(number, None):
                request._answer.put((Code.DONE, ""))
            return
        held = self._held.get(number)
        if held is None:
            return
        match kind:
            case 130:
                held._services(reader)
            case 131:
                held._put(Sighting("allTold", None, None, None))
            case 132:
                invitation = Invitation(self, reader.number(4), reader)
                self._held["invitation", invitation._number] = invitation
                held._put(invitation)
            case 133:
                received, outcome = reader.number(4), (reader.number(1), reader.text())
                if ended := self._held.pop(("invitation", received) if received else number, None):
                    ended._end.put(outcome)
            case 134:
                held.id = reader.bytes(16)
            case 135:
                reason, _ = reader.number(1), reader.number(4)
                self._forget(number)
                held._put(Ended(reason, reader.text()))
                held._put(None)
            case 136:
                held._member(reader)
            case 137:
                sender, mode = reader.address(), reader.number(1)
                held._put(Message(sender, reader.bytes(reader.number(4)), mode != Mode.UNRELIABLE))
            case 139:
                held._put(Room(reader.address()))
            case 140:
                stream = IncomingStream(self, reader.number(4), reader.address(), reader.text())
                self._held["stream", stream._received] = stream
                held._put(stream)
            case 141:
                held._came(reader.bytes(reader.number(4)))
            case 142:
                held._room(reader.number(8))
            case 144:
                held._put(Question(reader.address(), reader.peer(), reader.certificates()))
            case 143:
                received, end = reader.number(4), reader.number(1)
                if ended := self._held.pop(("stream", received) if received else number, None):
                    ended._ended(StreamEnd(end) if end in list(StreamEnd) else end)

    def _answered(self, kind, number, reader):
        if kind == 138:
            address, result = reader.address(), reader.number(1)
            if request := self._asked.get(number):
                request._results[address] = Result(result)
        elif request := self._asked.pop(number, None):
            answer, held = (reader.number(1), reader.text()), self._held.get(number)
            if isinstance(held, (Advertisement, Session)) and len(reader.packet) - reader.offset >= 4:
                held.address = Address(self.id, reader.number(4))
            request._answer.put(answer)
