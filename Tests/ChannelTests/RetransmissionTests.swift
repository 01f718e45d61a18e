import Channel
import Primitives
import Testing

private let start = at(1_000)
private let wide: UInt64 = 60_000

@Suite struct RetransmissionTests {
  /// Channel a of `pair`, which has sent `count` segments of 968 bytes, none of which is acknowledged.
  private func flying(_ count: Int) throws -> Channel {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: count * 968 - 5), now: start)
    #expect(a.frames(start).count == count)
    return a
  }

  private func acknowledge(
    _ a: Channel, _ cumulative: UInt64, _ ranges: [ByteRange] = [], echo: UInt32 = 1_000_000, now: Instant
  ) throws {
    try a.receiveAcknowledgement(
      acknowledgementFromB(cumulative, window: wide, ranges, echo: echo).span.bytes, now: now)
  }

  @Test func `the retransmission timeout is one second at first and backs off to three`() throws {
    let a = try flying(1)
    var last = start
    var gaps: [UInt64] = []
    for _ in 0..<6 {
      let now = a.nextDeadline
      a.handleTimeout(now: now)
      #expect(a.nextDeadline > now)
      let frames = a.frames(now)
      #expect(frames.count == 1)
      #expect(try segmentOf(try #require(frames.first)).header.offset == 0)
      gaps.append((now - last).milliseconds)
      last = now
    }
    #expect(gaps == [1_000, 2_000, 3_000, 3_000, 3_000, 3_000])
  }

  @Test func `the timeout follows the measured round trip and the acknowledgement delay`() throws {
    let a = try flying(2)
    try acknowledge(a, 968, now: at(1_400))
    // The timeout is SRTT + 4 × RTTVAR (RFC 6298, section 2): 400 + 4 × 200 ms, plus the acknowledgement delay of 25
    // ms.
    #expect(a.nextDeadline == at(1_400 + 1_225))
    let (quick, _) = pair()
    _ = try quick.send([UInt8](repeating: 0, count: 1_500), now: start)
    _ = quick.frames(start)
    try acknowledge(quick, 968, now: at(1_001))
    #expect(quick.nextDeadline == at(1_001 + 51))
  }

  @Test func `the timeout exceeds a constant round trip by half`() throws {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 60_000), now: start)
    _ = a.frames(start)
    for index: UInt64 in 1...60 {
      let now = at(1_000 + 300 * index)
      try acknowledge(a, 968 * index, echo: UInt32(1_000 + 300 * (index - 1)) * 1_000, now: now)
      _ = a.frames(now)
      if index == 60 { #expect(a.nextDeadline == now + .milliseconds(300 + 150 + 25)) }
    }
  }

  @Test func `data that waits for a timeout is retransmitted at once when the path changes`() throws {
    let a = try flying(4)
    a.pathChanged(now: at(1_500))
    #expect(a.frames(at(1_500)).isEmpty, "nothing is known to be lost")
    for now in [at(2_000), at(4_000)] {
      a.handleTimeout(now: now)
      #expect(a.frames(now).count == 1)
    }
    #expect(a.nextDeadline == at(7_000))
    a.pathChanged(now: at(4_100))
    #expect(try a.frames(at(4_100)).map { try segmentOf($0).header.offset } == [0])
    #expect(a.nextDeadline == at(6_100))
  }

  @Test func `round trips are measured on a route of any age`() throws {
    for minutes: UInt64 in [30, 40, 70, 80, 150, 10_000] {
      let (a, _) = pair()
      let sent = at(1_000 + minutes * 60_000)
      _ = try a.send([1], now: sent)
      #expect(a.frames(sent).count == 1)
      let timestamp = UInt32(truncatingIfNeeded: sent.nanoseconds / 1_000)
      try acknowledge(a, 6, echo: timestamp, now: sent + .milliseconds(20))
      #expect(a.statistics(.interactive).roundTripMicroseconds == 20_000, "after \(minutes) minutes")
    }
  }

  @Test func `an implausible timestamp echo is ignored`() throws {
    let a = try flying(2)
    try acknowledge(a, 968, echo: 0x8000_0000, now: at(1_010))
    #expect(a.statistics(.interactive).roundTripMicroseconds == 0)
  }

  @Test func `a gap is retransmitted as soon as three segments above it have arrived`() throws {
    let a = try flying(8)
    try acknowledge(a, 968, now: at(1_050))
    try acknowledge(a, 968, [ByteRange(start: 1_936, end: 2_904)], now: at(1_050))
    try acknowledge(a, 968, [ByteRange(start: 1_936, end: 3_872)], now: at(1_051))
    #expect(a.frames(at(1_051)).isEmpty)
    try acknowledge(a, 968, [ByteRange(start: 1_936, end: 4_840)], now: at(1_052))
    let frames = a.frames(at(1_052))
    #expect(frames.count == 1)
    #expect(try segmentOf(try #require(frames.first)).header.offset == 968)
    #expect(try segmentOf(try #require(frames.first)).count == 968)
    #expect(a.statistics(.interactive).fastRecoveries == 1)
  }

  @Test func `a short segment is retransmitted after three acknowledgements of later segments`() throws {
    let (a, _) = pair()
    for index: UInt8 in 0..<5 {
      _ = try a.send([index], now: start)
      #expect(a.frames(start).count == 1)
    }
    for arrived: UInt64 in 2...4 {
      #expect(a.frames(at(1_050)).isEmpty)
      try acknowledge(a, 0, [ByteRange(start: 6, end: 6 * arrived)], now: at(1_050))
    }
    let frames = a.frames(at(1_050))
    #expect(try frames.map { try segmentOf($0).header.offset } == [0])
    #expect(try segmentOf(try #require(frames.first)).count == 6)
  }

  @Test func `a duplicate acknowledgement yields no round-trip time`() throws {
    let a = try flying(4)
    try acknowledge(a, 968, now: at(1_050))
    try acknowledge(a, 968, now: at(9_000))
    #expect(a.statistics(.interactive).roundTripMicroseconds == 50_000)
  }

  @Test func `a lost retransmission is detected when later data is acknowledged`() throws {
    let a = try flying(8)
    try acknowledge(a, 0, [ByteRange(start: 968, end: 4_840)], now: at(1_050))
    #expect(a.frames(at(1_050)).count == 1)
    // The acknowledged bytes were sent before the retransmission. So the acknowledgement of these bytes does not prove
    // that the retransmission was lost.
    try acknowledge(a, 0, [ByteRange(start: 968, end: 5_808)], now: at(1_060))
    #expect(a.frames(at(1_060)).isEmpty)
    _ = try a.send([UInt8](repeating: 0, count: 963), now: at(1_080))
    #expect(a.frames(at(1_080)).count == 1)
    let later = [ByteRange(start: 968, end: 5_808), ByteRange(start: 7_744, end: 8_712)]
    try acknowledge(a, 0, later, echo: 1_080_000, now: at(1_130))
    let offsets = try a.frames(at(1_130)).map { try segmentOf($0).header.offset }
    #expect(offsets.first == 0)
    #expect(a.statistics(.interactive).timeouts == 0)
  }

  @Test func `lost segments are retransmitted, and the window is not reduced`() throws {
    let a = try flying(10)
    let before = a.statistics(.interactive).windowBytes
    try acknowledge(a, 0, [ByteRange(start: 2_904, end: 9_680)], now: at(1_050))
    #expect(a.statistics(.interactive).windowBytes >= before)
    #expect(a.statistics(.interactive).fastRecoveries == 1)
    #expect(try a.frames(at(1_050)).prefix(3).map { try segmentOf($0).header.offset } == [0, 968, 1_936])
  }

  @Test func `a spurious timeout is undone`() throws {
    let a = try flying(8)
    let before = a.statistics(.interactive).windowBytes
    a.handleTimeout(now: at(2_000))
    #expect(a.frames(at(2_000)).count == 1)
    #expect(a.statistics(.interactive).windowBytes == 968)
    try acknowledge(a, 1_936, echo: 1_000_000, now: at(2_010))
    #expect(a.statistics(.interactive).spuriousTimeouts == 1)
    #expect(a.statistics(.interactive).windowBytes >= before)
    #expect(a.frames(at(2_010)).isEmpty)
  }

  @Test func `after a real timeout all unacknowledged data is retransmitted, slowly at first`() throws {
    let a = try flying(4)
    a.handleTimeout(now: at(2_000))
    #expect(try a.frames(at(2_000)).map { try segmentOf($0).header.offset } == [0])
    try acknowledge(a, 968, echo: 2_000_000, now: at(2_050))
    #expect(try a.frames(at(2_050)).map { try segmentOf($0).header.offset } == [968, 1_936])
  }

  @Test func `data that has arrived is not retransmitted after a timeout`() throws {
    let a = try flying(4)
    try acknowledge(a, 0, [ByteRange(start: 968, end: 1_936)], now: at(1_010))
    a.handleTimeout(now: a.nextDeadline)
    #expect(try a.frames(at(2_000)).map { try segmentOf($0).header.offset } == [0])
    try acknowledge(a, 1_936, echo: 2_000_000, now: at(2_050))
    #expect(try a.frames(at(2_050)).map { try segmentOf($0).header.offset } == [1_936, 2_904])
  }

  @Test func `an acknowledgement of unsent data is refused and changes nothing`() throws {
    let a = try flying(1)
    #expect(
      refusal { () throws(ChannelError) in
        try a.receiveAcknowledgement(acknowledgementFromB(969, window: wide).span.bytes, now: start)
      } == .acknowledgesUnsent)
    #expect(
      refusal { () throws(ChannelError) in
        try a.receiveAcknowledgement(
          acknowledgementFromB(0, window: wide, [ByteRange(start: 100, end: 969)]).span.bytes, now: start)
      } == .acknowledgesUnsent)
    #expect(a.completions().isEmpty)
    #expect(a.statistics(.interactive).bytesInFlight == 968)
  }

  @Test func `a window limit never decreases`() throws {
    let a = try flying(1)
    try a.receiveAcknowledgement(acknowledgementFromB(968, window: 50_000).span.bytes, now: start)
    try a.receiveAcknowledgement(acknowledgementFromB(968, window: 968).span.bytes, now: start)
    _ = try a.send([1], now: start)
    #expect(a.frames(start).count == 1)
  }
}

@Suite struct RouteTests {
  @Test func `without a route nothing is sent and only the delivery deadline runs`() throws {
    let a = Channel(localEpoch: 0xa1, remoteEpoch: 0xb1)
    _ = try a.send([1], now: start)
    #expect(a.frames(start).isEmpty)
    #expect(a.nextDeadline == at(61_000))
    a.routeChanged(pathMTU: 500, now: at(3_000))
    #expect(a.frames(at(3_000)).count == 1)
    a.routeLost()
    #expect(a.nextDeadline == at(61_000))
    a.handleTimeout(now: at(30_000))
    #expect(a.frames(at(30_000)).isEmpty)
    #expect(a.statistics(.interactive).timeouts == 0)
  }

  @Test func `a new route resends unacknowledged data at once, in segments that fit it`() throws {
    let (a, b) = pair(pathMTU: 1_000)
    let message = (0..<900).map { UInt8(truncatingIfNeeded: $0) }
    _ = try a.send(message, now: start)
    #expect(a.frames(start).count == 1)
    a.routeChanged(pathMTU: 400, now: at(1_010))
    let frames = a.frames(at(1_010))
    #expect(frames.map(\.bytes.count) == [400, 400, 905 - 2 * 368 + 32])
    for frame in frames { try b.receive(frame, now: at(1_020)) }
    #expect(b.nextMessage(.interactive)?.bytes == message)
  }

  @Test func `a new route resets the round-trip measurement`() throws {
    let (a, b) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 5_000), now: start)
    for frame in a.frames(start) { try b.receive(frame, now: at(1_100)) }
    for frame in b.frames(at(1_100)) { try a.receive(frame, now: at(1_200)) }
    #expect(a.statistics(.interactive).roundTripMicroseconds > 0)
    a.routeChanged(pathMTU: 1_000, now: at(1_300))
    #expect(a.statistics(.interactive).roundTripMicroseconds == 0)
  }

  @Test func `data that the old route still delivers is not retransmitted`() throws {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 60_000), now: start)
    let out = a.frames(start).count
    #expect(out == 10)
    a.routeChanged(pathMTU: 500, now: at(1_010))
    #expect(a.frames(at(1_010), max: 1).count == 1)
    try a.receiveAcknowledgement(
      acknowledgementFromB(9 * 968, window: wide, echo: 1_000_000).span.bytes, now: at(1_011))
    let next = try segmentOf(try #require(a.frames(at(1_011)).first)).header.offset
    #expect(next == 9_680)
  }

  @Test func `an MTU out of range is clamped`() throws {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 60_000), now: start)
    a.routeChanged(pathMTU: 1, now: start)
    #expect(try #require(a.frames(start, max: 1).first).bytes.count == ChannelLimits.pathMTUMin)
    a.routeChanged(pathMTU: .max, now: start)
    _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start)
    #expect(a.frames(start).map(\.bytes.count).max() == ChannelLimits.pathMTUMax)
  }
}
