import Channel
import Primitives
import Testing

private let start = at(1_000)

@Suite struct AcknowledgingTests {
  @Test func `a single segment is acknowledged after 25 ms with the echo of its timestamp`() throws {
    let (_, b) = pair()
    try b.receiveSegment(segmentFromA(0, [0, 0]).span.bytes, now: start)
    #expect(b.frames(start).isEmpty)
    #expect(b.nextDeadline == at(1_025))
    b.handleTimeout(now: at(1_025))
    let frames = b.frames(at(1_025))
    let value = try acknowledgementOf(try #require(frames.first))
    #expect(value.cumulative == 2)
    #expect(value.echo == 77)
    #expect(value.windowLimit == UInt64(ChannelLimits.interactiveRingBytes))
    #expect(b.nextDeadline == .never)
  }

  @Test func `the second segment is acknowledged at once`() throws {
    let (_, b) = pair()
    try b.receiveSegment(segmentFromA(0, [0, 0]).span.bytes, now: start)
    try b.receiveSegment(segmentFromA(2, [0, 0], timestamp: 78).span.bytes, now: start)
    let value = try acknowledgementOf(try #require(b.frames(start).first))
    #expect(value.cumulative == 4)
    #expect(value.echo == 78)
  }

  @Test func `a segment out of order is acknowledged at once, with its range`() throws {
    let (_, b) = pair()
    try b.receiveSegment(segmentFromA(10, [0, 0]).span.bytes, now: start)
    let value = try acknowledgementOf(try #require(b.frames(start).first))
    #expect(value.cumulative == 0)
    #expect(value.rangeCount == 1)
    #expect(value.range(0) == ByteRange(start: 10, end: 12))
  }

  @Test func `an old segment is acknowledged at once and changes nothing`() throws {
    let (a, b) = pair()
    _ = try a.send([1], now: start)
    let frame = try #require(a.frames(start).first)
    try b.receive(frame, now: start)
    try b.receive(frame, now: start)
    #expect(b.frames(start).map(\.type) == [.acknowledgement])
    #expect(b.messages(.interactive).count == 1)
    #expect(b.statistics(.interactive).duplicatesReceived == 1)
  }

  @Test func `an acknowledgement reports at most four ranges: the lowest three and the newest`() throws {
    let (_, b) = pair()
    for offset: UInt64 in [10, 20, 30, 50, 60, 40] {
      try b.receiveSegment(segmentFromA(offset, [0, 0]).span.bytes, now: start)
    }
    let first = try acknowledgementOf(try #require(b.frames(start).first))
    #expect((0..<first.rangeCount).map { first.range($0).start } == [10, 20, 30, 40])
    try b.receiveSegment(segmentFromA(62, [0, 0]).span.bytes, now: start)
    let second = try acknowledgementOf(try #require(b.frames(start).first))
    #expect((0..<second.rangeCount).map { second.range($0).start } == [10, 20, 30, 60])
    #expect(second.range(3).end == 64)
  }

  @Test func `a segment that fills several gaps leaves no range below the cumulative offset`() throws {
    let (_, b) = pair()
    for offset: UInt64 in [10, 20, 30, 50] {
      try b.receiveSegment(segmentFromA(offset, [0, 0]).span.bytes, now: start)
    }
    _ = b.frames(start)
    try b.receiveSegment(segmentFromA(0, [UInt8](repeating: 0, count: 31)).span.bytes, now: start)
    let value = try acknowledgementOf(try #require(b.frames(start).first))
    #expect(value.cumulative == 32)
    #expect(value.rangeCount == 1)
    #expect(value.range(0) == ByteRange(start: 50, end: 52))
  }

  @Test func `segments beyond the limit on ranges are dropped`() throws {
    let (_, b) = pair()
    for index in 0..<UInt64(ChannelLimits.rangesMax + 5) {
      try b.receiveSegment(segmentFromA(10 + index * 4, [0, 0]).span.bytes, now: start)
    }
    #expect(b.statistics(.interactive).unplacedReceived == 5)
  }

  @Test func `bytes beyond the window are dropped, and the others are kept`() throws {
    let (_, b) = pair()
    let limit = UInt64(ChannelLimits.interactiveRingBytes)
    try b.receiveSegment(segmentFromA(limit - 2, [0, 0, 0, 0]).span.bytes, now: start)
    let value = try acknowledgementOf(try #require(b.frames(start).first))
    #expect(value.range(0) == ByteRange(start: limit - 2, end: limit))
    try b.receiveSegment(segmentFromA(limit, [0]).span.bytes, now: start)
    try b.receiveSegment(segmentFromA(ChannelLimits.offsetMax, [0]).span.bytes, now: start)
    #expect(b.statistics(.interactive).unplacedReceived == 2)
  }

  @Test func `a window update contains no timestamp echo and yields no round-trip time`() throws {
    let (a, b) = pair()
    let message = [UInt8](repeating: 0, count: 60_000)
    _ = try a.send(message, now: start)
    try exchange(a, b, now: start)
    b.handleTimeout(now: at(1_025))
    try exchange(a, b, now: at(1_025))
    let measured = a.statistics(.interactive).roundTripMicroseconds
    #expect(b.messages(.interactive).count == 1)
    let frames = b.frames(at(9_000))
    #expect(try acknowledgementOf(try #require(frames.first)).echo == 0)
    try a.receive(try #require(frames.first), now: at(9_000))
    #expect(a.statistics(.interactive).roundTripMicroseconds == measured)
  }

  @Test func `an announced message length above the limit restarts the channel in a later epoch`() throws {
    let (_, b) = pair()
    let id = try b.send([1], lane: .bulk, now: start)
    try b.receiveSegment(segmentFromA(0, bytes("00000001 05 76")).span.bytes, now: start)
    #expect(
      refusal { () throws(ChannelError) in
        try b.receiveSegment(segmentFromA(6, bytes("00010001 01")).span.bytes, now: start)
      } == .messageTooLong(0xb1))
    #expect(b.localEpoch == 0xb2 && b.remoteEpoch == 0xa1)
    #expect(b.completions() == [Completion(message: id, lane: .bulk, outcome: .failed(.peerRestarted))])
    // Messages that were complete before can still be read. Segments for the former epoch are refused with that epoch.
    #expect(b.nextMessage(.interactive)?.bytes == [0x76])
    #expect(
      refusal { () throws(ChannelError) in
        try b.receiveSegment(segmentFromA(11, [0]).span.bytes, now: start)
      } == .otherDestinationEpoch(0xb1))
    var again = segmentFromA(0, bytes("00000001 05 77"))
    again[7] = 0xb2
    try b.receiveSegment(again.span.bytes, now: start)
    #expect(b.nextMessage(.interactive)?.bytes == [0x77])
  }
}
