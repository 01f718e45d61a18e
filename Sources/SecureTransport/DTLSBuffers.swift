import CMbedTLS
import Identity
import Primitives
import Seal

/// The state of mbedTLS's callbacks for one end-to-end session. The state consists of the received datagram, the
/// datagrams to send, the time of the owner's last call, and the peer's key. The address of this state is fixed,
/// because mbedTLS passes it to the callbacks as their context.
struct DTLSBuffers {
  /// The maximum number of queued handshake datagrams: enough for a chain of ten certificates in fragments, twice.
  static let outgoingMax = 24

  let peer: NodeID
  /// The peer's role in the handshake.
  let peerRole: ChainRules.Role
  var incoming = UnsafeRawBufferPointer(start: nil, count: 0)
  var outgoing: [[UInt8]] = []
  /// The destination of the record that is being sealed; nil when no record is being sealed.
  var record: UnsafeMutableRawBufferPointer?
  var recordByteCount = 0
  var now: Instant
  /// The intermediate delay of mbedTLS's timer; `.never` when cancelled.
  var intermediate = Instant.never
  /// The final delay of mbedTLS's timer, when a flight is due again; `.never` when cancelled.
  var final = Instant.never
  var peerKey = PeerKey.unknown
  /// Whether the key that the other end presented is the key of `peer`.
  var isPeer = false

  init(peer: NodeID, peerRole: ChainRules.Role, now: Instant) {
    self.peer = peer
    self.peerRole = peerRole
    self.now = now
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<DTLSBuffers> {
    context!.assumingMemoryBound(to: DTLSBuffers.self)
  }

  /// mbedtls_ssl_send_t: each call sends one datagram. If the queue is full, the datagram is dropped, as DTLS permits.
  static func send(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let buffers = of(context)
    let datagram = UnsafeRawBufferPointer(start: bytes, count: count)
    if let record = buffers.pointee.record {
      guard count <= record.count else { return MBEDTLS_ERR_SSL_BUFFER_TOO_SMALL }
      record.copyMemory(from: datagram)
      buffers.pointee.recordByteCount = count
    } else if buffers.pointee.outgoing.count < outgoingMax && count <= SealLimits.handshakeBytesMax {
      buffers.pointee.outgoing.append([UInt8](datagram))
    }
    return Int32(count)
  }

  /// mbedtls_ssl_recv_t: returns the complete received datagram once. mbedTLS's buffer is longer than the payload of
  /// any frame.
  static func receive(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafeMutablePointer<UInt8>?, _ room: Int) -> Int32
  {
    let buffers = of(context)
    let datagram = buffers.pointee.incoming
    buffers.pointee.incoming = UnsafeRawBufferPointer(start: nil, count: 0)
    guard !datagram.isEmpty, datagram.count <= room else { return MBEDTLS_ERR_SSL_WANT_READ }
    UnsafeMutableRawPointer(bytes!).copyMemory(from: datagram.baseAddress!, byteCount: datagram.count)
    return Int32(datagram.count)
  }

  /// mbedtls_ssl_set_timer_t: starts the timer with two delays in milliseconds. A final delay of 0 cancels the timer.
  static func setTimer(_ context: UnsafeMutableRawPointer?, _ intermediate: UInt32, _ final: UInt32) {
    let buffers = of(context)
    let now = buffers.pointee.now
    buffers.pointee.intermediate = final == 0 ? .never : now + .milliseconds(UInt64(intermediate))
    buffers.pointee.final = final == 0 ? .never : now + .milliseconds(UInt64(final))
  }

  /// mbedtls_ssl_get_timer_t: −1 if the timer is cancelled, otherwise the number of delays that have passed.
  static func timer(_ context: UnsafeMutableRawPointer?) -> Int32 {
    let buffers = of(context)
    if buffers.pointee.final == .never { return -1 }
    if buffers.pointee.final <= buffers.pointee.now { return 2 }
    return buffers.pointee.intermediate <= buffers.pointee.now ? 1 : 0
  }

  /// The X.509 verify callback. The presented key must be the key of the session's peer, and the chain must obey
  /// `ChainRules`. Names, dates and authorities are not checked here. The application gets the chain and may check
  /// these fields.
  static func verify(
    _ context: UnsafeMutableRawPointer?, _ certificate: UnsafeMutablePointer<mbedtls_x509_crt>?, _ depth: Int32,
    _ flags: UnsafeMutablePointer<UInt32>?
  ) -> Int32 {
    flags!.pointee = 0
    if depth > 0 { return 0 }
    let buffers = of(context)
    var point = InlineArray<65, UInt8>(repeating: 0)
    buffers.pointee.peerKey = PeerKey(of: certificate!, peerRole: buffers.pointee.peerRole, &point)
    flags!.pointee = buffers.pointee.peerKey.flags
    if buffers.pointee.peerKey == .accepted {
      buffers.pointee.isPeer = withUnsafeBytes(of: point) { NodeIdentity.nodeID(ofPoint: $0) } == buffers.pointee.peer
    }
    if !buffers.pointee.isPeer { flags!.pointee |= UInt32(MBEDTLS_X509_BADCERT_BAD_KEY) }
    return 0
  }
}
