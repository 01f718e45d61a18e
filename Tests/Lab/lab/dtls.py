"""DTLS 1.2 in memory with the system's OpenSSL. libssl is called by ctypes, because Python's `ssl` has only TLS. The
module implements one end of a sealed session of docs/protocol.md, “Sealing”, without code of the firmware."""

import ctypes
import ctypes.util

_ssl = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
_crypto = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")

POINTER, LONG = ctypes.c_void_p, ctypes.c_long
for library, name, result, arguments in [
    (_ssl, "DTLS_method", POINTER, []),
    (_ssl, "SSL_CTX_new", POINTER, [POINTER]),
    (_ssl, "SSL_CTX_use_certificate_file", ctypes.c_int, [POINTER, ctypes.c_char_p, ctypes.c_int]),
    (_ssl, "SSL_CTX_use_PrivateKey_file", ctypes.c_int, [POINTER, ctypes.c_char_p, ctypes.c_int]),
    (_ssl, "SSL_CTX_set_verify", None, [POINTER, ctypes.c_int, POINTER]),
    (_ssl, "SSL_CTX_set_cipher_list", ctypes.c_int, [POINTER, ctypes.c_char_p]),
    (_ssl, "SSL_new", POINTER, [POINTER]),
    (_ssl, "SSL_set_bio", None, [POINTER, POINTER, POINTER]),
    (_ssl, "SSL_set_options", ctypes.c_uint64, [POINTER, ctypes.c_uint64]),
    (_ssl, "SSL_ctrl", LONG, [POINTER, ctypes.c_int, LONG, POINTER]),
    (_ssl, "SSL_set_connect_state", None, [POINTER]),
    (_ssl, "SSL_set_accept_state", None, [POINTER]),
    (_ssl, "SSL_do_handshake", ctypes.c_int, [POINTER]),
    (_ssl, "SSL_get_error", ctypes.c_int, [POINTER, ctypes.c_int]),
    (_ssl, "SSL_read", ctypes.c_int, [POINTER, POINTER, ctypes.c_int]),
    (_ssl, "SSL_write", ctypes.c_int, [POINTER, ctypes.c_char_p, ctypes.c_int]),
    (_ssl, "SSL_get1_peer_certificate", POINTER, [POINTER]),
    (_ssl, "SSL_get_version", ctypes.c_char_p, [POINTER]),
    (_ssl, "SSL_get_current_cipher", POINTER, [POINTER]),
    (_ssl, "SSL_CIPHER_get_name", ctypes.c_char_p, [POINTER]),
    (_crypto, "BIO_new", POINTER, [POINTER]),
    (_crypto, "BIO_s_mem", POINTER, []),
    (_crypto, "BIO_ctrl", LONG, [POINTER, ctypes.c_int, LONG, POINTER]),
    (_crypto, "BIO_read", ctypes.c_int, [POINTER, POINTER, ctypes.c_int]),
    (_crypto, "BIO_write", ctypes.c_int, [POINTER, ctypes.c_char_p, ctypes.c_int]),
    (_crypto, "i2d_X509", ctypes.c_int, [POINTER, ctypes.POINTER(POINTER)]),
]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments

PEM, VERIFY_PEER_AND_FAIL, NO_QUERY_MTU = 1, 3, 0x1000
SET_MTU, HANDLE_TIMEOUT, MEMORY_AT_END = 17, 74, 130
WANT_READ = 2
SUITES = b"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256"
RECORD_HEADER_BYTES = 13
DATAGRAM_BYTES_MAX = 2032

# Every certificate is accepted here: its key is the peer's identity, and the caller compares the key with the node id.
_accept_any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, POINTER)(lambda _ok, _store: 1)


def records_of(data):
    """Split consecutive DTLS records. Returns them as a list."""
    records = []
    while data:
        end = RECORD_HEADER_BYTES + int.from_bytes(data[11:13])
        records.append(data[:end])
        data = data[end:]
    return records


class Session:
    """One end of a session. After each call of a method, `outgoing()` returns the datagrams to send."""

    def __init__(self, certificate, key, is_client):
        context = _ssl.SSL_CTX_new(_ssl.DTLS_method())
        for load, path in ((_ssl.SSL_CTX_use_certificate_file, certificate), (_ssl.SSL_CTX_use_PrivateKey_file, key)):
            if load(context, str(path).encode(), PEM) != 1:
                raise RuntimeError(f"{path}: not usable")
        _ssl.SSL_CTX_set_verify(context, VERIFY_PEER_AND_FAIL, ctypes.cast(_accept_any, POINTER))
        _ssl.SSL_CTX_set_cipher_list(context, SUITES)
        self._ssl = _ssl.SSL_new(context)
        self._in, self._out = (_crypto.BIO_new(_crypto.BIO_s_mem()) for _ in range(2))
        _crypto.BIO_ctrl(self._in, MEMORY_AT_END, -1, None)
        _ssl.SSL_set_bio(self._ssl, self._in, self._out)
        _ssl.SSL_set_options(self._ssl, NO_QUERY_MTU)
        _ssl.SSL_ctrl(self._ssl, SET_MTU, DATAGRAM_BYTES_MAX, None)
        (_ssl.SSL_set_connect_state if is_client else _ssl.SSL_set_accept_state)(self._ssl)
        self.is_established = False
        if is_client:
            self._shake_hands()

    def receive(self, datagram):
        """Process a handshake datagram from the peer."""
        _crypto.BIO_write(self._in, datagram, len(datagram))
        if self.is_established:
            self._read()                             # the peer has retransmitted its last flight
        else:
            self._shake_hands()

    def open(self, record):
        """Decrypt a record. Returns its plaintext, or None if it has none."""
        _crypto.BIO_write(self._in, record, len(record))
        return self._read()

    def seal(self, plaintext):
        if _ssl.SSL_write(self._ssl, plaintext, len(plaintext)) != len(plaintext):
            raise RuntimeError("sealing failed")
        return b"".join(self.outgoing())

    def outgoing(self):
        buffer = ctypes.create_string_buffer(65536)
        count = _crypto.BIO_read(self._out, buffer, len(buffer))
        return records_of(buffer.raw[:count]) if count > 0 else []

    def time_passed(self):
        """Retransmit the last flight of the handshake when its timer has expired. Call it regularly."""
        _ssl.SSL_ctrl(self._ssl, HANDLE_TIMEOUT, 0, None)

    @property
    def peer_certificate(self):
        certificate = _ssl.SSL_get1_peer_certificate(self._ssl)
        buffer = ctypes.create_string_buffer(_crypto.i2d_X509(certificate, None))
        place = POINTER(ctypes.addressof(buffer))
        _crypto.i2d_X509(certificate, ctypes.byref(place))
        return buffer.raw

    @property
    def description(self):
        suite = _ssl.SSL_CIPHER_get_name(_ssl.SSL_get_current_cipher(self._ssl)).decode()
        return f"{_ssl.SSL_get_version(self._ssl).decode()}/{suite}"

    def _shake_hands(self):
        result = _ssl.SSL_do_handshake(self._ssl)
        self.is_established = result == 1
        if result != 1 and (error := _ssl.SSL_get_error(self._ssl, result)) != WANT_READ:
            raise RuntimeError(f"the DTLS handshake failed: SSL_get_error says {error}")

    def _read(self):
        buffer = ctypes.create_string_buffer(20000)
        count = _ssl.SSL_read(self._ssl, buffer, len(buffer))
        return buffer.raw[:count] if count > 0 else None
