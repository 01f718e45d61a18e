"""A client's conversation with one other node, written from docs/protocol.md, “Sealing” and “Delivery”. Its messages
use the interactive lane, and are sealed by a DTLS stack that the firmware does not use."""

import struct
import time

from dtls import Session

SEGMENT, ACKNOWLEDGEMENT, RESET, HANDSHAKE, SEALED = 32, 33, 35, 36, 37
HELLO = 1
YOURS_ARRIVED, ANSWER_ME = 1, 2
EPOCHS = struct.Struct(">8s8s")
SEALED_HELLO = struct.Struct(">BBBBBBH8s8s")
CHANNEL_EPOCH = slice(SEALED_HELLO.size, SEALED_HELLO.size + 8)
SEGMENT_HEADER = struct.Struct(">8s8sBBHIQ")
ACKNOWLEDGEMENT_HEADER = struct.Struct(">8s8sBBHIQQ")
INTERACTIVE = 0
WINDOW_BYTES, DATA_BYTES_MAX = 65536, 1200
RETRY_SECONDS = 1.0


class Conversation:
    """A conversation. It calls `send(kind, payload)` to send a frame to the peer. It calls `tell(word, **pairs)` to
    report an event, and `take(kind, message)` with each message of the peer."""

    # The maximum number of data bytes in a segment, and of segments in flight.
    data_bytes_max, segments_max = DATA_BYTES_MAX, 1

    def __init__(self, identity, peer_id, own_flags, peer_flags, peer_epoch, send, tell, take):
        self.identity, self.peer_id, self.own_flags, self.peer_flags = identity, peer_id, own_flags, peer_flags
        self.peer_epoch, self._send, self._tell, self._take = peer_epoch, send, tell, take
        self.is_client = identity.id < peer_id
        self._peer_channel_epoch = peer_epoch
        self._session, self._accepted, self._is_told = None, False, False
        # The bytes that are not acknowledged, and the stream offset of the first of these bytes. `_incoming` and
        # `_read` are the received segments by offset, and the first offset that was not read.
        self._outgoing, self._acknowledged, self._incoming, self._read = b"", 0, {}, 0
        self._stream, self._due = b"", 0.0

    def say(self, kind, data, length=None):
        """Send a message. `length` replaces the length in the message's header. Returns a function that tells whether
        the message is acknowledged."""
        self._outgoing += struct.pack(">IB", len(data) if length is None else length, kind) + data
        end, self._due = self._acknowledged + len(self._outgoing), 0.0
        self.tick()
        return lambda: self._acknowledged >= end

    def tick(self):
        """Begin the session if there is none, and retransmit what is due. Call it several times a second."""
        if self._session:
            self._session.time_passed()
            self._flush()
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + RETRY_SECONDS
        if self._session is None:
            if self._outgoing:
                self._begin() if self.is_client else self._send(HANDSHAKE, self._epochs())
        elif not self._accepted:
            self._greet()
        else:
            clock = max(int(time.monotonic() * 1e6) & 0xFFFFFFFF, 1)
            for start in range(0, len(self._outgoing), self.data_bytes_max)[: self.segments_max]:
                header = SEGMENT_HEADER.pack(
                    self._peer_channel_epoch, self.identity.epoch, INTERACTIVE, 0, 0, clock, self._acknowledged + start)
                self._seal(SEGMENT, header + self._outgoing[start : start + self.data_bytes_max])

    # --- sealing -------------------------------------------------------------------------------------------------------

    def _epochs(self):
        return EPOCHS.pack(self.peer_epoch, self.identity.epoch)

    def _begin(self):
        self._session = Session(self.identity.certificate, self.identity.key, self.is_client)
        self._accepted = self._is_told = False
        self._flush()

    def _flush(self):
        for datagram in self._session.outgoing():
            self._send(HANDSHAKE, self._epochs() + datagram)

    def take_handshake(self, payload):
        if payload[:16] != EPOCHS.pack(self.identity.epoch, self.peer_epoch):
            return
        # A handshake frame without a datagram requests that this end, the DTLS client, begins.
        if self._session is None:
            self._begin()
        if datagram := payload[16:]:
            self._session.receive(datagram)
            self._flush()
        if self._session.is_established and not self._is_told:
            self._is_told = True
            proven = self.identity.id_of_certificate(self._session.peer_certificate)
            if proven != self.peer_id:
                raise ValueError(f"{self.peer_id.hex()} was meant, {proven.hex()} answered")
            self._tell("sealed", dtls=self._session.description, peer=proven.hex())
            self._greet()

    def _greet(self):
        if not self._session.is_established:
            return
        flags = YOURS_ARRIVED if self._accepted else ANSWER_ME
        self._seal(HELLO, SEALED_HELLO.pack(
            1, flags, 0, 0, self.own_flags, self.peer_flags, 0, self.identity.epoch, self.peer_epoch))

    def _seal(self, kind, payload):
        self._send(SEALED, self._session.seal(bytes([kind]) + payload))

    def take_sealed(self, record):
        plaintext = self._session.open(record) if self._session and self._session.is_established else None
        if plaintext is None:
            return
        kind, payload = plaintext[0], plaintext[1:]
        if kind == HELLO:
            self._take_hello(payload)
        elif kind == SEGMENT:
            self._take_segment(payload)
        elif kind == ACKNOWLEDGEMENT:
            (_, _, lane, _, _, _, cumulative, _) = ACKNOWLEDGEMENT_HEADER.unpack_from(payload)
            if lane == INTERACTIVE and cumulative > self._acknowledged:
                self._outgoing = self._outgoing[cumulative - self._acknowledged :]
                self._acknowledged, self._due = cumulative, 0.0
                if not self._outgoing:
                    self._tell("delivered", peer=self.peer_id.hex())
        elif kind == RESET:
            meant, current = EPOCHS.unpack(payload)
            self._tell("reset", peer=self.peer_id.hex(), meant=meant.hex(), current=current.hex())

    def _take_hello(self, payload):
        version, flags, refusal, _, its_flags, my_flags, _, its_epoch, my_epoch = SEALED_HELLO.unpack_from(payload)
        if refusal:
            raise ValueError(f"{self.peer_id.hex()} refuses: {refusal}")
        said = (version, its_flags, my_flags, its_epoch, my_epoch)
        if said != (1, self.peer_flags, self.own_flags, self.peer_epoch, self.identity.epoch):
            raise ValueError(f"{self.peer_id.hex()} contradicts its advertisement: {payload.hex()}")
        if len(payload) >= CHANNEL_EPOCH.stop:
            self._peer_channel_epoch = payload[CHANNEL_EPOCH]
        self._accepted, self._due = True, 0.0
        if flags & ANSWER_ME:
            self._greet()

    # --- delivery ------------------------------------------------------------------------------------------------------

    def _take_segment(self, payload):
        _, _, lane, _, _, clock, offset = SEGMENT_HEADER.unpack_from(payload)
        if lane != INTERACTIVE:
            return
        self._incoming[offset] = payload[SEGMENT_HEADER.size :]
        while (data := self._incoming.pop(self._read, None)) is not None:
            self._read += len(data)
            self._stream += data
        self._seal(ACKNOWLEDGEMENT, ACKNOWLEDGEMENT_HEADER.pack(
            self._peer_channel_epoch, self.identity.epoch, INTERACTIVE, 0, 0, clock, self._read, self._read + WINDOW_BYTES))
        while len(self._stream) >= 5 and len(self._stream) >= 5 + int.from_bytes(self._stream[:4]):
            end = 5 + int.from_bytes(self._stream[:4])
            kind, message, self._stream = self._stream[4], self._stream[5:end], self._stream[end:]
            self._take(kind, message)
