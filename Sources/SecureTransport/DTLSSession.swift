import CMbedTLS
import Identity
import Primitives
import Seal

/// An end-to-end session between two nodes over DTLS 1.2, whose datagrams are carried in frames (docs/protocol.md,
/// "Sealing").
public final class DTLSSession: PeerSession {
  public private(set) var state = SessionState.handshaking
  public private(set) var peerChain: [[UInt8]] = []
  public private(set) var progress: UInt32 = 0

  private let tls: UnsafeMutablePointer<mbedtls_ssl_context>
  private let buffers: UnsafeMutablePointer<DTLSBuffers>
  private let configuration: DTLSConfiguration
  private let isClient: Bool
  /// How often this end repeated its last flight because the other end repeated its own flight, counted since the last
  /// progress of the handshake.
  private var repeats = 0
  /// The random value of the ClientHello that began the session; empty at the client.
  private let helloRandom: [UInt8]

  /// The limit of `repeats`. The timer of the other end repeats a flight at most five times. A relay can endlessly copy
  /// the message that makes this end repeat its flight, and the flight is many times longer than that message.
  static let repeatsMax = 8
  private static let recordHeaderBytes = 13
  private static let handshakeRecord: UInt8 = 22
  private static let dataRecord: UInt8 = 23
  /// Bytes 1–4 of a record of an established session: DTLS 1.2, epoch 1.
  private static let establishedVersion: (UInt8, UInt8, UInt8, UInt8) = (0xFE, 0xFD, 0, 1)

  /// `hello` is nil at the client. At the server, `hello` is the ClientHello with the correct cookie. The result is nil
  /// if no memory is left.
  init?(_ configuration: DTLSConfiguration, _ name: SessionName, hello: RawSpan?, now: Instant) {
    self.configuration = configuration
    isClient = name.isClient
    if let hello { helloRandom = DTLSHello(hello)?.random ?? [] } else { helloRandom = [] }
    buffers = .allocate(capacity: 1)
    buffers.initialize(to: DTLSBuffers(peer: name.peer, peerRole: name.isClient ? .server : .client, now: now))
    tls = .allocate(capacity: 1)
    mbedtls_ssl_init(tls)
    if mbedtls_ssl_setup(tls, configuration.settings) != 0 { return nil }
    mbedtls_ssl_set_bio(
      tls, buffers, { DTLSBuffers.send($0, $1, $2) }, { DTLSBuffers.receive($0, $1, $2) }, nil)
    mbedtls_ssl_set_timer_cb(
      tls, buffers, { DTLSBuffers.setTimer($0, $1, $2) }, { DTLSBuffers.timer($0) })
    mbedtls_ssl_set_verify(tls, { DTLSBuffers.verify($0, $1, $2, $3) }, buffers)
    mbedtls_ssl_set_mtu(tls, UInt16(SealLimits.handshakeBytesMax))
    if isClient {
      // Disables the check of host names. Without this call mbedTLS refuses to verify a server.
      if mbedtls_ssl_set_hostname(tls, nil) != 0 { return nil }
      shakeHands()
    } else {
      var id: UInt8 = 1
      if mbedtls_ssl_set_client_transport_id(tls, &id, 1) != 0 { return nil }
      if let hello { receiveHandshake(hello, now: now) }
    }
  }

  deinit {
    mbedtls_ssl_free(tls)
    tls.deallocate()
    buffers.deinitialize(count: 1)
    buffers.deallocate()
  }

  // MARK: Handshake

  public func began(with hello: RawSpan) -> Bool {
    !helloRandom.isEmpty && DTLSHello(hello)?.random == helloRandom
  }

  public func receiveHandshake(_ datagram: RawSpan, now: Instant) {
    buffers.pointee.now = now
    datagram.withUnsafeBytes { datagram in
      switch state {
      case .handshaking:
        let before = tls.pointee.private_state
        let queued = buffers.pointee.outgoing.count
        buffers.pointee.incoming = datagram
        shakeHands()
        buffers.pointee.incoming = UnsafeRawBufferPointer(start: nil, count: 0)
        if tls.pointee.private_state != before {
          progress += 1
          repeats = 0
        } else if state == .handshaking, buffers.pointee.outgoing.count > queued {
          repeats += 1
          let added = buffers.pointee.outgoing.count - queued
          if repeats > Self.repeatsMax { buffers.pointee.outgoing.removeLast(added) }
        }
        if state == .failed(.endedByPeer) && DTLSAlert.isBusy(datagram) { state = .failed(.busy) }
      case .established: repeatLastFlight(datagram)
      case .failed: return
      }
    }
  }

  public func nextHandshake(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    if buffers.pointee.outgoing.isEmpty { return 0 }
    let datagram = buffers.pointee.outgoing.removeFirst()
    buffer.copyBytes(from: datagram)
    return datagram.count
  }

  public func abandon() {
    guard state == .handshaking else { return }
    buffers.pointee.outgoing.removeAll()
    _ = mbedtls_ssl_send_alert_message(tls, UInt8(MBEDTLS_SSL_ALERT_LEVEL_FATAL), DTLSAlert.busy)
    state = .failed(.displaced)
  }

  public var nextDeadline: Instant { state == .handshaking ? buffers.pointee.final : .never }

  public func handleTimeout(now: Instant) {
    guard nextDeadline <= now else { return }
    buffers.pointee.now = now
    shakeHands()
  }

  private func shakeHands() {
    cmbedtls_begin_checks()
    let code = mbedtls_ssl_handshake(tls)
    cmbedtls_end_checks()
    if code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE { return }
    if code == 0 && buffers.pointee.isPeer {
      peerChain = Self.chain(mbedtls_ssl_get_peer_cert(tls))
      // The limit of handshake datagrams does not apply to records, which may be as long as frames allow.
      mbedtls_ssl_set_mtu(tls, 0)
      state = .established
    } else {
      state = .failed(failure(code))
    }
  }

  private func failure(_ code: Int32) -> SessionFailure {
    switch buffers.pointee.peerKey {
    case .notP256, .chainTooLarge, .wrongUsage: return .noIdentity
    case .accepted: if !buffers.pointee.isPeer { return .wrongIdentity }
    case .unknown: break
    }
    return switch code {
    case MBEDTLS_ERR_SSL_TIMEOUT: .timedOut
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE: .noIdentity
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE, MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY: .endedByPeer
    case MBEDTLS_ERR_SSL_ALLOC_FAILED: .noMemory
    default: .broken
    }
  }

  /// Repeats this end's last flight if the other end repeats its own flight, because this end's flight was lost. Only
  /// records that are protected by the session's keys are processed. mbedTLS would treat a plaintext ClientHello as a
  /// restart of the client, and any relay can send one.
  private func repeatLastFlight(_ datagram: UnsafeRawBufferPointer) {
    var rest = datagram
    while rest.count > Self.recordHeaderBytes {
      let count = Self.recordHeaderBytes + (Int(rest[11]) << 8 | Int(rest[12]))
      guard count <= rest.count else { return }
      let record = UnsafeRawBufferPointer(rebasing: rest[..<count])
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      guard isEstablishedRecord(record, Self.handshakeRecord) else { continue }
      buffers.pointee.incoming = record
      _ = mbedtls_ssl_read(
        tls, configuration.unread.baseAddress!.assumingMemoryBound(to: UInt8.self), configuration.unread.count)
      buffers.pointee.incoming = UnsafeRawBufferPointer(start: nil, count: 0)
    }
  }

  // MARK: Records

  public func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int {
    guard state == .established, !plaintext.isEmpty, plaintext.count <= SealLimits.plaintextBytesMax else { return 0 }
    buffers.pointee.record = record
    defer { buffers.pointee.record = nil }
    let code = mbedtls_ssl_write(tls, plaintext.bindMemory(to: UInt8.self).baseAddress, plaintext.count)
    return code == Int32(plaintext.count) ? buffers.pointee.recordByteCount : 0
  }

  public func open(_ record: RawSpan, into plaintext: UnsafeMutableRawBufferPointer) -> Int? {
    guard state == .established else { return nil }
    return record.withUnsafeBytes { record in
      guard record.count > Self.recordHeaderBytes, isEstablishedRecord(record, Self.dataRecord),
        Self.recordHeaderBytes + (Int(record[11]) << 8 | Int(record[12])) == record.count
      else { return nil }
      buffers.pointee.incoming = record
      defer { buffers.pointee.incoming = UnsafeRawBufferPointer(start: nil, count: 0) }
      let code = mbedtls_ssl_read(tls, plaintext.bindMemory(to: UInt8.self).baseAddress, plaintext.count)
      return code > 0 ? Int(code) : nil
    }
  }

  private func isEstablishedRecord(_ record: UnsafeRawBufferPointer, _ type: UInt8) -> Bool {
    record[0] == type && (record[1], record[2], record[3], record[4]) == Self.establishedVersion
  }

  private static func chain(_ first: UnsafePointer<mbedtls_x509_crt>?) -> [[UInt8]] {
    var chain: [[UInt8]] = []
    var next = first
    while let certificate = next {
      chain.append([UInt8](UnsafeBufferPointer(start: certificate.pointee.raw.p, count: certificate.pointee.raw.len)))
      next = UnsafePointer(certificate.pointee.next)
    }
    return chain
  }
}

/// Creates the end-to-end sessions of a node.
public final class DTLSSessions: SessionMaker {
  private let client: DTLSConfiguration
  private let server: DTLSConfiguration
  private let cookies: HelloCookies

  /// Throws if there is no memory, or no random numbers.
  public init(_ identity: NodeIdentity) throws(SecureStreamError) {
    client = try DTLSConfiguration(key: identity.key, certificate: identity.certificate, isClient: true)
    server = try DTLSConfiguration(key: identity.key, certificate: identity.certificate, isClient: false)
    do throws(IdentityError) {
      cookies = try HelloCookies()
    } catch {
      throw .library(code: PSA_ERROR_INSUFFICIENT_ENTROPY)
    }
  }

  public func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)? {
    DTLSSession(client, name, hello: nil, now: now)
  }

  public func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer {
    guard let hello = DTLSHello(datagram) else { return .refused }
    if cookies.check(hello.cookie, name, now: now) { return .accepted }
    let request = hello.verifyRequest(cookies.make(name, now: now))
    reply.copyBytes(from: request)
    return .reply(byteCount: request.count)
  }

  public func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int {
    guard let hello = DTLSHello(datagram) else { return 0 }
    let alert = hello.busyAlert
    reply.copyBytes(from: alert)
    return alert.count
  }

  public func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)? {
    DTLSSession(server, name, hello: datagram, now: now)
  }
}
