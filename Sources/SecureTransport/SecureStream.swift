import CMbedTLS
import Frame
import Identity
import Link
import Primitives

/// Mutual TLS over any byte stream, and sealed frames beside it. Sans-IO: `receive` takes received bytes, `outgoing`
/// and `consume` give the bytes to send.
///
/// After every call check `state` and send `outgoing`, even at the end, because it may hold an alert. The driver limits
/// the time of a handshake. A client may be established and then refused by the server: in TLS 1.3 it has finished
/// before the server has checked its certificate.
///
/// TLS 1.2 and 1.3, ECDHE-ECDSA with AES-GCM or ChaCha20-Poly1305; no renegotiation, tickets or session cache. The peer
/// proves possession of a P-256 key, which is its identity (`peer`). A `PeerJudge` accepts or refuses the key and its
/// chain before data flows; without one every key is accepted. mbedTLS's TLS 1.3 cannot update its keys: a link that
/// has carried 2²⁴ full records (256 GB) under AES-GCM in one direction should be reconnected (RFC 8446, section 5.5).
public final class SecureStream {
  /// The role of a stream in the handshake.
  public enum Role: Sendable {
    /// The side that dialled; it sends first.
    case client
    case server
  }

  /// The state of a stream.
  public enum State: Equatable, Sendable {
    /// No data flows yet.
    case handshaking
    /// The peer is authenticated.
    case established
    /// Ended; further input is ignored.
    case closed(SecureStreamEnd)
  }

  /// Input from the peer, in order. The bytes are valid only during the call.
  public enum Input {
    /// Once, before all other input: `peer` is known.
    case established
    case plaintext(UnsafeRawBufferPointer)
    /// A sealed frame with an authentic header (48 bytes). The payload (1…16640 bytes) is still encrypted end to end.
    case sealed(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer)
  }

  /// From this many queued bytes on nothing more is accepted; the last record or frame may exceed it.
  public static let outgoingLimitMax = EncryptAhead.bytesMax

  public private(set) var state = State.handshaking
  /// The id of the peer; `NodeID.none` until established.
  public private(set) var peer = NodeID.none
  /// The peer's public key, uncompressed; zeros until established.
  public var peerPoint: InlineArray<65, UInt8> { buffers.pointee.peerPoint }
  /// True once `allowBypass` was called.
  public var isBypassAllowed: Bool { bypass != nil }

  let tls: UnsafeMutablePointer<mbedtls_ssl_context>
  private let buffers: UnsafeMutablePointer<StreamBuffers>
  private let configuration: TLSConfiguration
  private let judge: (any PeerJudge)?
  private var demultiplexer = StreamDemultiplexer()
  private var bypass: Bypass?

  /// A client's first message is in `outgoing` at once.
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
    // Disables the check of host names; mbedTLS otherwise refuses to verify a server.
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

  /// Takes bytes of the stream, split anywhere, and delivers their content. `deliver` may call anything on this stream
  /// except `receive`, and nothing that makes another stream of this identity and role receive.
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

  /// The byte stream has ended. After close_notify that is orderly, otherwise the stream was truncated.
  public func receiveEnd() {
    if isOpen { state = .closed(.truncated) }
  }

  /// Encrypts and queues as much as `outgoingLimitMax` allows, in records of up to 16 KiB. One call makes at least one
  /// record, so pass small frames together. Returns the number of bytes taken; 0 before the stream is established.
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

  /// Queues one sealed frame beside the TLS records. False, and nothing is queued, while `outgoing` is at
  /// `outgoingLimitMax` and after the stream has ended. `header` is the 48-byte frame header with the length of
  /// `payload` (1…16640 bytes); requires `allowBypass`.
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

  /// Room for whole frames, `byteCount` bytes, in which the first of them can be queued without a copy
  /// (`queueSealedInPlace`). Nil while `writeSealed` would queue nothing. Valid until the next call on this stream.
  public func roomForFrames(_ byteCount: Int) -> UnsafeMutableRawBufferPointer? {
    guard state == .established, bypass != nil, buffers.pointee.outgoingCount < Self.outgoingLimitMax,
      let room = buffers.pointee.room(Bypass.gap + byteCount)
    else { return nil }
    return UnsafeMutableRawBufferPointer(start: room + Bypass.gap, count: byteCount)
  }

  /// Queues the sealed frame of `byteCount` bytes at the beginning of `roomForFrames`. Bytes after it are lost. False
  /// when the stream has ended.
  public func queueSealedInPlace(_ byteCount: Int) -> Bool {
    guard let bypass, let room = buffers.pointee.append(Bypass.gap + byteCount) else { return false }
    bypass.writeHead(room + Bypass.gap, to: room)
    return true
  }

  /// From now on sealed frames may pass in both directions; call it when both sides have announced the capability. No
  /// effect unless established.
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

  /// Removes the first `count` bytes of `outgoing`: they were sent.
  public func consume(_ count: Int) { buffers.pointee.consume(count) }

  /// Closes the stream orderly: `outgoing` then holds close_notify.
  public func close() {
    guard isOpen else { return }
    state = .closed(.closedHere)
    _ = mbedtls_ssl_close_notify(tls)
  }

  /// The peer's certificates, as long as the stream exists; empty before it is established.
  public var peerChain: PeerChain { PeerChain(mbedtls_ssl_get_peer_cert(tls)) }

  /// Asks the judge again, because a key may have been revoked or the time become known. A peer that is refused now
  /// gets an alert, and the stream ends.
  public func reconsider() {
    guard state == .established, let refusal = judge?.refusal(of: peerChain, peer) else { return }
    fail(.refused(refusal), alert: Int32(refusal.alert))
  }

  /// TLS version and suite, like "TLSv1.3 TLS1-3-AES-128-GCM-SHA256".
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
      // mbedTLS sends no alert for this one (TLS 1.2).
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

  /// Decrypts until the input or the buffer is used up, and delivers the result. True while there may be more.
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

  /// In TLS 1.3 a client's certificate is checked after the handshake. mbedTLS's server would refuse one earlier, with
  /// an alert under the handshake keys; the client already uses the application keys (RFC 8446, 4.4.4) and could not
  /// read it.
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

  // MARK: - Ending

  private func end(_ code: Int32) -> SecureStreamEnd {
    let alert = code == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE ? cmbedtls_alert_description(tls) : 0
    return SecureStreamEnd(code: code, peerKey: buffers.pointee.peerKey, alert: alert)
  }

  /// For its own failures mbedTLS has sent the alert; for ours it is sent here.
  private func fail(_ end: SecureStreamEnd, alert: Int32? = nil) {
    guard isOpen else { return }
    if let alert { _ = mbedtls_ssl_send_alert_message(tls, UInt8(MBEDTLS_SSL_ALERT_LEVEL_FATAL), UInt8(alert)) }
    state = .closed(end)
  }
}
