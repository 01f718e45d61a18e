@testable import Channel
import Primitives
import Testing

private let start = at(1_000)

@Suite struct DeliveryTests {
  @Test func `a message arrives with its kind, and its sender gets one completion`() throws {
    let (a, b) = pair()
    let id = try a.send(Array("hello".utf8), kind: 7, now: start)
    try exchange(a, b, now: start)
    #expect(b.messages(.interactive) == [ReceivedMessage(kind: 7, lane: .interactive, bytes: Array("hello".utf8))])
    #expect(a.completions() == [Completion(message: id, lane: .interactive, outcome: .delivered)])
    #expect(a.completions().isEmpty)
  }

  @Test func `a byte stream begins with the length, kind and bytes of its first message`() throws {
    let (a, _) = pair()
    _ = try a.send([0xaa, 0xbb], kind: 9, lane: .bulk, now: start)
    let frames = a.frames(start)
    #expect(frames.count == 1)
    #expect(
      try #require(frames.first).bytes
        == bytes("00000000000000b1 00000000000000a1 01 00 0000 000f4240 0000000000000000 00000002 09 aabb"))
  }

  @Test func `empty messages and messages of maximum length arrive in both lanes`() throws {
    for lane in Lane.allCases {
      let (a, b) = pair()
      let longest = [UInt8](repeating: 0x5a, count: ChannelLimits.messageBytesMax)
      _ = try a.send([], lane: lane, now: start)
      _ = try a.send(longest, lane: lane, now: start)
      try exchange(a, b, now: start)
      #expect(b.messages(lane).map(\.bytes) == [[], longest])
      b.handleTimeout(now: at(1_025))
      try exchange(a, b, now: at(1_025))
      #expect(a.completions().map(\.outcome) == [.delivered, .delivered])
    }
  }

  @Test func `messages of maximum length follow each other without a window probe`() throws {
    let (a, b) = pair(pathMTU: 16_640)
    var taken = 0
    for round in 0..<20 {
      let size = ChannelLimits.messageBytesMax - round * 997
      _ = try a.send([UInt8](repeating: UInt8(round), count: size), now: start)
      try settle(a, b, now: start)
      taken += b.messages(.interactive).count
      try settle(a, b, now: start)
      #expect(taken == round + 1)
    }
    #expect(a.statistics(.interactive).windowProbes == 0)
  }

  @Test func `a message of maximum length continues although reading freed less than half of the ring`() throws {
    let (a, b) = pair()
    _ = try a.send([UInt8](repeating: 1, count: 30_000), now: start)
    try settle(a, b, now: start)
    _ = try a.send([UInt8](repeating: 2, count: ChannelLimits.messageBytesMax), now: start)
    try settle(a, b, now: start)
    #expect(b.messages(.interactive).count == 1)
    try exchange(a, b, now: at(1_100))
    try settle(a, b, now: at(1_100))
    #expect(b.messages(.interactive).map(\.bytes.count) == [ChannelLimits.messageBytesMax])
    #expect(a.statistics(.interactive).windowProbes == 0)
  }

  @Test func `a message is copied into a buffer as a whole or not at all`() throws {
    let (a, b) = pair()
    _ = try a.send(Array("hello".utf8), kind: 3, now: start)
    try exchange(a, b, now: start)
    var buffer = [UInt8](repeating: 0, count: 8)
    let short = buffer.withUnsafeMutableBytes {
      b.takeMessage(.interactive, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<4]))
    }
    #expect(short == nil)
    let taken = buffer.withUnsafeMutableBytes { b.takeMessage(.interactive, into: $0) }
    #expect(taken == PendingMessage(kind: 3, lane: .interactive, byteCount: 5))
    #expect(buffer == Array("hello".utf8) + [0, 0, 0])
    #expect(b.pendingMessage(.interactive) == nil)
  }

  @Test func `interactive data is sent before earlier bulk data`() throws {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 5_000), lane: .bulk, now: start)
    _ = try a.send([1], lane: .interactive, now: start)
    let lanes = try a.frames(start).map { try segmentOf($0).header.lane }
    #expect(lanes.first == .interactive)
    #expect(lanes.dropFirst().allSatisfy { $0 == .bulk })
  }

  @Test func `interactive data is sent over a link that accepts no bulk data`() throws {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 5_000), lane: .bulk, now: start)
    var buffer = [UInt8](repeating: 0, count: 1_000)
    let nothing = buffer.withUnsafeMutableBytes { a.nextFrame(into: $0, now: start, interactiveOnly: true) }
    #expect(nothing == nil)
    _ = try a.send([1], lane: .interactive, now: start)
    let out = buffer.withUnsafeMutableBytes { a.nextFrame(into: $0, now: start, interactiveOnly: true) }
    #expect(out?.lane == .interactive)
  }

  @Test func `acknowledgements are sent first, then retransmissions, then new data`() throws {
    let (a, b) = pair()
    _ = try a.send([UInt8](repeating: 1, count: 100), lane: .bulk, now: start)
    _ = a.frames(start)
    _ = try b.send([UInt8](repeating: 2, count: 3_000), lane: .bulk, now: start)
    for frame in b.frames(start) { try a.receive(frame, now: start) }
    let later = at(2_001)
    a.handleTimeout(now: later)
    _ = try a.send([3], lane: .interactive, now: later)
    let frames = a.frames(later)
    #expect(frames.map(\.type) == [.acknowledgement, .segment, .segment])
    #expect(try segmentOf(frames[1]).header.lane == .bulk)
    #expect(try segmentOf(frames[2]).header.lane == .interactive)
  }

  @Test func `a lane does not wait for the other lane`() throws {
    let (a, b) = pair()
    _ = try a.send([1], lane: .bulk, now: start)
    _ = a.frames(start)
    _ = try a.send([2], lane: .interactive, now: start)
    try exchange(a, b, now: start)
    #expect(b.nextMessage(.interactive)?.bytes == [2])
    #expect(b.nextMessage(.bulk) == nil)
  }

  @Test func `a segment is as long as the path allows, but not longer than the buffer`() throws {
    let (a, _) = pair(pathMTU: 500)
    _ = try a.send([UInt8](repeating: 0, count: 2_000), now: start)
    #expect(try #require(a.frames(start, max: 1).first).bytes.count == 500)
    var buffer = [UInt8](repeating: 0, count: 200)
    let out = buffer.withUnsafeMutableBytes { a.nextFrame(into: $0, now: start) }
    #expect(out == OutgoingPayload(type: .segment, byteCount: 200, lane: .interactive))
  }
}

@Suite struct BackPressureTests {
  @Test func `a message that is too long is refused`() {
    let (a, _) = pair()
    #expect(throws: SendError.tooLong) {
      try a.send([UInt8](repeating: 0, count: ChannelLimits.messageBytesMax + 1), lane: .bulk, now: start)
    }
    #expect(!a.canSend(byteCount: ChannelLimits.messageBytesMax + 1, lane: .bulk))
  }

  @Test func `a full ring refuses a message until completions free space`() throws {
    let (a, b) = pair()
    let message = [UInt8](repeating: 0, count: 60_000)
    var taken = 0
    while a.canSend(byteCount: message.count, lane: .bulk) {
      _ = try a.send(message, lane: .bulk, now: start)
      taken += 1
    }
    #expect(taken == 4)
    #expect(throws: SendError.full) { try a.send(message, lane: .bulk, now: start) }
    #expect(a.canSend(byteCount: message.count, lane: .interactive))
    try exchange(a, b, now: start)
    #expect(b.messages(.bulk).count == 4)
    #expect(a.canSend(byteCount: message.count, lane: .bulk))
  }

  @Test func `the number of sends whose completion was not taken is limited`() throws {
    let (a, b) = pair()
    for _ in 0..<ChannelLimits.unfinishedMessagesMax { _ = try a.send([], now: start) }
    try exchange(a, b, now: start)
    b.handleTimeout(now: at(1_025))
    try exchange(a, b, now: at(1_025))
    #expect(throws: SendError.full) { try a.send([], now: start) }
    #expect(a.completions().count == ChannelLimits.unfinishedMessagesMax)
    #expect(a.canSend(byteCount: 0, lane: .interactive))
  }

  @Test func `unread messages close the window, and reading opens it`() throws {
    let (a, b) = pair()
    let message = [UInt8](repeating: 0, count: 30_000)
    var sent = 0
    for _ in 0..<5 {
      while a.canSend(byteCount: message.count, lane: .bulk) {
        _ = try a.send(message, lane: .bulk, now: start)
        sent += 1
      }
      try exchange(a, b, now: start)
    }
    let received = b.statistics(.bulk).bytesReceived
    #expect(received == UInt64(ChannelLimits.bulkRoomBytes))
    #expect(b.messages(.bulk).count == 8)
    try exchange(a, b, now: start)
    #expect(b.statistics(.bulk).bytesReceived > received)
    #expect(a.statistics(.bulk).windowProbes == 0)
  }

  @Test func `a stalled reader of bulk data does not stop the interactive lane`() throws {
    let (a, b) = pair()
    while a.canSend(byteCount: 60_000, lane: .bulk) {
      _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start)
      try exchange(a, b, now: start)
    }
    _ = try a.send([1], now: start)
    try exchange(a, b, now: start)
    #expect(b.nextMessage(.interactive)?.bytes == [1])
  }

  @Test func `a window probe recovers from a lost window update`() throws {
    let (a, b) = pair()
    let message = [UInt8](repeating: 0, count: 60_000)
    for _ in 0..<5 {
      if a.canSend(byteCount: message.count, lane: .bulk) { _ = try a.send(message, lane: .bulk, now: start) }
      try settle(a, b, now: start)
    }
    #expect(b.messages(.bulk).count == 4)
    _ = b.frames(start)
    var now = at(1_200)
    for _ in 0..<10 where a.statistics(.bulk).windowProbes == 0 {
      now = min(a.nextDeadline, b.nextDeadline)
      a.handleTimeout(now: now)
      b.handleTimeout(now: now)
      try settle(a, b, now: now)
    }
    #expect(a.statistics(.bulk).windowProbes == 1)
    #expect(b.messages(.bulk).count == 1)
  }

  @Test func `probes of a closed window have one byte, are acknowledged, and become rarer`() throws {
    let (a, b) = pair()
    let message = [UInt8](repeating: 0, count: 60_000)
    for _ in 0..<6 {
      if a.canSend(byteCount: message.count, lane: .bulk) { _ = try a.send(message, lane: .bulk, now: start) }
      try settle(a, b, now: start)
    }
    var gaps: [UInt64] = []
    var now = at(1_200)
    while gaps.count < 5 {
      let next = a.nextDeadline
      a.handleTimeout(now: next)
      let frames = a.frames(next)
      guard !frames.isEmpty else { continue }
      #expect(frames.count == 1)
      #expect(try segmentOf(try #require(frames.first)).count == 1)
      try b.receive(try #require(frames.first), now: next)
      let answers = b.frames(next)
      #expect(answers.map(\.type) == [.acknowledgement])
      try a.receive(try #require(answers.first), now: next)
      gaps.append((next - now).milliseconds)
      now = next
    }
    for (gap, next) in zip(gaps.dropFirst(), gaps.dropFirst(2)) { #expect(next / gap == 2) }
    #expect(b.statistics(.bulk).unplacedReceived == 5)
  }
}
