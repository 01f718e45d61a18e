import CMbedTLS
import CSystem
import FileSupport
import Identity
import Primitives
import Seal
import Testing

@testable import SecureTransport

/// End-to-end sessions whose peer is an unmodified OpenSSL, over UDP on the loopback interface. The tests show that a
/// peer may use any implementation of DTLS 1.2.
@Suite(.serialized) struct DatagramOpenSSLTests {
  let scratch = Scratch()

  /// Creates an OpenSSL key whose node id is below or above that of `identity`. Returns the new id.
  private func makePeer(below: Bool, _ identity: NodeIdentity) throws -> NodeID {
    while true {
      try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
      try scratch.openssl("pkey -in peer.key -pubout -outform DER -out spki.der")
      let spki = try #require(scratch.bytes("spki.der"))
      let id = spki.suffix(65).withUnsafeBytes { NodeIdentity.nodeID(ofPoint: $0) }
      if (id < identity.id) != below { continue }
      try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
      return id
    }
  }

  @Test func `an OpenSSL client proves its key and exchanges encrypted messages`() throws {
    let identity = try makeIdentity()
    let peer = try makePeer(below: true, identity)
    let socket = try Datagrams()
    let openssl = try OpenSSL(
      scratch, "s_client -dtls1_2 -connect 127.0.0.1:\(socket.port) -cert peer.crt -key peer.key")
    defer { openssl.stop() }
    let sessions = try DTLSSessions(identity)
    let name = SessionName(local: identity.id, peer: peer, localEpoch: 1, peerEpoch: 1)
    let now = Instant.zero + .seconds(1000)
    var session: (any PeerSession)?
    var heard: [UInt8] = []
    var verifyRequests = 0
    try socket.run(until: { heard.last == 0x0A }) { datagram in
      if let session, session.state == .established {
        if let text = open(session, datagram) {
          heard += text
        } else {
          session.receiveHandshake(datagram.span.bytes, now: now)
        }
        return [session]
      }
      var reply = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
      switch reply.withUnsafeMutableBytes({ sessions.answerHello(datagram.span.bytes, name, reply: $0, now: now) }) {
      case .reply(let count):
        verifyRequests += 1
        socket.send([UInt8](reply[..<count]))
      case .accepted: session = sessions.acceptSession(datagram.span.bytes, name, now: now)
      case .refused: session?.receiveHandshake(datagram.span.bytes, now: now)
      }
      if session?.state == .established { openssl.type("hello from openssl\n") }
      return [session]
    }
    // The server requests a cookie once. On a slow machine openssl repeats its hello, and the server requests the
    // cookie again.
    #expect(heard == Array("hello from openssl\n".utf8) && verifyRequests >= 1)
    #expect(session?.peerChain.first == scratch.certificate("peer.crt"))
    socket.send(seal(try #require(session), Array("hello from the box\n".utf8)))
    socket.wait { openssl.output.contains("hello from the box") }
    #expect(openssl.output.contains("hello from the box"))
    #expect(openssl.output.contains("DTLSv1.2"))
    // The client's hello lists AES-GCM before ChaCha20-Poly1305.
    #expect(openssl.output.contains(cmbedtls_is_better_at_aes() ? "AES256-GCM" : "POLY1305"))
  }

  @Test func `an OpenSSL server proves its key and exchanges encrypted messages`() throws {
    let identity = try makeIdentity()
    let peer = try makePeer(below: false, identity)
    let socket = try Datagrams()
    let openssl = try OpenSSL(
      scratch, "s_server -dtls1_2 -listen -accept 127.0.0.1:0 -Verify 1 -cert peer.crt -key peer.key")
    defer { openssl.stop() }
    socket.connect(try openssl.port())
    let now = Instant.zero + .seconds(1000)
    let sessions = try DTLSSessions(identity)
    let session = try #require(
      sessions.beginSession(SessionName(local: identity.id, peer: peer, localEpoch: 1, peerEpoch: 1), now: now))
    socket.flush(session)
    var heard: [UInt8] = []
    var hasTyped = false
    try socket.run(until: { heard.last == 0x0A }) { datagram in
      if session.state == .established, let text = open(session, datagram) { heard += text }
      session.receiveHandshake(datagram.span.bytes, now: now)
      if session.state == .established, !hasTyped {
        hasTyped = true
        openssl.type("hello from openssl\n")
      }
      return [session]
    }
    #expect(heard == Array("hello from openssl\n".utf8))
    socket.send(seal(session, Array("hello from the box\n".utf8)))
    socket.wait { openssl.output.contains("hello from the box") }
    #expect(openssl.output.contains("hello from the box"))
  }
}

extension Scratch {
  /// Converts a PEM certificate to DER.
  fileprivate func certificate(_ name: String) -> [UInt8]? {
    guard (try? openssl("x509 -in \(name) -outform DER -out \(name).der")) != nil else { return nil }
    return bytes(name + ".der")
  }
}

private func seal(_ session: any PeerSession, _ plaintext: [UInt8]) -> [UInt8] {
  var record = [UInt8](repeating: 0, count: plaintext.count + SealLimits.overheadBytesMax)
  let count = record.withUnsafeMutableBytes { record in plaintext.withUnsafeBytes { session.seal($0, into: record) } }
  return [UInt8](record[..<count])
}

private func open(_ session: any PeerSession, _ record: [UInt8]) -> [UInt8]? {
  var plaintext = [UInt8](repeating: 0, count: max(record.count, 1))
  let count = plaintext.withUnsafeMutableBytes { session.open(record.span.bytes, into: $0) }
  return count.map { [UInt8](plaintext[..<$0]) }
}

/// A UDP socket on the loopback interface that sends to the sender of the last received datagram.
private final class Datagrams {
  let descriptor: Int32
  let port: UInt16
  private var other: sockaddr_in

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var address = loopback(port: 0)
    var length = socklen_t(16)
    let descriptor = descriptor
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), 16)
          | getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &length)
      }
    }
    try #require(code == 0)
    port = UInt16(bigEndian: address.sin_port)
    other = address
  }
  deinit { close(descriptor) }

  func connect(_ port: UInt16) { other = loopback(port: port) }

  func send(_ datagram: [UInt8]) {
    let descriptor = descriptor
    withUnsafePointer(to: &other) {
      _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, datagram, datagram.count, 0, __CONST_SOCKADDR_ARG(__sockaddr__: $0), 16)
      }
    }
  }

  func flush(_ session: any PeerSession) {
    var buffer = [UInt8](repeating: 0, count: SealLimits.handshakeBytesMax)
    while true {
      let count = buffer.withUnsafeMutableBytes { session.nextHandshake(into: $0) }
      if count == 0 { return }
      send([UInt8](buffer[..<count]))
    }
  }

  /// Passes received datagrams to `receive`, and sends the datagrams of the sessions in the result of `receive`. Runs
  /// until `isDone`, but at most for `waitSecondsMax`.
  func run(until isDone: () -> Bool, _ receive: ([UInt8]) -> [(any PeerSession)?]) throws {
    let end = monotonicSeconds() + waitSecondsMax
    var buffer = [UInt8](repeating: 0, count: 20_000)
    while !isDone() && monotonicSeconds() < end {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&wait, 1, 20) == 1 else { continue }
      var length = socklen_t(16)
      let descriptor = descriptor
      let count = withUnsafeMutablePointer(to: &other) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          recvfrom(descriptor, &buffer, buffer.count, 0, __SOCKADDR_ARG(__sockaddr__: $0), &length)
        }
      }
      if count <= 0 { return }
      for session in receive([UInt8](buffer[..<count])) { if let session { flush(session) } }
    }
  }

  func wait(until isDone: () -> Bool) {
    for _ in 0..<100 * waitSecondsMax where !isDone() { usleep(10_000) }
  }
}
