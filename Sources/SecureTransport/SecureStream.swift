import CMbedTLS
import Frame
import Identity
import Link
import Primitives

/// Mutual TLS over any byte stream, with sealed frames outside TLS. A sealed frame is encrypted end to end, so TLS
/// would add no protection. Sans-IO: `receive` handles received bytes; `outgoing` and `consume` provide the bytes to
/// send.
///
/// After every call the caller must check `state` and send `outgoing`, even after the stream has ended, because
/// `outgoing` may contain an alert. The caller also limits the time of a handshake. A server can refuse a client whose
/// stream is already established: in TLS 1.3 the client finishes before the server has checked the client's
/// certificate.
///
/// The versions are TLS 1.2 and 1.3, with ECDHE-ECDSA and AES-GCM or ChaCha20-Poly1305. There is no renegotiation,
/// ticket or session cache. The peer proves possession of a P-256 key, whose hash is the peer's id (`peer`). A
/// `PeerJudge` admits or refuses the key and its chain before data flows. Without a judge every key is admitted.
///
/// The TLS 1.3 of mbedTLS cannot update its keys. So a link should be reconnected after carrying 2²⁴ full records (256
/// GB) under AES-GCM in one direction (RFC 8446, section 5.5).
public final class SecureStream {
  /// The role of a stream in the handshake.
  public enum Role: Sendable {
    /// The node that dialled, which sends first.
    case client
    case server
  }

  /// The state of a stream.
  public enum State: Equatable, Sendable {
    /// The handshake is in progress, and no data flows yet.
    case handshaking
    /// The peer is authenticated, and data flows.
    case established
    /// The stream has ended. Further input to a closed stream is ignored.
    case closed(SecureStreamEnd)
  }

  /// Input from the peer, in order. The bytes are valid only during the call.
  public enum Input {
    /// The handshake has succeeded, and `peer` is known. This input is delivered once, before all other input.
    case established
    case plaintext(UnsafeRawBufferPointer)
    /// A sealed frame with an authentic header (48 bytes). The payload (1…16640 bytes) is still encrypted end to end.
    case sealed(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer)
  }

  /// The number of bytes in `outgoing` from which no further record or frame is queued. The last record or frame may
  /// exceed this number.
  public static let outgoingLimitMax = EncryptAhead.bytesMax

  public private(set) var state = State.handshaking
  /// The peer's id; `NodeID.none` until the peer has proved its key.
  public private(set) var peer = NodeID.none
  /// The peer's public key as an uncompressed point; zeros until the peer has presented it.
  public var peerPoint: InlineArray<65, UInt8> { buffers.pointee.peerPoint }
  /// Whether sealed frames may pass outside TLS, after `allowBypass`.
  public var isBypassAllowed: Bool { bypass != nil }

  let tls: UnsafeMutablePointer<mbedtls_ssl_context>
  private let buffers: UnsafeMutablePointer<StreamBuffers>
  private let configuration: TLSConfiguration
  private let judge: (any PeerJudge)?
  private var demultiplexer = StreamDemultiplexer()
  private var bypass: Bypass?

  /// Creates the stream. A client's first message is in `outgoing` at once. Throws if there is no memory.
  public init(
    _ credentials: TLSCredentials, role: Role, versionMax: TLSVersion = .tls13, judge: (any PeerJudge)? = nil
  ) throws(SecureStreamError) {
    configuration = try credentials.configuration(role, versionMax)
    self.judge = judge
    buffers = .allocate(capacity: 1)
    buffers.initialize(to: StreamBuffers(peerRole: role == .client ? .server : .client))
    tls = .allocate(capacity: 1)
    mbedtls_ssl_init(tls)
    let code = mbedtls_ssl_setup(tls, configuration.settings)
    if code != 0 { throw .library(code: code) }
    mbedtls_ssl_set_bio(
      tls, buffers, { StreamBuffers.send($0, $1, $2) }, { StreamBuffers.receive($0, $1, $2) }, nil)
    mbedtls_ssl_set_verify(tls, { PeerKey.verify($0, $1, $2, $3) }, buffers)
    // Disables the check of host names. Without this call mbedTLS refuses to verify a server.
    if mbedtls_ssl_set_hostname(tls, nil) != 0 { throw .library(code: MBEDTLS_ERR_SSL_ALLOC_FAILED) }
    if role == .client {
      cmbedtls_begin_checks()
      let code = mbedtls_ssl_handshake(tls)
      cmbedtls_end_checks()
      if code != MBEDTLS_ERR_SSL_WANT_READ { throw .library(code: code) }
    }
  }

  deinit {
    mbedtls_ssl_free(tls)
    tls.deallocate()
    buffers.pointee.free()
    buffers.deallocate()
  }

  /// Handles received bytes, which may be split anywhere, and delivers their content. `deliver` is allowed to call
  /// every method of this stream except `receive`. `deliver` must not call `receive` of another stream with the same
  /// credentials and role, because these streams share a buffer.
  public func receive(_ raw: UnsafeRawBufferPointer, _ deliver: (Input) -> Void) {
    var rest = raw
    while isOpen, !rest.isEmpty {
      let piece: StreamDemultiplexer.Piece
      do throws(StreamDemultiplexer.Refusal) {
        guard let next = try demultiplexer.next(in: rest) else { return }
        piece = next
      } catch {
        return fail(.notAUnit(error), alert: MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE)
      }
      switch piece {
      case .records(let count):
        readRecords(UnsafeRawBufferPointer(rebasing: rest[..<count]), deliver)
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      case .sealed(let count, let begins, let ends):
        readSealed(UnsafeRawBufferPointer(rebasing: rest[..<count]), begins: begins, ends: ends, deliver)
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
    }
  }

  /// Handles the end of the byte stream. Without a preceding close_notify the stream was truncated.
  public func receiveEnd() {
    if isOpen { state = .closed(.truncated) }
  }

  /// Encrypts and queues as much as `outgoingLimitMax` allows, in records of up to 16 KiB. Each call creates at least
  /// one record, so the caller should pass small frames together. Returns the number of bytes accepted; 0 before the
  /// stream is established.
  public func write(_ plaintext: UnsafeRawBufferPointer) -> Int {
    var taken = 0
    while state == .established, taken < plaintext.count, buffers.pointee.outgoingCount < Self.outgoingLimitMax {
      let rest = plaintext.baseAddress! + taken
      let code = mbedtls_ssl_write(tls, rest.assumingMemoryBound(to: UInt8.self), plaintext.count - taken)
      if code <= 0 {
        fail(end(code))
        break
      }
      taken += Int(code)
    }
    return taken
  }

  /// Queues one sealed frame outside the TLS records. `header` is the 48-byte frame header with the length of `payload`
  /// (1…16640 bytes). The call requires `allowBypass`. `writeSealed` returns false and queues nothing while `outgoing`
  /// has `outgoingLimitMax` bytes or more, and after the stream has ended.
  public func writeSealed(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    guard state == .established, let bypass, buffers.pointee.outgoingCount < Self.outgoingLimitMax else {
      return false
    }
    precondition(header.count == StreamDemultiplexer.sealedHeaderBytes)
    precondition(header[0] == StreamDemultiplexer.sealedMarker)
    precondition(FrameHeader.frameByteCount(of: header.bytes) == header.count + payload.count && !payload.isEmpty)
    precondition(payload.count <= StreamDemultiplexer.sealedPayloadBytesMax)
    let count = StreamDemultiplexer.sealedOverheadBytes + payload.count
    guard let room = buffers.pointee.append(count) else { return false }
    bypass.write(header: header, payload: payload, to: room)
    return true
  }

  /// A buffer of `byteCount` bytes for complete frames. `queueSealedInPlace` can queue the first of these frames
  /// without a copy. Nil while `writeSealed` would queue nothing. The buffer is valid until the next call on this
  /// stream.
  public func roomForFrames(_ byteCount: Int) -> UnsafeMutableRawBufferPointer? {
    guard state == .established, bypass != nil, buffers.pointee.outgoingCount < Self.outgoingLimitMax,
      let room = buffers.pointee.room(Bypass.gap + byteCount)
    else { return nil }
    return UnsafeMutableRawBufferPointer(start: room + Bypass.gap, count: byteCount)
  }

  /// Queues the sealed frame of `byteCount` bytes at the start of the buffer that `roomForFrames` returned. Bytes after
  /// that frame are lost. Returns false if the frame cannot be queued.
  public func queueSealedInPlace(_ byteCount: Int) -> Bool {
    guard let bypass, let room = buffers.pointee.append(Bypass.gap + byteCount) else { return false }
    bypass.writeHead(room + Bypass.gap, to: room)
    return true
  }

  /// Allows sealed frames in both directions. The caller calls this when both nodes have announced the capability. The
  /// call has no effect unless the stream is established.
  public func allowBypass() {
    guard state == .established, bypass == nil else { return }
    do throws(SecureStreamError) {
      bypass = try Bypass.exported(from: tls, role: configuration.role)
    } catch {
      switch error {
      case .library(let code): fail(.library(code: code), alert: MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR)
      }
    }
  }

  /// The bytes to send, valid until the next call on this stream.
  public var outgoing: UnsafeRawBufferPointer { buffers.pointee.outgoingBytes }

  /// Removes the first `count` bytes of `outgoing`, because they were sent.
  public func consume(_ count: Int) { buffers.pointee.consume(count) }

  /// Closes the stream with close_notify, which is then in `outgoing`.
  public func close() {
    guard isOpen else { return }
    state = .closed(.closedHere)
    _ = mbedtls_ssl_close_notify(tls)
  }

  /// The peer's certificates, valid while the stream exists; empty before it is established.
  public var peerChain: PeerChain { PeerChain(mbedtls_ssl_get_peer_cert(tls)) }

  /// Repeats the decision of the `PeerJudge`, because a key may have been revoked, or the time may have become known. A
  /// peer that is now refused gets an alert, and the stream ends.
  public func reconsider() {
    guard state == .established, let refusal = judge?.refusal(of: peerChain, peer) else { return }
    fail(.refused(refusal), alert: Int32(refusal.alert))
  }

  /// The TLS version and cipher suite, for example "TLSv1.3 TLS1-3-AES-128-GCM-SHA256"; empty until established.
  public var protocolText: String {
    guard state == .established, let version = mbedtls_ssl_get_version(tls) else { return "" }
    guard let suite = mbedtls_ssl_get_ciphersuite(tls) else { return "" }
    return String(cString: version) + " " + String(cString: suite)
  }

  // MARK: - Reading

  private var isOpen: Bool {
    switch state {
    case .handshaking, .established: true
    case .closed: false
    }
  }

  private func readRecords(_ records: UnsafeRawBufferPointer, _ deliver: (Input) -> Void) {
    buffers.pointee.incoming = records
    defer { buffers.pointee.incoming = UnsafeRawBufferPointer(start: nil, count: 0) }
    if state == .handshaking {
      cmbedtls_begin_checks()
      let code = mbedtls_ssl_handshake(tls)
      cmbedtls_end_checks()
      if code == MBEDTLS_ERR_SSL_WANT_READ { return setCertificateMode() }
      // In TLS 1.2 mbedTLS itself sends no alert in this case.
      if code == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE {
        return fail(.noPeerCertificate, alert: MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE)
      }
      if code != 0 { return fail(end(code)) }
      switch buffers.pointee.peerKey {
      case .accepted: break
      case .unknown: return fail(.noPeerCertificate, alert: MBEDTLS_SSL_ALERT_MSG_CERT_REQUIRED)
      case .notP256: return fail(.peerKeyNotP256, alert: MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT)
      case .chainTooLarge: return fail(.refused(.chainTooLong), alert: Int32(PeerRefusal.chainTooLong.alert))
      case .wrongUsage: return fail(.refused(.wrongUsage), alert: Int32(PeerRefusal.wrongUsage.alert))
      }
      peer = withUnsafeBytes(of: buffers.pointee.peerPoint) { NodeIdentity.nodeID(ofPoint: $0) }
      if let refusal = judge?.refusal(of: peerChain, peer) {
        return fail(.refused(refusal), alert: Int32(refusal.alert))
      }
      state = .established
      cmbedtls_release_buffers(tls)
      deliver(.established)
    }
    precondition(!configuration.isDelivering, "receive called from within deliver")
    configuration.isDelivering = true
    defer { configuration.isDelivering = false }
    while isOpen, readPlaintext(deliver) {}
  }

  /// Decrypts until the input is consumed or the buffer is full, and delivers the plaintext. Returns whether more
  /// plaintext may follow.
  private func readPlaintext(_ deliver: (Input) -> Void) -> Bool {
    let buffer = configuration.plaintext
    var filled = 0
    var code = Int32(0)
    while filled < buffer.count {
      let room = (buffer.baseAddress! + filled).assumingMemoryBound(to: UInt8.self)
      code = mbedtls_ssl_read(tls, room, buffer.count - filled)
      if code > 0 {
        filled += Int(code)
      } else if code != MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET {
        break
      }
    }
    if filled > 0 { deliver(.plaintext(UnsafeRawBufferPointer(start: buffer.baseAddress!, count: filled))) }
    if code > 0 || !isOpen { return true }
    if code == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY { _ = mbedtls_ssl_close_notify(tls) }
    if code != MBEDTLS_ERR_SSL_WANT_READ { fail(end(code)) }
    return false
  }

  /// Postpones the check of a client's certificate in TLS 1.3 until after the handshake. The server of mbedTLS would
  /// otherwise refuse the certificate earlier, with an alert under the handshake keys. The client already uses the
  /// application keys at that time (RFC 8446, section 4.4.4), and could not read the alert.
  private func setCertificateMode() {
    guard configuration.role == .server else { return }
    let isTLS13 = mbedtls_ssl_get_version_number(tls) == MBEDTLS_SSL_VERSION_TLS1_3
    mbedtls_ssl_set_hs_authmode(tls, isTLS13 ? MBEDTLS_SSL_VERIFY_OPTIONAL : MBEDTLS_SSL_VERIFY_REQUIRED)
  }

  private func readSealed(
    _ bytes: UnsafeRawBufferPointer, begins: Bool, ends: Bool, _ deliver: (Input) -> Void
  ) {
    guard state == .established, let bypass else {
      return fail(.sealedTooEarly, alert: MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE)
    }
    switch bypass.read(bytes, begins: begins, ends: ends) {
    case .incomplete: return
    case .frame(let header, let payload):
      deliver(.sealed(header: header, payload: payload))
      bypass.frameTaken()
    case .replayed: fail(.sealedReplayed, alert: MBEDTLS_SSL_ALERT_MSG_ILLEGAL_PARAMETER)
    case .forged: fail(.sealedForged, alert: MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC)
    }
  }

  // MARK: - Closing

  private func end(_ code: Int32) -> SecureStreamEnd {
    let alert = code == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE ? cmbedtls_alert_description(tls) : 0
    return SecureStreamEnd(code: code, peerKey: buffers.pointee.peerKey, alert: alert)
  }

  /// Closes the stream. mbedTLS sends the alert for a failure that it detects; `alert` is sent for a failure that this
  /// class detects.
  private func fail(_ end: SecureStreamEnd, alert: Int32? = nil) {
    guard isOpen else { return }
    if let alert { _ = mbedtls_ssl_send_alert_message(tls, UInt8(MBEDTLS_SSL_ALERT_LEVEL_FATAL), UInt8(alert)) }
    state = .closed(end)
  }
}
