import CMbedTLS
import Identity
import Link

/// Why a stream could not be created.
public enum SecureStreamError: Error, Equatable {
  /// mbedTLS failed, in practice because no memory is left. `code` is its error number.
  case library(code: Int32)

  /// The fault and the remedy, in one line.
  public var text: String {
    switch self {
    case .library(let code): "no TLS context: mbedTLS \(hexadecimal(code)), usually out of memory; try again later"
    }
  }
}

/// Why a stream has ended.
public enum SecureStreamEnd: Equatable, Sendable {
  /// This node called `close()`.
  case closedHere
  /// The peer closed the stream with close_notify.
  case closedByPeer
  /// The byte stream ended without close_notify.
  case truncated
  /// The peer sent no certificate.
  case noPeerCertificate
  /// The peer's key is not ECDSA P-256.
  case peerKeyNotP256
  /// The peer proved its key, but this node refused the peer.
  case refused(PeerRefusal)
  /// The peer ended the connection with this TLS alert (RFC 8446, section 6).
  case alert(UInt8)
  /// Another failure of TLS than the ones above. `code` is mbedTLS's error number.
  case library(code: Int32)
  /// The received bytes are neither valid TLS records nor sealed frames.
  case notAUnit(StreamDemultiplexer.Refusal)
  /// A sealed frame arrived before `allowBypass` was called.
  case sealedTooEarly
  /// A sealed frame has a link sequence that is not greater than that of the frame before.
  case sealedReplayed
  /// The header of a sealed frame has a wrong tag.
  case sealedForged
  /// The outgoing buffer is full, because the peer causes replies but does not read them.
  case outgoingOverflow

  /// One line for the journal and the status: the fault and, if possible, the remedy.
  public var text: String {
    switch self {
    case .closedHere: "closed here"
    case .closedByPeer: "closed by the peer"
    case .truncated: "the connection ended without close_notify"
    case .noPeerCertificate: "the peer sent no certificate; it needs one (self-signed will do) with an ECDSA P-256 key"
    case .peerKeyNotP256: "the peer's key is not ECDSA P-256 (uncompressed); it needs a certificate with such a key"
    case .refused(let refusal): "the peer was refused: \(refusal.text)"
    case .alert(let description): "the peer refused with TLS alert \(description) (\(alertName(description)))"
    case .library(let code): libraryText(code)
    case .notAUnit(.unknownFirstByte): "bytes that are neither TLS nor a sealed frame; is the peer a Causeway node?"
    case .notAUnit(.recordTooLong): "a TLS record longer than TLS allows"
    case .notAUnit(.sealedEmpty): "a sealed frame without payload"
    case .notAUnit(.sealedTooLong): "a sealed frame longer than \(StreamDemultiplexer.sealedPayloadBytesMax) bytes"
    case .sealedTooEarly: "a sealed frame before both sides had agreed on the bypass"
    case .sealedReplayed: "a sealed frame with a used link sequence: frames are replayed on this link"
    case .sealedForged: "a sealed frame whose header is not authentic: frames are altered on this link"
    case .outgoingOverflow: "the peer does not read the replies"
    }
  }

  /// Derives the reason from mbedTLS's error number, the result of the key check, and the received alert.
  init(code: Int32, peerKey: PeerKey, alert: UInt8) {
    switch peerKey {
    case .notP256:
      self = .peerKeyNotP256
      return
    case .chainTooLarge:
      self = .refused(.chainTooLong)
      return
    case .wrongUsage:
      self = .refused(.wrongUsage)
      return
    case .unknown, .accepted: break
    }
    switch code {
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE: self = .alert(alert)
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY: self = .closedByPeer
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE: self = .noPeerCertificate
    case MBEDTLS_ERR_SSL_WANT_WRITE: self = .outgoingOverflow
    default: self = .library(code: code)
    }
  }
}

/// The text for an mbedTLS error. Debian's library has no error texts, and the complete table of 100 KB would be the
/// largest of the firmware. So this function has texts for the common errors only.
private func libraryText(_ code: Int32) -> String {
  let text: StaticString =
    switch code {
    case MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION: "no common TLS version; this node supports 1.2 and 1.3"
    case MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE:
      "no common TLS parameters; needed: ECDHE-ECDSA or TLS 1.3, AES-GCM or ChaCha20-Poly1305, P-256 or X25519"
    case MBEDTLS_ERR_SSL_INVALID_RECORD: "malformed TLS record"
    case MBEDTLS_ERR_SSL_INVALID_MAC: "TLS record altered on the path"
    case MBEDTLS_ERR_SSL_DECODE_ERROR: "malformed TLS message"
    case MBEDTLS_ERR_SSL_ILLEGAL_PARAMETER: "TLS message with a value that is not allowed"
    case MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE: "TLS message out of order"
    case MBEDTLS_ERR_SSL_UNEXPECTED_RECORD: "TLS record out of order"
    case MBEDTLS_ERR_SSL_BAD_CERTIFICATE: "the peer's certificate is malformed or not meant for TLS"
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED: "the peer's certificate was refused"
    case MBEDTLS_ERR_X509_FATAL_ERROR: "the peer's certificate chain is too long"
    case MBEDTLS_ERR_SSL_ALLOC_FAILED: "no memory for TLS"
    default: "TLS failed"
    }
  return "\(text) (mbedTLS \(hexadecimal(code)))"
}

/// The names of the alerts that occur in practice (RFC 8446, section 6.2).
private func alertName(_ description: UInt8) -> StaticString {
  switch description {
  case 10: "unexpected_message"
  case 20: "bad_record_mac"
  case 22: "record_overflow"
  case 40: "handshake_failure"
  case 42: "bad_certificate"
  case 43: "unsupported_certificate"
  case 44: "certificate_revoked"
  case 45: "certificate_expired"
  case 46: "certificate_unknown"
  case 47: "illegal_parameter"
  case 48: "unknown_ca"
  case 50: "decode_error"
  case 51: "decrypt_error"
  case 70: "protocol_version"
  case 71: "insufficient_security"
  case 80: "internal_error"
  case 90: "user_canceled"
  case 109: "missing_extension"
  case 116: "certificate_required"
  default: "see RFC 8446, section 6.2"
  }
}
