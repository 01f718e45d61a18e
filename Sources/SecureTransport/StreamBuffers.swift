import CMbedTLS
import Identity
import Link
import Seal

/// What a secured stream or session takes at most of mbedTLS, in bytes: measured on x86_64 with mbedTLS 3.6 as Debian builds
/// it (`SecureMemoryTests` does so again), since a library's memory cannot be derived.
public enum SecureMemory {
  /// An established context: two record buffers of 16.7 KiB, keys, and the peer's chain of up to 16 KiB, parsed.
  static let contextBytesMax = 98_304
  /// What a handshake needs beside its context.
  static let handshakeBytesMax = 24_576

  /// An established link's stream.
  public static let stream = contextBytesMax + StreamBuffers.capacity + Bypass.partialBytesMax
  /// A stream whose handshake is under way: of its buffer for outgoing bytes only one flight is used.
  public static let streamHandshake = contextBytesMax + handshakeBytesMax + StreamBuffers.recordBytesMax
  /// An established session between two nodes.
  public static let session = contextBytesMax
  /// A session whose handshake is under way, with the datagrams that wait for a way.
  public static let sessionHandshake =
    contextBytesMax + handshakeBytesMax + DTLSBuffers.outgoingMax * SealLimits.handshakeBytesMax
}

/// What mbedTLS's callbacks of one stream work on: the bytes that came in, the bytes to go out, the peer's key.
/// It lives at a fixed address, which is the callbacks' context.
struct StreamBuffers {
  /// Room behind the largest permitted backlog for one more record or sealed frame, and for alerts.
  static let capacity = 2 * SecureStream.outgoingLimitMax
  /// mbedTLS's own: 16 KiB, header, and what the suites of both versions add.
  static let recordBytesMax = 16384 + 5 + 256

  /// What is left of the records being read now; mbedTLS itself keeps the beginning of an unfinished one.
  var incoming = UnsafeRawBufferPointer(start: nil, count: 0)
  var peerKey = PeerKey.unknown
  var peerPoint = InlineArray<65, UInt8>(repeating: 0)

  private let outgoing = UnsafeMutableRawPointer.allocate(byteCount: StreamBuffers.capacity, alignment: 16)
  private var head = 0
  private var tail = 0

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

  /// Room for `count` bytes at the end, to be filled at once; nil when the queue is full.
  mutating func append(_ count: Int) -> UnsafeMutableRawPointer? {
    guard let room = room(count) else { return nil }
    tail &+= count
    return room
  }

  /// The room that `append` of as many bytes would give; nothing is queued.
  mutating func room(_ count: Int) -> UnsafeMutableRawPointer? {
    if tail &+ count > Self.capacity {
      if tail &- head &+ count > Self.capacity { return nil }
      outgoing.copyMemory(from: outgoing + head, byteCount: tail &- head)
      tail &-= head
      head = 0
    }
    return outgoing + tail
  }

  /// mbedtls_ssl_send_t: all or nothing, so that a record is never in the queue by half.
  static func send(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let buffers = context!.assumingMemoryBound(to: StreamBuffers.self)
    guard let room = buffers.pointee.append(count) else { return MBEDTLS_ERR_SSL_WANT_WRITE }
    room.copyMemory(from: bytes!, byteCount: count)
    return Int32(count)
  }

  /// mbedtls_ssl_recv_t
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

/// What the peer's certificate showed.
enum PeerKey {
  case unknown
  case accepted
  case notP256
  /// `PeerChainSize` refuses the chain that it came with.
  case chainTooLarge

  /// The x509 verify callback of a stream. Names, dates and authorities are not looked at: a node is its key.
  /// The key must be ECDSA P-256 in the one encoding that node ids are made from; otherwise one key could have two ids.
  static func verify(
    _ context: UnsafeMutableRawPointer?, _ certificate: UnsafeMutablePointer<mbedtls_x509_crt>?, _ depth: Int32,
    _ flags: UnsafeMutablePointer<UInt32>?
  ) -> Int32 {
    flags!.pointee = 0
    if depth > 0 { return 0 }
    let buffers = context!.assumingMemoryBound(to: StreamBuffers.self)
    buffers.pointee.peerKey = PeerKey(certificate!.pointee.pk_raw, &buffers.pointee.peerPoint)
    if buffers.pointee.peerKey == .notP256 { flags!.pointee |= UInt32(MBEDTLS_X509_BADCERT_BAD_KEY) }
    if !PeerChainSize.isWithinBounds(certificate!) {
      buffers.pointee.peerKey = .chainTooLarge
      flags!.pointee |= UInt32(MBEDTLS_X509_BADCERT_OTHER)
    }
    return 0
  }

  /// Judges a SubjectPublicKeyInfo and gives its point.
  init(_ raw: mbedtls_x509_buf, _ point: inout InlineArray<65, UInt8>) {
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
