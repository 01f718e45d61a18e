import CMbedTLS
import CSystem
import FileSupport
import Identity
import Primitives
import Testing
import Trust

@testable import SecureTransport

/// Attacks on the TLS endpoint. An unmodified OpenSSL performs the attacks that OpenSSL supports. docs/security.md
/// lists the attacks.
@Suite(.serialized) struct AttackTests {
  let scratch = Scratch()

  /// Accepts a peer only if its certificate chain leads to the fleet's root.
  private final class FleetJudge: PeerJudge {
    let anchors = TrustAnchors()
    let time = TrustTime(kept: 0, wall: 1_811_808_000, isSynchronised: true)  // 2027-06-01
    func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? {
      guard case .refused(let refusal) = chain.evaluate(anchors, time) else { return nil }
      return refusal
    }
  }

  /// The reason for which our server ends the stream of a client with this certificate. The server trusts the fleet's
  /// root. Nil if the server accepts the client.
  private func outcome(_ leaf: String, chain: [String], version: String = "-tls1_3", lists: [String] = []) throws
    -> SecureStreamEnd?
  {
    let judge = FleetJudge()
    for file in ["root.pem"] + lists { #expect(judge.anchors.add(try #require(scratch.bytes(file)))) }
    var text: [UInt8] = []
    for file in chain { text += try #require(scratch.bytes(file)) }
    try scratch.write("above.pem", text)
    let listener = try Listener()
    let openssl = try OpenSSL(
      scratch,
      "s_client -connect 127.0.0.1:\(listener.port) \(version) -cert \(leaf).pem -key \(leaf).pem.key"
        + (chain.isEmpty ? "" : " -cert_chain above.pem"))
    defer { openssl.stop() }
    let end = try End(try makeIdentity(), .server, judge: judge)
    Driver(end, try listener.accept()).run { end.stream.state != .handshaking }
    #expect((end.isEstablishedFirst == nil) == (end.stream.state != .established), "nothing flows before the decision")
    guard case .closed(let reason) = end.stream.state else { return nil }
    return reason
  }

  @Test(arguments: ["-tls1_2", "-tls1_3"])
  func `certificates are accepted or refused by their chain, dates and usage`(version: String) throws {
    try scratch.makeFleet()
    try scratch.certificate("expired", by: "intermediate", extensions: Scratch.node, to: "20270501000000Z")
    try scratch.certificate("early", by: "intermediate", extensions: Scratch.node, from: "20270701000000Z")
    try scratch.certificate("lone", extensions: Scratch.node)
    let above = ["intermediate.pem"]
    #expect(try outcome("node", chain: above, version: version) == nil)
    #expect(try outcome("expired", chain: above, version: version) == .refused(.expired))
    #expect(try outcome("early", chain: above, version: version) == .refused(.notYetValid))
    #expect(try outcome("lone", chain: [], version: version) == .refused(.unknownIssuer))
    try scratch.revocationList("list", by: "intermediate", revoking: ["node"])
    #expect(try outcome("node", chain: above, version: version, lists: ["list.crl"]) == .refused(.revoked))
  }

  @Test func `the certificate of an authority is refused as that of a node`() throws {
    try scratch.makeFleet()
    try scratch.certificate(
      "issuing", by: "intermediate",
      extensions: "basicConstraints=CA:TRUE\nkeyUsage=digitalSignature,keyCertSign")
    #expect(try outcome("issuing", chain: ["intermediate.pem"]) == .refused(.authorityAsLeaf))
  }

  @Test(arguments: [8, 20])
  func `a chain has at most eight intermediates`(depth: Int) throws {
    try scratch.certificate("root", extensions: Scratch.authority)
    var chain: [String] = []
    var issuer = "root"
    for index in 0..<depth {
      try scratch.certificate("ca\(index)", by: issuer, extensions: Scratch.authority)
      issuer = "ca\(index)"
      chain.insert("\(issuer).pem", at: 0)
    }
    try scratch.certificate("deep", by: issuer, extensions: Scratch.node)
    let end = try outcome("deep", chain: chain)
    if depth == 8 {
      #expect(end == nil)
    } else {
      #expect(end == .library(code: MBEDTLS_ERR_X509_FATAL_ERROR))
    }
  }

  @Test func `a 64 KB alternative name is refused`() throws {
    try scratch.certificate("root", extensions: Scratch.authority)
    let names = (0..<1100).map { "DNS:" + String(repeating: "a", count: 50) + "\($0 + 1000).example" }
    try scratch.certificate("fat", by: "root", extensions: "subjectAltName=" + names.joined(","))
    let size = try #require(scratch.bytes("fat.pem")).count
    #expect(size > 90_000)
    #expect(try outcome("fat", chain: []) != nil)
  }

  /// The limit on names is necessary, because mbedTLS stores a list element for each name as long as the link exists.
  @Test(arguments: [200, 300])
  func `a certificate with too many names is refused`(count: Int) throws {
    try scratch.certificate("root", extensions: Scratch.authority)
    let names = (0..<count).map { "DNS:\($0)" }
    try scratch.certificate("many", by: "root", extensions: Scratch.node + "\nsubjectAltName=" + names.joined(","))
    #expect((try outcome("many", chain: []) == nil) == (count == 200))
  }

  @Test(arguments: [
    "-tls1_2 -cipher ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0", "-tls1_2 -cipher aNULL:@SECLEVEL=0",
    "-tls1_2 -cipher eNULL:@SECLEVEL=0",
  ])
  func `cipher suites without encryption or authentication are refused`(options: String) throws {
    let listener = try Listener()
    let openssl = try OpenSSL(scratch, "s_client -connect 127.0.0.1:\(listener.port) \(options)")
    defer { openssl.stop() }
    let end = try End(try makeIdentity(), .server)
    Driver(end, try listener.accept()).run { end.stream.state != .handshaking }
    #expect(end.stream.state == .closed(.library(code: MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE)))
  }

  @Test(arguments: ["-tls1_2", "-tls1_3"])
  func `a session is never resumed`(version: String) throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
    let identity = try makeIdentity()
    var outputs: [String] = []
    for option in ["-sess_out session", "-sess_in session"] {
      if option == "-sess_in session" && scratch.bytes("session") == nil {
        // In TLS 1.3 a session can be resumed only by a ticket. The server sends no ticket, so there is nothing to
        // replay.
        #expect(version == "-tls1_3")
        continue
      }
      let listener = try Listener()
      let openssl = try OpenSSL(
        scratch, "s_client -connect 127.0.0.1:\(listener.port) -cert peer.crt -key peer.key \(version) \(option)")
      let end = try End(identity, .server)
      let driver = Driver(end, try listener.accept())
      driver.run { end.stream.state != .handshaking }
      #expect(end.stream.state == .established)
      driver.run { openssl.output.contains("New, TLSv1") || openssl.output.contains("Reused, TLSv1") }
      openssl.type("Q\n")
      driver.run { false }
      outputs.append(openssl.output)
      openssl.stop()
    }
    for output in outputs { #expect(output.contains("New, TLSv1") && !output.contains("Reused")) }
  }

  @Test func `renegotiation is refused`() throws {
    try scratch.openssl("ecparam -name prime256v1 -genkey -noout -out peer.key")
    try scratch.openssl("req -new -x509 -key peer.key -out peer.crt -subj /CN=anybody -days 1")
    let listener = try Listener()
    let openssl = try OpenSSL(
      scratch, "s_client -connect 127.0.0.1:\(listener.port) -cert peer.crt -key peer.key -tls1_2")
    defer { openssl.stop() }
    let end = try End(try makeIdentity(), .server)
    let driver = Driver(end, try listener.accept())
    driver.run { end.stream.state == .established && openssl.output.contains("---") }
    for _ in 0..<3 {
      openssl.type("R\n")
      driver.run { openssl.output.contains("no renegotiation") }
    }
    #expect(openssl.prints("no renegotiation"))
    #expect(openssl.output.contains("RENEGOTIATING"))
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `this node's certificate without its key proves nothing`(version: TLSVersion) throws {
    let ours = try makeIdentity(), thief = try makeIdentity()
    let stolen = try TLSConfiguration(key: thief.key, certificate: ours.certificate, role: .client, versionMax: version)
    let server = try End(ours, .server)
    let client = try RawClient(stolen)
    for _ in 0..<6 {
      client.step()
      server.receive(client.take())
      client.give(server.take())
    }
    #expect(server.isEstablishedFirst == nil)
    guard case .closed(.library) = server.stream.state else {
      Issue.record("still \(server.stream.state)")
      return
    }
  }

  @Test func `a connection to this node's own key is recognised`() throws {
    let identity = try makeIdentity()
    let client = try End(identity, .client), server = try End(identity, .server)
    for _ in 0..<6 {
      server.receive(client.take())
      client.receive(server.take())
    }
    // The TLS layer accepts the node's own key. `Node` refuses the link: see NodeTests,
    // aLinkToThisNodeItselfIsNotOpened.
    #expect(server.stream.peer == identity.id)
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `plaintext after the handshake ends the stream`(version: TLSVersion) throws {
    let pair = try Pair.established(version)
    pair.server.receive(Array("GET / HTTP/1.1\r\n".utf8))
    #expect(pair.server.stream.state == .closed(.notAUnit(.unknownFirstByte)))
    #expect(pair.server.plaintext.isEmpty)
    let other = try Pair.established(version)
    // An unencrypted record of the type “application data”.
    other.server.receive([23, 3, 3, 0, 5] + Array("hello".utf8))
    guard case .closed(.library) = other.server.stream.state else {
      Issue.record("still \(other.server.stream.state)")
      return
    }
    #expect(other.server.plaintext.isEmpty)
  }

  @Test func `a peer that is revoked later loses its stream with an alert`() throws {
    final class Judge: PeerJudge {
      var isRevoked = false
      func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? { isRevoked ? .denied : nil }
    }
    let judge = Judge()
    let client = try End(try makeIdentity(), .client), server = try End(try makeIdentity(), .server, judge: judge)
    for _ in 0..<6 {
      server.receive(client.take())
      client.receive(server.take())
    }
    server.stream.reconsider()
    #expect(server.stream.state == .established)
    judge.isRevoked = true
    server.stream.reconsider()
    #expect(server.stream.state == .closed(.refused(.denied)))
    client.receive(server.take())
    #expect(client.stream.state == .closed(.alert(44)))
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `no stream is established before the decision on the peer`(version: TLSVersion) throws {
    final class Never: PeerJudge {
      func refusal(of chain: PeerChain, _ peer: NodeID) -> PeerRefusal? { .unknownIssuer }
    }
    for refusing in [SecureStream.Role.client, .server] {
      let client = try End(try makeIdentity(), .client, version, judge: refusing == .client ? Never() : nil)
      let server = try End(try makeIdentity(), .server, version, judge: refusing == .server ? Never() : nil)
      for _ in 0..<6 {
        server.receive(client.take())
        client.receive(server.take())
      }
      let (judging, judged) = refusing == .client ? (client, server) : (server, client)
      #expect(judging.stream.state == .closed(.refused(.unknownIssuer)))
      #expect(judging.isEstablishedFirst == nil)
      #expect(judged.stream.state == .closed(.alert(48)))
    }
  }
}

/// A TLS client whose parameters each test chooses.
private final class RawClient {
  private let configuration: TLSConfiguration
  private let tls = UnsafeMutablePointer<mbedtls_ssl_context>.allocate(capacity: 1)
  private let buffers = UnsafeMutablePointer<StreamBuffers>.allocate(capacity: 1)
  private var incoming: [UInt8] = []

  init(_ configuration: TLSConfiguration) throws {
    self.configuration = configuration
    buffers.initialize(to: StreamBuffers(peerRole: .server))
    mbedtls_ssl_init(tls)
    try #require(mbedtls_ssl_setup(tls, configuration.settings) == 0)
    mbedtls_ssl_set_bio(
      tls, buffers, { StreamBuffers.send($0, $1, $2) }, { StreamBuffers.receive($0, $1, $2) }, nil)
    mbedtls_ssl_set_verify(tls, { PeerKey.verify($0, $1, $2, $3) }, buffers)
    _ = mbedtls_ssl_set_hostname(tls, nil)
  }

  deinit {
    mbedtls_ssl_free(tls)
    tls.deallocate()
    buffers.pointee.free()
    buffers.deallocate()
  }

  func step() {
    let bytes = incoming
    incoming = []
    bytes.withUnsafeBytes { raw in
      buffers.pointee.incoming = raw
      _ = mbedtls_ssl_handshake(tls)
      buffers.pointee.incoming = UnsafeRawBufferPointer(start: nil, count: 0)
    }
  }
  func give(_ bytes: [UInt8]) { incoming += bytes }
  func take() -> [UInt8] {
    defer { buffers.pointee.consume(buffers.pointee.outgoingCount) }
    return Array(buffers.pointee.outgoingBytes)
  }
}

extension [String] {
  fileprivate func joined(_ separator: String) -> String {
    var text = ""
    for part in self { text += text.isEmpty ? part : separator + part }
    return text
  }
}
