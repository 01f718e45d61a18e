"""The client's end of a link over TCP: TLS, and the sealed frames that bypass TLS beside its records. TLS is the
system's OpenSSL, called by ctypes because Python's `ssl` has no exporter. Written only from docs/protocol.md, “TLS”,
“Frame” and “Bypass”."""
import ctypes
import ctypes.util
import functools
import select
import socket
import struct
import time

_ssl = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
_crypto = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")

POINTER, LONG, INT, TEXT, SIZE = ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
for library, name, result, arguments in [
    (_ssl, "TLS_client_method", POINTER, []),
    (_ssl, "SSL_CTX_new", POINTER, [POINTER]),
    (_ssl, "SSL_CTX_ctrl", LONG, [POINTER, INT, LONG, POINTER]),
    (_ssl, "SSL_CTX_use_certificate_file", INT, [POINTER, TEXT, INT]),
    (_ssl, "SSL_CTX_use_PrivateKey_file", INT, [POINTER, TEXT, INT]),
    (_ssl, "SSL_new", POINTER, [POINTER]),
    (_ssl, "SSL_set_bio", None, [POINTER, POINTER, POINTER]),
    (_ssl, "SSL_set_connect_state", None, [POINTER]),
    (_ssl, "SSL_do_handshake", INT, [POINTER]),
    (_ssl, "SSL_read", INT, [POINTER, POINTER, INT]),
    (_ssl, "SSL_write", INT, [POINTER, TEXT, INT]),
    (_ssl, "SSL_get_error", INT, [POINTER, INT]),
    (_ssl, "SSL_get_version", TEXT, [POINTER]),
    (_ssl, "SSL_key_update", INT, [POINTER, INT]),
    (_ssl, "SSL_get1_peer_certificate", POINTER, [POINTER]),
    (_ssl, "SSL_export_keying_material", INT, [POINTER, TEXT, SIZE, TEXT, SIZE, TEXT, SIZE, INT]),
    (_crypto, "i2d_X509", INT, [POINTER, ctypes.POINTER(POINTER)]),
    (_crypto, "BIO_new", POINTER, [POINTER]),
    (_crypto, "BIO_s_mem", POINTER, []),
    (_crypto, "BIO_ctrl", LONG, [POINTER, INT, LONG, POINTER]),
    (_crypto, "BIO_read", INT, [POINTER, POINTER, INT]),
    (_crypto, "BIO_write", INT, [POINTER, TEXT, INT]),
    (_crypto, "ERR_get_error", ctypes.c_ulong, []),
    (_crypto, "EVP_Q_mac", POINTER,
     [POINTER, TEXT, TEXT, TEXT, POINTER, TEXT, SIZE, TEXT, SIZE, POINTER, SIZE, ctypes.POINTER(SIZE)]),
]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments

PEM, SET_MIN_VERSION, SET_MAX_VERSION, MEMORY_AT_END = 1, 123, 124, 130
VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}
WANT_READ, ZERO_RETURN, ALERT_REASON = 2, 6, 1000

HEADER_BYTES, SEQUENCE_BYTES, TAG_BYTES, RECORD_HEADER_BYTES = 48, 8, 16, 5
SEALED_FLAG = 1
LABEL = b"EXPORTER-causeway-bypass-v2"


def tag_of(key, sequence, header):
    """The tag of a sealed frame: SipHash-2-4 with 128 bits over the header and the sequence number."""
    head, tag, count = header + struct.pack(">Q", sequence), ctypes.create_string_buffer(TAG_BYTES), SIZE()
    assert _crypto.EVP_Q_mac(
        None, b"SIPHASH", None, None, None, key, len(key), head, len(head), tag, TAG_BYTES, ctypes.byref(count))
    assert count.value == TAG_BYTES
    return tag.raw


def sealed_unit(key, sequence, frame):
    """A sealed frame with its sequence number and tag, as it is sent between TLS records."""
    header = frame[:HEADER_BYTES]
    return header + struct.pack(">Q", sequence) + tag_of(key, sequence, header) + frame[HEADER_BYTES:]


class Ended(Exception):
    """The end of the stream. `how` says whether it ended by close_notify, by a TLS alert, or without either."""

    def __init__(self, how):
        super().__init__(how)
        self.how = how


@functools.cache
def tls_context(certificate, key, version):
    context = _ssl.SSL_CTX_new(_ssl.TLS_client_method())
    for limit in (SET_MIN_VERSION, SET_MAX_VERSION):
        assert _ssl.SSL_CTX_ctrl(context, limit, VERSIONS[version], None) == 1
    for load, path in ((_ssl.SSL_CTX_use_certificate_file, certificate), (_ssl.SSL_CTX_use_PrivateKey_file, key)):
        assert load(context, path.encode(), PEM) == 1
    return context


class Stream:
    """One connection to a box. `send` sends complete frames. `receive` returns frames, each with whether it came beside
    the TLS records."""

    def __init__(self, port, identity, version="TLSv1.3", source="127.0.0.1"):
        self._tls = _ssl.SSL_new(tls_context(str(identity.certificate), str(identity.key), version))
        self._in, self._out = (_crypto.BIO_new(_crypto.BIO_s_mem()) for _ in range(2))
        _crypto.BIO_ctrl(self._in, MEMORY_AT_END, -1, None)
        _ssl.SSL_set_bio(self._tls, self._in, self._out)
        _ssl.SSL_set_connect_state(self._tls)
        self._socket = socket.create_connection(("127.0.0.1", port), 10, (source, 0))
        self._raw, self._plain, self._ready, self._ended = b"", b"", [], None
        self.may_bypass, self.sequence, self.last_received = False, 0, 0
        self._established = False
        while not self._established:
            if _ssl.SSL_do_handshake(self._tls) == 1:
                self._established = True
            self._flush()
            if not self._established:
                self._read_socket(5)
        self.version = _ssl.SSL_get_version(self._tls).decode()
        keys = ctypes.create_string_buffer(32)
        assert _ssl.SSL_export_keying_material(self._tls, keys, 32, LABEL, len(LABEL), None, 0, 0) == 1
        self.sending_key, self.receiving_key = keys.raw[:16], keys.raw[16:]

    @property
    def certificate(self):
        certificate = _ssl.SSL_get1_peer_certificate(self._tls)
        buffer = ctypes.create_string_buffer(_crypto.i2d_X509(certificate, None))
        place = POINTER(ctypes.addressof(buffer))
        _crypto.i2d_X509(certificate, ctypes.byref(place))
        return buffer.raw

    def send(self, frame):
        if frame[2] & SEALED_FLAG and self.may_bypass:
            self.sequence += 1
            self._socket.sendall(sealed_unit(self.sending_key, self.sequence, frame))
        else:
            assert _ssl.SSL_write(self._tls, frame, len(frame)) == len(frame)
            self._flush()

    def send_raw(self, data):
        self._socket.sendall(data)

    def update_keys(self):
        assert _ssl.SSL_key_update(self._tls, 0) == 1 and _ssl.SSL_do_handshake(self._tls) == 1
        self._flush()

    def receive(self, seconds=0.2):
        """Wait for frames and return them as (frame, came_beside). Raises `Ended` after the end of the stream."""
        if not self._ready and self._ended is None:
            self._read_socket(seconds)
        ready, self._ready = self._ready, []
        if not ready and self._ended is not None:
            raise Ended(self._ended)
        return ready

    def until_end(self, seconds=10):
        """Wait for the end of the stream. Returns how it ended, and the frames that arrived before the end."""
        frames, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                frames += self.receive()
            except Ended as ended:
                return ended.how, [frame for frame, _ in frames]
        raise AssertionError(f"the stream did not end within {seconds} s")

    def close(self):
        self._socket.close()

    def _flush(self):
        buffer = ctypes.create_string_buffer(65536)
        while (count := _crypto.BIO_read(self._out, buffer, len(buffer))) > 0:
            self._socket.sendall(buffer.raw[:count])

    def _read_socket(self, seconds):
        if not select.select([self._socket], [], [], seconds)[0]:
            return
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self._ended = self._ended or "cut"
            if not self._established:
                raise Ended(self._ended)
        self._raw += data
        while self._ended is None and (unit := self._next_unit()):
            if unit[0] == 0x81:
                self._take_sealed(unit)
            else:
                self._take_record(unit)

    def _next_unit(self):
        """Remove one complete TLS record or sealed frame from the beginning of the received bytes, and return it."""
        if len(self._raw) < 8:
            if len(self._raw) < RECORD_HEADER_BYTES or self._raw[0] == 0x81:
                return None
        if self._raw[0] == 0x81:
            end = HEADER_BYTES + SEQUENCE_BYTES + TAG_BYTES + int.from_bytes(self._raw[6:8])
        else:
            assert 20 <= self._raw[0] <= 23, self._raw[:8].hex()
            end = RECORD_HEADER_BYTES + int.from_bytes(self._raw[3:5])
        if len(self._raw) < end:
            return None
        unit, self._raw = self._raw[:end], self._raw[end:]
        return unit

    def _take_sealed(self, unit):
        header, rest = unit[:HEADER_BYTES], unit[HEADER_BYTES:]
        sequence = int.from_bytes(rest[:SEQUENCE_BYTES])
        assert self.may_bypass, "a sealed frame before both hellos"
        assert sequence > self.last_received, "a link sequence that does not rise"
        assert rest[8:24] == tag_of(self.receiving_key, sequence, header), "a wrong tag"
        self.last_received = sequence
        self._ready.append((header + rest[24:], True))

    def _take_record(self, record):
        _crypto.BIO_write(self._in, record, len(record))
        if not self._established:
            if _ssl.SSL_do_handshake(self._tls) == 1:
                self._established = True
            self._flush()
            if not self._established:
                return
        buffer = ctypes.create_string_buffer(20000)
        while (count := _ssl.SSL_read(self._tls, buffer, len(buffer))) > 0:
            self._plain += buffer.raw[:count]
        error = _ssl.SSL_get_error(self._tls, count)
        self._flush()
        if error == ZERO_RETURN:
            self._ended = "close_notify"
        elif error != WANT_READ:
            reason = 0
            while (code := _crypto.ERR_get_error()) != 0:
                reason = code & 0x7FFFFF
            self._ended = f"alert {reason - ALERT_REASON}" if reason > ALERT_REASON else f"error {error}, reason {reason}"
        while len(self._plain) >= 8:
            assert self._plain[0] == 0x81
            end = HEADER_BYTES + int.from_bytes(self._plain[6:8])
            if len(self._plain) < end:
                break
            self._ready.append((self._plain[:end], False))
            self._plain = self._plain[end:]
