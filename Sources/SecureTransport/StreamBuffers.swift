import CMbedTLS
import Identity
import Link
import Seal

/// The maximum memory of mbedTLS per stream or session, in bytes. The memory that a library needs cannot be derived, so
/// its size was measured on x86_64 with Debian's mbedTLS 3.6. `SecureMemoryTests` repeats the measurement.
public enum SecureMemory {
  /// The memory of an established context: two record buffers of 16.7 KiB, the keys, and the peer's parsed chain of up
  /// to 16 KiB in DER.
  static let contextBytesMax = 98_304
  /// The additional memory of a context during its handshake.
  static let handshakeBytesMax = 24_576

  /// The memory of the stream of an established link.
  public static let stream = contextBytesMax + StreamBuffers.capacity + Bypass.partialBytesMax
  /// The memory of a stream during its handshake. Only one flight of the outgoing buffer is used then.
  public static let streamHandshake = contextBytesMax + handshakeBytesMax + StreamBuffers.recordBytesMax
  /// The memory of an established end-to-end session between two nodes.
  public static let session = contextBytesMax
  /// The memory of an end-to-end session during its handshake, with its queued datagrams.
  public static let sessionHandshake =
    contextBytesMax + handshakeBytesMax + DTLSBuffers.outgoingMax * SealLimits.handshakeBytesMax
}

/// The state of mbedTLS's callbacks for one stream: the received bytes, the bytes to send, and the peer's key. The
/// address of this state is fixed, because mbedTLS passes it to the callbacks as their context.
struct StreamBuffers {
  /// The size of the outgoing buffer, in bytes. Beyond `SecureStream.outgoingLimitMax`, the buffer has room for another
  /// record or sealed frame, and for alerts.
  static let capacity = 2 * SecureStream.outgoingLimitMax
  /// The longest record of mbedTLS, in bytes: 16 KiB of plaintext, the header, and the greatest overhead of the suites
  /// of both TLS versions.
  static let recordBytesMax = 16384 + 5 + 256

  /// The received bytes that mbedTLS has not read yet. mbedTLS itself stores the beginning of an incomplete record.
  var incoming = UnsafeRawBufferPointer(start: nil, count: 0)
  var peerKey = PeerKey.unknown
  var peerPoint = InlineArray<65, UInt8>(repeating: 0)
  /// The peer's role in the handshake.
  let peerRole: ChainRules.Role

  private let outgoing = UnsafeMutableRawPointer.allocate(byteCount: StreamBuffers.capacity, alignment: 16)
  private var head = 0
  private var tail = 0

  init(peerRole: ChainRules.Role) { self.peerRole = peerRole }

  mutating func free() { outgoing.deallocate() }

  var outgoingCount: Int { tail &- head }
  var outgoingBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: outgoing + head, count: tail &- head) }

  mutating func consume(_ count: Int) {
    precondition(count >= 0 && count <= tail &- head, "consumed more than is there")
    head &+= count
    if head == tail {
      head = 0
      tail = 0
    }
  }

  /// Appends `count` bytes to the outgoing buffer and returns their address. The caller must fill the appended bytes at
  /// once. The result is nil if the buffer has no room for them.
  mutating func append(_ count: Int) -> UnsafeMutableRawPointer? {
    guard let room = room(count) else { return nil }
    tail &+= count
    return room
  }

  /// The address that `append(count)` would return. Nothing is appended; nil if the bytes do not fit.
  mutating func room(_ count: Int) -> UnsafeMutableRawPointer? {
    if tail &+ count > Self.capacity {
      if tail &- head &+ count > Self.capacity { return nil }
      outgoing.copyMemory(from: outgoing + head, byteCount: tail &- head)
      tail &-= head
      head = 0
    }
    return outgoing + tail
  }

  /// mbedtls_ssl_send_t: appends all bytes or none, so that the outgoing buffer never contains a part of a record.
  static func send(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let buffers = context!.assumingMemoryBound(to: StreamBuffers.self)
    guard let room = buffers.pointee.append(count) else { return MBEDTLS_ERR_SSL_WANT_WRITE }
    room.copyMemory(from: bytes!, byteCount: count)
    return Int32(count)
  }

  /// mbedtls_ssl_recv_t: returns the next received bytes.
  static func receive(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafeMutablePointer<UInt8>?, _ room: Int) -> Int32
  {
    let buffers = context!.assumingMemoryBound(to: StreamBuffers.self)
    let incoming = buffers.pointee.incoming
    let count = min(room, incoming.count)
    if count == 0 { return MBEDTLS_ERR_SSL_WANT_READ }
    UnsafeMutableRawPointer(bytes!).copyMemory(from: incoming.baseAddress!, byteCount: count)
    buffers.pointee.incoming = UnsafeRawBufferPointer(rebasing: incoming[count...])
    return Int32(count)
  }
}

/// The result of checking the certificate that the peer presented.
enum PeerKey {
  /// The peer has presented no certificate yet.
  case unknown
  case accepted
  /// The key is not ECDSA P-256 in the required encoding.
  case notP256
  /// The chain is larger than `ChainRules` allows.
  case chainTooLarge
  /// The usage of the certificate does not allow the peer's role in the handshake.
  case wrongUsage

  /// The X.509 verify callback of a stream. Names, dates and authorities are not checked, because a node is identified
  /// by its key. The key must be ECDSA P-256 in the encoding from which node ids are derived, because one key could
  /// otherwise have two ids. The usage of the certificate is checked here, because this check applies in both TLS
  /// versions and under every trust policy.
  static func verify(
    _ context: UnsafeMutableRawPointer?, _ certificate: UnsafeMutablePointer<mbedtls_x509_crt>?, _ depth: Int32,
    _ flags: UnsafeMutablePointer<UInt32>?
  ) -> Int32 {
    flags!.pointee = 0
    if depth > 0 { return 0 }
    let buffers = context!.assumingMemoryBound(to: StreamBuffers.self)
    buffers.pointee.peerKey = PeerKey(
      of: certificate!, peerRole: buffers.pointee.peerRole, &buffers.pointee.peerPoint)
    flags!.pointee = buffers.pointee.peerKey.flags
    return 0
  }

  /// Checks a chain, the peer's own certificate first, and stores the point of the peer's key in `point`.
  init(
    of chain: UnsafeMutablePointer<mbedtls_x509_crt>, peerRole: ChainRules.Role, _ point: inout InlineArray<65, UInt8>
  ) {
    self = PeerKey(chain.pointee.pk_raw, &point)
    guard self == .accepted else { return }
    if !ChainRules.isWithinBounds(chain) {
      self = .chainTooLarge
    } else if !ChainRules.allows(chain, peerRole) {
      self = .wrongUsage
    }
  }

  /// The flags that a verify callback sets for this result.
  var flags: UInt32 {
    switch self {
    case .unknown, .accepted: 0
    case .notP256: UInt32(MBEDTLS_X509_BADCERT_BAD_KEY)
    case .chainTooLarge: UInt32(MBEDTLS_X509_BADCERT_OTHER)
    case .wrongUsage: UInt32(MBEDTLS_X509_BADCERT_EXT_KEY_USAGE)
    }
  }

  /// Checks a SubjectPublicKeyInfo in DER, and stores the point of its key in `point`.
  private init(_ raw: mbedtls_x509_buf, _ point: inout InlineArray<65, UInt8>) {
    let prefix = NodeCertificate.spkiPrefix
    let spki = UnsafeBufferPointer(start: raw.p, count: raw.len)
    guard spki.count == NodeCertificate.spkiBytes, spki.starts(with: prefix), spki[prefix.count] == 4 else {
      self = .notP256
      return
    }
    point = InlineArray { spki[prefix.count + $0] }
    self = .accepted
  }
}
