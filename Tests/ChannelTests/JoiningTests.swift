import Channel
import Primitives
import Testing

private let start = at(1_000)

/// The channels of `pair`. Channel `b` has both an acknowledgement and the message `answer` to send.
private func answering(
  pathMTU: Int = 1_000, _ answer: [UInt8], lane: Lane = .interactive
) throws -> (a: Channel, b: Channel) {
  let (a, b) = pair(pathMTU: pathMTU)
  _ = try a.send([1, 2, 3], now: start)
  for frame in a.frames(start) { try b.receive(frame, now: start) }
  _ = try b.send(answer, lane: lane, now: start)
  return (a, b)
}

@Suite struct JoiningTests {
  @Test func `a joined payload is an acknowledgement followed by a segment`() throws {
    let (_, b) = try answering([7])
    let frames = b.frames(start, joins: true)
    #expect(frames.map(\.type) == [.joined])
    let acknowledgement = bytes(
      "00000000000000a1 00000000000000b1 00 00 0000 000f4240 0000000000000008 0000000000012000")
    let segment = bytes("00000000000000a1 00000000000000b1 00 00 0000 000f4240 0000000000000000 00000001 01 07")
    #expect(frames.first?.bytes == acknowledgement + segment)
  }

  @Test(arguments: Lane.allCases) func `both parts of a joined payload are received`(_ lane: Lane) throws {
    let (a, b) = try answering([7], lane: lane)
    try a.receive(try #require(b.frames(start, joins: true).first), now: start)
    #expect(a.completions().map(\.outcome) == [.delivered])
    #expect(a.messages(lane).map(\.bytes) == [[7]])
  }

  @Test func `payloads are not joined for a peer that does not support it`() throws {
    let (_, b) = try answering([7])
    #expect(b.frames(start).map(\.type) == [.acknowledgement, .segment])
  }

  @Test func `a segment of a lane that may not be joined is sent without the acknowledgement`() throws {
    let (_, b) = try answering([7], lane: .bulk)
    var buffer = [UInt8](repeating: 0, count: 1_000)
    let types = (0..<2).map { _ in
      buffer.withUnsafeMutableBytes { b.nextFrame(into: $0, now: start, joins: (true, false))?.type }
    }
    #expect(types == [.acknowledgement, .segment])
  }

  @Test func `an acknowledgement is sent alone if no data is pending`() throws {
    let (a, b) = pair()
    _ = try a.send([1], now: start)
    for frame in a.frames(start) { try b.receive(frame, now: start) }
    #expect(b.frames(start, joins: true).map(\.type) == [.acknowledgement])
  }

  @Test func `a joined payload is at most as long as the path allows`() throws {
    let (a, b) = try answering([UInt8](repeating: 7, count: 3_000), lane: .bulk)
    let frames = b.frames(start, joins: true)
    #expect(frames.first?.type == .joined && frames.first?.bytes.count == 1_000)
    for frame in frames { try a.receive(frame, now: start) }
    #expect(a.messages(.bulk).map(\.bytes.count) == [3_000])
  }

  @Test func `payloads are not joined on a path with short payloads`() throws {
    let (_, b) = try answering(pathMTU: ChannelLimits.joinedMTUMin - 1, [7])
    #expect(b.frames(start, joins: true).map(\.type) == [.acknowledgement, .segment])
  }

  @Test func `a joined payload that is truncated or mixes epochs is refused as a whole`() throws {
    let (a, b) = try answering([7])
    let whole = try #require(b.frames(start, joins: true).first).bytes
    for count in [0, 39, 40, 72] {
      let short = [UInt8](whole[..<count])
      #expect(
        refusal { () throws(ChannelError) in try a.receiveJoined(short.span.bytes, now: start) }
          == .malformed(.tooShort), "\(count) bytes")
    }
    var mixed = whole
    mixed[40 + 15] = 0xb0
    #expect(
      refusal { () throws(ChannelError) in try a.receiveJoined(mixed.span.bytes, now: start) }
        == .malformed(.epochsDiffer))
    #expect(a.completions().isEmpty && a.messages(.interactive).isEmpty)
    try a.receiveJoined(whole.span.bytes, now: start)
    #expect(a.completions().count == 1 && a.messages(.interactive).count == 1)
  }

  @Test func `a joined payload that acknowledges unsent data is refused as a whole`() throws {
    let (a, b) = try answering([7])
    var bold = try #require(b.frames(start, joins: true).first).bytes
    bold[31] = 9
    #expect(
      refusal { () throws(ChannelError) in try a.receiveJoined(bold.span.bytes, now: start) } == .acknowledgesUnsent)
    #expect(a.messages(.interactive).isEmpty)
  }
}
