import CMbedTLS
import Identity
import Primitives
import Seal

/// A ClientHello that is alone in a datagram (RFC 6347, sections 4.1, 4.2.1, 4.2.2). The ClientHello is parsed as far
/// as a stateless server needs. Bytes 0–12 are the record header, and bytes 13–24 are the handshake header. After these
/// headers follow version, random, session id and cookie.
struct DTLSHello {
  static let cookieBytes = 16
  private static let recordHeaderBytes = 13
  private static let handshakeHeaderBytes = 12
  private static let randomOffset = recordHeaderBytes + handshakeHeaderBytes + 2
  private static let randomBytes = 32

  let random: [UInt8]
  let cookie: [UInt8]
  /// The sequence number of the record, which the reply repeats.
  private let sequence: [UInt8]

  /// Nil if the datagram is not a single ClientHello. A fragmented ClientHello is refused, because every path can carry
  /// a complete one.
  init?(_ datagram: RawSpan) {
    let bytes = datagram.withUnsafeBytes { [UInt8]($0.prefix(2048)) }
    let bodyStart = Self.recordHeaderBytes + Self.handshakeHeaderBytes
    let sessionIDStart = Self.randomOffset + Self.randomBytes
    guard bytes.count == datagram.byteCount, bytes.count > sessionIDStart + 1 else { return nil }
    let recordCount = bytes.count - Self.recordHeaderBytes
    // The datagram must be one handshake record of DTLS 1.0 or 1.2 in epoch 0, with one unfragmented ClientHello.
    guard bytes[0] == 22, bytes[1] == 0xFE, bytes[3] == 0, bytes[4] == 0,
      Int(bytes[11]) << 8 | Int(bytes[12]) == recordCount, bytes[13] == 1,
      Self.number(bytes[14..<17]) == bytes.count - bodyStart, Self.number(bytes[19..<22]) == 0,
      Self.number(bytes[22..<25]) == bytes.count - bodyStart
    else { return nil }
    let cookieLength = sessionIDStart + 1 + Int(bytes[sessionIDStart])
    guard cookieLength < bytes.count, cookieLength + 1 + Int(bytes[cookieLength]) <= bytes.count else { return nil }
    random = [UInt8](bytes[Self.randomOffset..<sessionIDStart])
    cookie = [UInt8](bytes[(cookieLength + 1)..<(cookieLength + 1 + Int(bytes[cookieLength]))])
    sequence = [UInt8](bytes[5..<11])
  }

  /// The datagram of a HelloVerifyRequest with `cookie`. Record and message state DTLS 1.0, as RFC 6347, section 4.2.1,
  /// recommends.
  func verifyRequest(_ cookie: [UInt8]) -> [UInt8] {
    let body: [UInt8] = [0xFE, 0xFF, UInt8(cookie.count)] + cookie
    let length: [UInt8] = [0, 0, UInt8(body.count)]
    let message: [UInt8] = [3] + length + [0, 0, 0, 0, 0] + length + body
    return [22, 0xFE, 0xFF, 0, 0] + sequence + [0, UInt8(message.count)] + message
  }

  /// The datagram of the alert that answers this ClientHello if the node has no slot for the session.
  var busyAlert: [UInt8] {
    [DTLSAlert.record, 0xFE, 0xFD, 0, 0] + sequence + [0, 2, UInt8(MBEDTLS_SSL_ALERT_LEVEL_FATAL), DTLSAlert.busy]
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}

/// The alert by which a node reports the lack of a slot for a session: internal_error (RFC 5246, section 7.2), as on
/// links. The alert is not authenticated, so any relay can forge it. So the client tries again after an alert.
enum DTLSAlert {
  static let record: UInt8 = 21
  static let busy = UInt8(MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR)

  /// Whether a datagram is this alert in plaintext (epoch 0).
  static func isBusy(_ datagram: UnsafeRawBufferPointer) -> Bool {
    datagram.count == 15 && datagram[0] == record && datagram[3] == 0 && datagram[4] == 0 && datagram[14] == busy
  }
}

/// Stateless cookies. A server sends a cookie to check that the client receives frames at the node id that it claims. A
/// cookie is a keyed hash of the client's node id, of both boot epochs, and of the current minute.
struct HelloCookies {
  private static let seconds: UInt64 = 60
  private let key: [UInt8]

  init() throws(IdentityError) {
    try NodeIdentity.startLibrary()
    var key = [UInt8](repeating: 0, count: 32)
    let status = psa_generate_random(&key, key.count)
    if status != PSA_SUCCESS { throw .library(code: status) }
    self.key = key
  }

  func make(_ name: SessionName, now: Instant) -> [UInt8] { cookie(name, Self.minute(now)) }

  /// Whether the cookie was made for `name` in this minute or the previous minute.
  func check(_ cookie: [UInt8], _ name: SessionName, now: Instant) -> Bool {
    let minute = Self.minute(now)
    return cookie.count == DTLSHello.cookieBytes
      && (isSame(cookie, self.cookie(name, minute)) || isSame(cookie, self.cookie(name, minute &- 1)))
  }

  private static func minute(_ now: Instant) -> UInt64 { now.nanoseconds / TimeSpan.seconds(seconds).nanoseconds }

  private func cookie(_ name: SessionName, _ minute: UInt64) -> [UInt8] {
    var input: [UInt8] = []
    for word in [name.peer.high, name.peer.low, name.peerEpoch, name.localEpoch, minute] {
      for index in 0..<8 { input.append(UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * index))) }
    }
    var digest = [UInt8](repeating: 0, count: 32)
    let code = mbedtls_md_hmac(
      mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), key, key.count, input, input.count, &digest)
    precondition(code == 0, "SHA-256 of memory has no error but memory")
    return [UInt8](digest.prefix(DTLSHello.cookieBytes))
  }

  /// Compares two byte strings of equal length in constant time.
  private func isSame(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    var difference: UInt8 = 0
    for index in a.indices { difference |= a[index] ^ b[index] }
    return difference == 0
  }
}
