import FileSupport
import Testing

@testable import SecureTransport

struct SecureStreamTests {
  @Test(arguments: [TLSVersion.tls12, .tls13], [1, 2, 3] as [UInt64])
  func `both ends prove their keys at any split of the stream`(version: TLSVersion, seed: UInt64) throws {
    let client = try makeIdentity(), server = try makeIdentity()
    let ends = (try End(client, .client, version), try End(server, .server, version))
    var random = SplitMix(state: seed)
    while !ends.0.stream.outgoing.isEmpty || !ends.1.stream.outgoing.isEmpty {
      ends.1.receive(ends.0.take(Int.random(in: 1...9, using: &random)))
      ends.0.receive(ends.1.take(Int.random(in: 1...9, using: &random)))
    }
    #expect(ends.0.stream.state == .established)
    #expect(ends.1.stream.state == .established)
    #expect(ends.0.stream.peer == server.id)
    #expect(ends.1.stream.peer == client.id)
    #expect(array(ends.0.stream.peerPoint) == array(server.publicPoint))
    #expect(ends.0.stream.protocolText.hasPrefix(version == .tls12 ? "TLSv1.2 TLS-ECDHE-ECDSA-" : "TLSv1.3 "))
    #expect(ends.0.isEstablishedFirst == true)
    #expect(ends.1.isEstablishedFirst == true)
  }

  @Test func `a new node and a node with TLS 1.2 only connect`() throws {
    for versions in [(TLSVersion.tls12, TLSVersion.tls13), (.tls13, .tls12)] {
      let client = try End(try makeIdentity(), .client, versions.0)
      let server = try End(try makeIdentity(), .server, versions.1)
      for _ in 0..<10 {
        server.receive(client.take())
        client.receive(server.take())
      }
      #expect(client.stream.protocolText.hasPrefix("TLSv1.2"))
      #expect(server.stream.state == .established)
    }
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `a megabyte is transferred unaltered in both directions`(version: TLSVersion) throws {
    let pair = try Pair.established(version)
    let data = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    var sent = (0, 0)
    while sent.0 < data.count || sent.1 < data.count {
      sent.0 += pair.client.write(Array(data[sent.0...].prefix(70_000)))
      sent.1 += pair.server.write(Array(data[sent.1...].prefix(333)))
      pair.pump(splitMax: 65536)
    }
    #expect(pair.server.plaintext == data)
    #expect(pair.client.plaintext == data)
  }

  @Test func `nothing is accepted for sending before the stream is established`() throws {
    let pair = try Pair()
    #expect(pair.client.write([1]) == 0)
    #expect(pair.server.write([1]) == 0)
  }

  @Test func `the outgoing queue is limited`() throws {
    let pair = try Pair.established(bypass: true)
    let data = [UInt8](repeating: 1, count: 300_000)
    let taken = pair.client.write(data)
    #expect(taken > 60_000 && taken < 66_000)
    #expect(pair.client.stream.outgoing.count >= 65536)
    #expect(pair.client.stream.outgoing.count < 65536 + 16384 + 300)
    #expect(pair.client.write(data) == 0)
    #expect(!pair.client.writeSealed(frame(payload: 10)))

    _ = pair.client.take(20_000)
    #expect(pair.client.stream.outgoing.count < 65536)
    #expect(pair.client.write(data) > 0)
    #expect(pair.client.stream.outgoing.count >= 65536)
  }

  @Test func `bytes sent with the last handshake message arrive after the establishment`() throws {
    let pair = try Pair()
    pair.server.receive(pair.client.take())
    pair.client.receive(pair.server.take())
    #expect(pair.client.write(Array("at once".utf8)) == 7)
    pair.server.receive(pair.client.take())
    #expect(pair.server.isEstablishedFirst == true)
    #expect(pair.server.plaintext == Array("at once".utf8))
  }

  @Test func `a reply may be written while input is delivered`() throws {
    let pair = try Pair.established()
    let server = pair.server
    pair.server.onInput = { [unowned server] in _ = server.write(Array("pong".utf8)) }
    #expect(pair.client.write(Array("ping".utf8)) == 4)
    pair.pump()
    #expect(pair.client.plaintext == Array("pong".utf8))
    pair.server.onInput = nil
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `an orderly close is recognised on both sides`(version: TLSVersion) throws {
    let pair = try Pair.established(version)
    #expect(pair.client.write(Array("last".utf8)) == 4)
    pair.client.stream.close()
    #expect(pair.client.stream.state == .closed(.closedHere))
    pair.pump()
    #expect(pair.server.plaintext == Array("last".utf8))
    #expect(pair.server.stream.state == .closed(.closedByPeer))
    #expect(pair.server.write([1]) == 0)
  }

  @Test func `a close while input is delivered stops the delivery`() throws {
    let pair = try Pair.established()
    let server = pair.server
    let taken = pair.client.write([UInt8](repeating: 9, count: 60_000))
    pair.server.onInput = { [unowned server] in server.stream.close() }
    pair.server.receive(pair.client.take())
    #expect(taken == 60_000)
    #expect(pair.server.plaintext.count == 32768)
    #expect(pair.server.stream.state == .closed(.closedHere))
    pair.server.onInput = nil
  }

  @Test func `an end without close notify counts as truncation`() throws {
    let pair = try Pair.established()
    pair.client.stream.receiveEnd()
    #expect(pair.client.stream.state == .closed(.truncated))
    pair.server.stream.close()
    pair.server.stream.receiveEnd()
    #expect(pair.server.stream.state == .closed(.closedHere))
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `an altered record ends the stream`(version: TLSVersion) throws {
    let pair = try Pair.established(version)
    _ = pair.client.write(Array("secret".utf8))
    var bytes = pair.client.take()
    bytes[bytes.count - 1] ^= 1
    pair.server.receive(bytes)
    #expect(pair.server.plaintext.isEmpty)
    guard case .closed(.library) = pair.server.stream.state else {
      Issue.record("still \(pair.server.stream.state)")
      return
    }
    // The server sends the alert bad_record_mac to the client.
    pair.client.receive(pair.server.take())
    #expect(pair.client.stream.state == .closed(.alert(20)))
  }

  @Test func `plaintext instead of TLS is refused`() throws {
    let server = try End(try makeIdentity(), .server)
    server.receive(Array("GET / HTTP/1.1\r\n\r\n".utf8))
    #expect(server.stream.state == .closed(.notAUnit(.unknownFirstByte)))
    #expect(server.stream.outgoing.first == 21)
    server.receive(Array("more".utf8))
    #expect(server.stream.state == .closed(.notAUnit(.unknownFirstByte)))
  }

  @Test func `invalid bytes inside a record are refused`() throws {
    let server = try End(try makeIdentity(), .server)
    server.receive([22, 3, 1, 0, 4, 9, 0, 0, 0])
    guard case .closed(.library) = server.stream.state else {
      Issue.record("still \(server.stream.state)")
      return
    }
  }

  @Test func `every end of a stream has a text`() {
    let ends: [SecureStreamEnd] = [
      .closedHere, .closedByPeer, .truncated, .noPeerCertificate, .peerKeyNotP256, .alert(42), .library(code: -0x6E80),
      .notAUnit(.unknownFirstByte), .notAUnit(.recordTooLong), .notAUnit(.sealedEmpty), .notAUnit(.sealedTooLong),
      .sealedTooEarly, .sealedReplayed, .sealedForged, .outgoingOverflow,
    ]
    #expect(Set(ends.map(\.text)).count == ends.count)
    #expect(SecureStreamEnd.alert(42).text.contains("42 (bad_certificate)"))
    #expect(SecureStreamEnd.library(code: -0x6E80).text.contains("-0x6e80"))
  }
}
