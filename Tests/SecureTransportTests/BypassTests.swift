import FileSupport
import Testing

@testable import SecureTransport

struct BypassTests {
  /// Computed with Python's cryptography package: AESGCM(key).encrypt(4 zero bytes + sequence, b"", header).
  @Test func headerTagsMatchAnIndependentImplementation() throws {
    let key = (0..<16).map(UInt8.init)
    let header: [UInt8] =
      [0x81, 32, 1, 16, 3, 0, 0, 5] + (0x10..<0x30).map(UInt8.init) + [1, 2, 3, 4, 0, 0, 0, 7]
    let authenticator = try key.withUnsafeBytes { try HeaderAuthenticator(key: $0) }
    for (sequence, expected) in [
      (1, "2a368e8ae3d6da93c8a59bd199be7aa7"), (0x0102_0304_0506_0708, "b5ffb7ffc50ebb3b482ccc2261936d13"),
    ] as [(UInt64, String)] {
      var tag = [UInt8](repeating: 0, count: 16)
      #expect(authenticator.seal(header, sequence: sequence, tag: &tag))
      #expect(hex(tag) == expected)
      #expect(authenticator.check(header, sequence: sequence, tag: tag))
      #expect(!authenticator.check(header, sequence: sequence + 1, tag: tag))
    }
  }

  @Test(arguments: [TLSVersion.tls12, .tls13])
  func sealedFramesAndTLSShareTheStreamWhateverTheSplits(version: TLSVersion) throws {
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

  @Test func theWireHoldsHeaderSequenceTagPayload() throws {
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

  @Test func aFrameThatIsQueuedWhereItStandsIsTheSameOnTheWire() throws {
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
      // But for the sequence and the tag over it.
      #expect(inPlace.count == copied.count && inPlace[..<48] == copied[..<48] && inPlace[72...] == copied[72...])
      pair.server.receive(copied + inPlace)
      #expect(pair.server.frames == [sealed, sealed])
    }
  }

  @Test func thereIsNoRoomForFramesWhereNoneMayBeSealedOrTheQueueIsFull() throws {
    let pair = try Pair.established()
    #expect(pair.client.stream.roomForFrames(100) == nil)
    pair.client.stream.allowBypass()
    while pair.client.writeSealed(frame(payload: 16_640)) {}
    #expect(pair.client.stream.roomForFrames(100) == nil)
  }

  @Test func theTwoDirectionsHaveDifferentKeys() throws {
    let pair = try Pair.established(bypass: true)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    #expect(pair.server.writeSealed(frame(payload: 5)))
    let wire = pair.client.take()
    #expect(wire[56..<72] != pair.server.take()[56..<72])
    // A frame thrown back at its sender is not authentic there.
    pair.client.receive(wire)
    #expect(pair.client.stream.state == .closed(.sealedForged))
  }

  @Test func everyBitOfHeaderSequenceAndTagCounts() throws {
    // Bits of the first byte and of the length change the framing instead, and are refused before or wait for more.
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

  @Test func aReplayedFrameEndsTheStream() throws {
    let pair = try Pair.established(bypass: true)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    let wire = pair.client.take()
    pair.server.receive(wire)
    #expect(pair.server.frames.count == 1)
    pair.server.receive(wire)
    #expect(pair.server.frames.count == 1)
    #expect(pair.server.stream.state == .closed(.sealedReplayed))
  }

  @Test func framesOutOfOrderAreReplays() throws {
    let pair = try Pair.established(bypass: true)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    let first = pair.client.take()
    #expect(pair.client.writeSealed(frame(payload: 6)))
    pair.server.receive(pair.client.take())
    pair.server.receive(first)
    #expect(pair.server.frames.count == 1)
    #expect(pair.server.stream.state == .closed(.sealedReplayed))
  }

  @Test func aSealedFrameBeforeTheHandshakeIsRefused() throws {
    let server = try End(try makeIdentity(), .server)
    server.receive(frame(payload: 5) + [UInt8](repeating: 0, count: 24))
    #expect(server.stream.state == .closed(.sealedTooEarly))
    #expect(server.frames.isEmpty)
  }

  @Test func aSealedFrameBeforeItIsAllowedIsRefused() throws {
    let pair = try Pair.established()
    #expect(!pair.client.writeSealed(frame(payload: 5)))
    pair.client.stream.allowBypass()
    #expect(pair.client.stream.isBypassAllowed)
    #expect(pair.client.writeSealed(frame(payload: 5)))
    pair.server.receive(pair.client.take())
    #expect(pair.server.stream.state == .closed(.sealedTooEarly))
    #expect(pair.server.frames.isEmpty)
  }

  @Test func allowingTheBypassBeforeEstablishmentDoesNothing() throws {
    let pair = try Pair()
    pair.client.stream.allowBypass()
    #expect(!pair.client.stream.isBypassAllowed)
    #expect(pair.client.stream.state == .handshaking)
  }

  @Test func theBypassMayBeAllowedWhileInputIsDelivered() throws {
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
