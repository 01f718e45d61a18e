import CSystem
import FileSupport
import Testing

@testable import SecureTransport

struct BypassTests {
  /// The first tag is the test vector for 56 bytes of SipHash's reference implementation (`vectors_sip128`). All other
  /// tags were computed by OpenSSL's SIPHASH.
  @Test func `tags match those of other implementations`() {
    let key = (0..<16).map(UInt8.init)
    let header: [UInt8] =
      [0x81, 32, 1, 16, 3, 0, 0, 5] + (0x10..<0x30).map(UInt8.init) + [1, 2, 3, 4, 0, 0, 0, 7]
    let vectors: [([UInt8], String)] = [
      ((0..<56).map(UInt8.init), "1938f2cf72d54ee97e94166fa91d2a36"),
      (header + [0, 0, 0, 0, 0, 0, 0, 1], "779e717da4e04fae406d2db8b0992780"),
      (header + [1, 2, 3, 4, 5, 6, 7, 8], "965277769696d2f1996fd53154c8f8e5"),
    ]
    for (head, expected) in vectors {
      var tag = [UInt8](repeating: 0, count: HeaderAuthenticator.tagBytes)
      key.withUnsafeBytes { HeaderAuthenticator(key: $0).seal(head, tag: &tag) }
      #expect(hex(tag) == expected)
    }
  }

  @Test func `every byte of a tag is compared`() {
    let key = [UInt8](repeating: 7, count: HeaderAuthenticator.keyBytes)
    let head = [UInt8](repeating: 9, count: HeaderAuthenticator.headBytes)
    var tag = [UInt8](repeating: 0, count: HeaderAuthenticator.tagBytes)
    key.withUnsafeBytes { HeaderAuthenticator(key: $0).seal(head, tag: &tag) }
    #expect(key.withUnsafeBytes { HeaderAuthenticator(key: $0).check(head, tag: tag) })
    for index in tag.indices {
      var altered = tag
      altered[index] ^= 0x80
      #expect(!key.withUnsafeBytes { HeaderAuthenticator(key: $0).check(head, tag: altered) })
    }
  }

  /// The example in docs/protocol.md, “Worked example”, whose bytes were computed with Python's hmac and hashlib, and
  /// with OpenSSL.
  @Test func `the example of the protocol document is encoded and decoded`() throws {
    let keys = try bytes("43ec398b3b925fc6ded3b22725b4b92c366ea076789e5734c24686421790ee9a")
    let header = try bytes(
      "8125010f0200003602da26ad124273085fa15147be20a8f9b7d46c1930cf4440eb47a7ee215a5f04a84fda7300000004")
    let payload = try bytes(
      "17fefd0001000000000001002960418e3540bb876d5962caf7f53b6747ba409be8a17b031f1b0529602e007c00b32a4ccee3a2153772")
    let tags: [(SecureStream.Role, String)] = [
      (.client, "3985bf597e03d247e1444b98ca56d41e"), (.server, "7dbf00411672358ca56a0caab5f19ec2"),
    ]
    for (role, tag) in tags {
      let golden = header + [0, 0, 0, 0, 0, 0, 0, 1] + (try bytes(tag)) + payload
      let sender = keys.withUnsafeBytes { Bypass(keys: $0, role: role) }
      var wire = [UInt8](repeating: 0, count: golden.count)
      wire.withUnsafeMutableBytes { room in
        header.withUnsafeBytes { header in
          payload.withUnsafeBytes { sender.write(header: header, payload: $0, to: room.baseAddress!) }
        }
      }
      #expect(wire == golden)
      let receiver = keys.withUnsafeBytes { Bypass(keys: $0, role: role == .client ? .server : .client) }
      golden.withUnsafeBytes { golden in
        guard case .frame(let gotHeader, let gotPayload) = receiver.read(golden, begins: true, ends: true) else {
          Issue.record("not authentic")
          return
        }
        #expect(Array(gotHeader) == header && Array(gotPayload) == payload)
      }
    }
    #expect("\(Bypass.exporterLabel)" == "EXPORTER-causeway-bypass-v2")
    #expect(try paper().contains("EXPORTER-causeway-bypass-v2"))
    for line in ["keying material         \(hex(keys))", "header                  \(hex(header))"] {
      #expect(try paper().contains(line))
    }
    for (role, tag) in tags { #expect(try paper().contains("\(role) tag              \(tag)")) }
  }

  /// The text of docs/protocol.md.
  private func paper() throws -> String {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let file = try #require(fopen("/\(root)/docs/protocol.md", "r"))
    defer { fclose(file) }
    var text = [UInt8](repeating: 0, count: 262_144)
    return String(decoding: text[..<fread(&text, 1, text.count, file)], as: UTF8.self)
  }

  private func bytes(_ hex: String) throws -> [UInt8] {
    let digits = Array(hex)
    return try stride(from: 0, to: digits.count, by: 2).map {
      try #require(UInt8(String(digits[$0...$0 + 1]), radix: 16))
    }
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func `sealed frames and TLS share the stream at any split`(version: TLSVersion) throws {
    let pair = try Pair.established(version, bypass: true)
    var expected: [[UInt8]] = []
    var text: [UInt8] = []
    for count in [1, 64, 1000, 16640, 2, 5000] {
      let sealed = frame(payload: count, UInt8(truncatingIfNeeded: count))
      #expect(pair.client.writeSealed(sealed))
      #expect(pair.server.writeSealed(sealed))
      expected.append(sealed)
      #expect(pair.client.write(Array("between".utf8)) == 7)
      text += Array("between".utf8)
      pair.pump(splitMax: count == 64 ? 3 : 5000)
    }
    #expect(pair.server.frames == expected)
    #expect(pair.client.frames == expected)
    #expect(pair.server.plaintext == text)
  }

  @Test func `a sealed frame is sent as header, sequence number, tag and payload`() throws {
    let pair = try Pair.established(bypass: true)
    let sealed = frame(payload: 5)
    for sequence in 1...3 as ClosedRange<UInt8> {
      #expect(pair.client.writeSealed(sealed))
      let wire = pair.client.take()
      #expect(wire.count == 48 + 8 + 16 + 5)
      #expect(Array(wire[..<48]) == Array(sealed[..<48]))
      #expect(Array(wire[48..<56]) == [0, 0, 0, 0, 0, 0, 0, sequence])
      #expect(Array(wire[72...]) == Array(sealed[48...]))
    }
  }

  @Test func `a frame that is built in the queue has the same bytes`() throws {
    for count in [1, 16_640] {
      let pair = try Pair.established(bypass: true)
      let sealed = frame(payload: count)
      #expect(pair.client.writeSealed(sealed))
      let copied = pair.client.take()
      let room = try #require(pair.client.stream.roomForFrames(sealed.count + 100))
      #expect(room.count == sealed.count + 100)
      room.copyBytes(from: sealed)
      #expect(pair.client.stream.outgoing.isEmpty && pair.client.stream.queueSealedInPlace(sealed.count))
      let inPlace = pair.client.take()
      // A frame sealed in place and a copied frame differ only in the sequence number and in the tag over this number.
      #expect(inPlace.count == copied.count && inPlace[..<48] == copied[..<48] && inPlace[72...] == copied[72...])
      pair.server.receive(copied + inPlace)
      #expect(pair.server.frames == [sealed, sealed])
    }
  }

  @Test func `the stream has no room for sealed frames if they are not allowed or the queue is full`() throws {
    let pair = try Pair.established()
    #expect(pair.client.stream.roomForFrames(100) == nil)
    pair.client.stream.allowBypass()
    while pair.client.writeSealed(frame(payload: 16_640)) {}
    #expect(pair.client.stream.roomForFrames(100) == nil)
  }

  @Test func `the two directions have different keys`() throws {
    let pair = try Pair.established(bypass: true)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    #expect(pair.server.writeSealed(frame(payload: 5)))
    let wire = pair.client.take()
    #expect(wire[56..<72] != pair.server.take()[56..<72])
    // The client's frame is reflected to the client. Authentication fails, because each direction has its own key.
    pair.client.receive(wire)
    #expect(pair.client.stream.state == .closed(.sealedForged))
  }

  @Test func `a change of any bit of header, sequence number or tag is detected`() throws {
    // The bytes 0, 6 and 7 are left out: the type and the length. A change there alters the framing, so the frame is
    // refused earlier, or the stream waits for more bytes.
    for index in (1..<72) where index != 6 && index != 7 {
      let pair = try Pair.established(bypass: true)
      #expect(pair.client.writeSealed(frame(payload: 5)))
      var wire = pair.client.take()
      wire[index] ^= 1 << UInt8(index % 8)
      pair.server.receive(wire)
      #expect(pair.server.stream.state == .closed(.sealedForged))
      #expect(pair.server.frames.isEmpty)
      pair.client.receive(pair.server.take())
      #expect(pair.client.stream.state == .closed(.alert(20)))
    }
  }

  @Test func `a replayed frame ends the stream`() throws {
    let pair = try Pair.established(bypass: true)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    let wire = pair.client.take()
    pair.server.receive(wire)
    #expect(pair.server.frames.count == 1)
    pair.server.receive(wire)
    #expect(pair.server.frames.count == 1)
    #expect(pair.server.stream.state == .closed(.sealedReplayed))
  }

  @Test func `a frame out of order counts as a replay`() throws {
    let pair = try Pair.established(bypass: true)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    let first = pair.client.take()
    #expect(pair.client.writeSealed(frame(payload: 6)))
    pair.server.receive(pair.client.take())
    pair.server.receive(first)
    #expect(pair.server.frames.count == 1)
    #expect(pair.server.stream.state == .closed(.sealedReplayed))
  }

  @Test func `a sealed frame before the end of the handshake is refused`() throws {
    let server = try End(try makeIdentity(), .server)
    server.receive(frame(payload: 5) + [UInt8](repeating: 0, count: 24))
    #expect(server.stream.state == .closed(.sealedTooEarly))
    #expect(server.frames.isEmpty)
  }

  @Test func `a sealed frame is refused until sealed frames are allowed`() throws {
    let pair = try Pair.established()
    #expect(!pair.client.writeSealed(frame(payload: 5)))
    pair.client.stream.allowBypass()
    #expect(pair.client.stream.isBypassAllowed)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    pair.server.receive(pair.client.take())
    #expect(pair.server.stream.state == .closed(.sealedTooEarly))
    #expect(pair.server.frames.isEmpty)
  }

  @Test func `sealed frames cannot be allowed before the handshake has ended`() throws {
    let pair = try Pair()
    pair.client.stream.allowBypass()
    #expect(!pair.client.stream.isBypassAllowed)
    #expect(pair.client.stream.state == .handshaking)
  }

  @Test func `sealed frames may be allowed while input is delivered`() throws {
    let pair = try Pair.established()
    let server = pair.server
    pair.client.stream.allowBypass()
    #expect(pair.client.write([1]) == 1)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    pair.server.onInput = { [unowned server] in server.stream.allowBypass() }
    pair.pump(splitMax: 65536)
    #expect(pair.server.frames == [frame(payload: 5)])
    pair.server.onInput = nil
  }
}
