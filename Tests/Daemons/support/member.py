"""A member of the mesh that is not a daemon. It links with a box over TCP and sends what a test needs, even false data.
Written from docs/protocol.md. Tests need thousands of keys and signatures, so the system's libcrypto makes them."""
import ctypes
import os
import struct

from bypass import INT, POINTER, SIZE, TEXT, Stream, _crypto
from client import (
    ADVERTISEMENT, HELLO, PING, PONG, SEALED, SEALED_FLAG, TOPOLOGY, Identity, frame, node_id, point_of, text_field)

PAYLOAD_MAX, LOOPBACK, LIFETIME_SECONDS = 16640, 5, 600
RELAYS, BYPASS = 1, 8

for name, result, arguments in [
    ("EVP_PKEY_Q_keygen", POINTER, None),
    ("EVP_PKEY_get_octet_string_param", INT, [POINTER, TEXT, TEXT, SIZE, ctypes.POINTER(SIZE)]),
    ("EVP_MD_CTX_new", POINTER, []),
    ("EVP_MD_CTX_free", None, [POINTER]),
    ("EVP_sha256", POINTER, []),
    ("EVP_DigestSignInit", INT, [POINTER, POINTER, POINTER, POINTER, POINTER]),
    ("EVP_DigestSign", INT, [POINTER, TEXT, ctypes.POINTER(SIZE), TEXT, SIZE]),
]:
    function = getattr(_crypto, name)
    function.restype = result
    if arguments is not None:
        function.argtypes = arguments


class Key:
    """A P-256 key and the node id that belongs to it. It has no certificate, because an invented node makes no
    links."""

    def __init__(self):
        self._key = POINTER(_crypto.EVP_PKEY_Q_keygen(None, None, b"EC", b"P-256"))
        point, count = ctypes.create_string_buffer(65), SIZE()
        assert _crypto.EVP_PKEY_get_octet_string_param(self._key, b"encoded-pub-key", point, 65, ctypes.byref(count)) == 1
        self.point = point.raw
        self.id = node_id(self.point)
        self.epoch = struct.pack(">I", 1) + os.urandom(4)

    def sign(self, message):
        """Sign a message. Returns the numbers r and s of the signature, 32 bytes each."""
        context, count = _crypto.EVP_MD_CTX_new(), SIZE(80)
        signature = ctypes.create_string_buffer(80)
        try:
            assert _crypto.EVP_DigestSignInit(context, None, _crypto.EVP_sha256(), None, self._key) == 1
            assert _crypto.EVP_DigestSign(context, signature, ctypes.byref(count), message, len(message)) == 1
        finally:
            _crypto.EVP_MD_CTX_free(context)
        numbers, rest = [], signature.raw[2:]            # DER: SEQUENCE { INTEGER r, INTEGER s }, lengths of one byte
        for _ in range(2):
            numbers.append(int.from_bytes(rest[2 : 2 + rest[1]]))
            rest = rest[2 + rest[1] :]
        return b"".join(number.to_bytes(32) for number in numbers)


def topology(neighbours):
    """The body of a topology advertisement. The node relays, requires sealing, and has links with these ids."""
    links = b"".join(each + struct.pack(">HHB3x", 1, PAYLOAD_MAX, LOOPBACK) for each in neighbours)
    return bytes([RELAYS, len(neighbours), 0, 0]) + links


def advertisement(who, kind, sequence, body, sign=None):
    """The frame of an advertisement of `who`, a `Key` or an `Identity`. `sign` replaces the signature function of
    `who`."""
    message = (struct.pack(">BBH", kind, 0, LIFETIME_SECONDS) + who.epoch + struct.pack(">Q", sequence) + who.point + body)
    return frame(ADVERTISEMENT, message + (sign or who.sign)(message), who.id)


class Member:
    """A node with one link, to the box that listens on `port`."""

    def __init__(self, port, source, identity=None, capabilities=RELAYS, name="member"):
        self.identity = identity or Identity()
        self.stream = Stream(port, self.identity, source=source)
        self.box = node_id(point_of(self.stream.certificate))
        self.stream.send(frame(
            HELLO, struct.pack(">BBHI", 1, 1, PAYLOAD_MAX, capabilities) + self.identity.epoch + self.identity.id
            + text_field(name), self.identity.id))
        self.stream.may_bypass = bool(capabilities & BYPASS)

    def announce(self, sequence=1):
        """Advertise the member's link with the box."""
        self.stream.send(advertisement(self.identity, TOPOLOGY, sequence, topology([self.box])))

    def serve(self, seconds=0.0):
        """Read the frames that arrived, and answer pings. Other frames are ignored."""
        for each, _ in self.stream.receive(seconds):
            if each[1] == PING:
                self.stream.send(frame(PONG, each[48:], self.identity.id))
