import Channel
import Primitives
import Testing

private let start = at(1_000)

@Test func `a return to an earlier epoch of the peer increases the local epoch`() throws {
  let (a, b) = pair()
  let (own, other) = (a.localEpoch, a.remoteEpoch)
  a.remoteRestarted(epoch: other + 5)
  #expect(a.localEpoch == own)
  a.remoteRestarted(epoch: other)
  #expect(a.localEpoch == own + 1)
  // The later source epoch in the segment informs b that both byte streams start again.
  _ = try a.send([1], now: start)
  let sent = try #require(a.frames(start).first)
  #expect(refusal { () throws(ChannelError) in try b.receive(sent, now: start) } == .otherSourceEpoch(own + 1))
}

@Suite struct NamedEpochTests {
  private func channel(_ own: UInt64, to other: UInt64) -> Channel {
    let result = Channel(localEpoch: own, remoteEpoch: other)
    result.routeChanged(pathMTU: 1_000, now: start)
    return result
  }

  @Test func `unsent data is sent to the epoch that the peer reports`() throws {
    let a = channel(4, to: 9)
    let b = channel(11, to: 4)
    let id = try a.send([1], now: start)
    a.remoteSaid(epoch: 11)
    try settle(a, b, now: start)
    #expect(b.messages(.interactive).map(\.bytes) == [[1]])
    #expect(a.completions() == [Completion(message: id, lane: .interactive, outcome: .delivered)])
  }

  @Test func `data sent to a former epoch fails when the peer reports a later one`() throws {
    let a = channel(4, to: 9)
    _ = try a.send([1], now: start)
    _ = a.frames(start)
    a.remoteSaid(epoch: 11)
    #expect(a.completions().map(\.outcome) == [.failed(.peerRestarted)])
  }

  @Test func `data queued after a restart is sent to a later epoch that the peer reports`() throws {
    let a = channel(4, to: 9)
    _ = try a.send([1], now: start)
    _ = a.frames(start)
    a.remoteRestarted(epoch: 10)
    _ = a.completions()
    _ = try a.send([2], now: start)
    a.remoteSaid(epoch: 11)
    #expect(a.completions().isEmpty && a.remoteEpoch == 11)
  }

  @Test func `an earlier epoch that is reported late changes nothing`() throws {
    let (a, _) = pair()
    let known = a.remoteEpoch
    a.remoteSaid(epoch: known - 1)
    #expect(a.remoteEpoch == known)
  }
}

@Suite struct DeadlineTests {
  @Test func `a send without progress fails once at its deadline`() throws {
    let (a, _) = pair()
    let id = try a.send([1], now: start)
    _ = a.frames(start)
    a.handleTimeout(now: at(60_999))
    #expect(a.completions().isEmpty)
    a.handleTimeout(now: at(61_000))
    a.handleTimeout(now: at(200_000))
    #expect(a.completions() == [Completion(message: id, lane: .interactive, outcome: .failed(.timedOut))])
    #expect(!a.hasUnfinishedSends)
  }

  @Test func `progress extends the deadline`() throws {
    let (a, _) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 2_000), now: start)
    _ = a.frames(start)
    try a.receiveAcknowledgement(acknowledgementFromB(968, window: 50_000).span.bytes, now: at(50_000))
    a.handleTimeout(now: at(109_999))
    #expect(a.completions().isEmpty)
    a.handleTimeout(now: at(110_000))
    #expect(a.completions().count == 1)
  }

  @Test func `an advancing handshake extends the deadline once`() throws {
    let (a, _) = pair()
    _ = try a.send([1], now: start)
    a.handshakeAdvanced(now: at(40_000))
    a.handleTimeout(now: at(99_999))
    #expect(a.completions().isEmpty && a.nextDeadline == at(100_000))
    a.handshakeAdvanced(now: at(99_999))
    a.handleTimeout(now: at(120_999))
    #expect(a.completions().isEmpty)
    a.handleTimeout(now: at(121_000))
    #expect(a.completions().map(\.outcome) == [.failed(.timedOut)])
  }

  @Test func `only the lane that the peer never reads times out`() throws {
    let (a, b) = pair()
    for _ in 0..<5 {
      if a.canSend(byteCount: 60_000, lane: .bulk) {
        _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start)
      }
      try exchange(a, b, now: start)
    }
    let before = a.completions().count
    for second: UInt64 in 2...70 {
      let now = at(second * 1_000)
      a.handleTimeout(now: now)
      b.handleTimeout(now: now)
      _ = try a.send([1], now: now)
      try exchange(a, b, now: now)
      _ = b.messages(.interactive)
    }
    let outcomes = a.completions()
    #expect(before == 4)
    #expect(outcomes.filter { $0.lane == .bulk }.map(\.outcome) == [.failed(.timedOut)])
    #expect(outcomes.filter { $0.lane == .interactive }.allSatisfy { $0.outcome == .delivered })
  }

  @Test func `after a timeout a partly sent message still arrives whole, and unsent ones are dropped`() throws {
    let (a, b) = pair()
    let begun = [UInt8](repeating: 1, count: 30_000)
    _ = try a.send(begun, now: start)
    _ = try a.send([2], now: start)
    _ = a.frames(start, max: 3)
    a.handleTimeout(now: at(61_000))
    #expect(a.completions().map(\.outcome) == [.failed(.timedOut), .failed(.timedOut)])
    // A third message waits behind the first message, whose segments are still being sent, and fails in the same way.
    let third = try a.send([3], now: at(61_000))
    a.handleTimeout(now: at(121_000))
    #expect(a.completions() == [Completion(message: third, lane: .interactive, outcome: .failed(.timedOut))])
    let fourth = try a.send([4], now: at(121_000))
    a.routeChanged(pathMTU: 1_000, now: at(121_000))
    try exchange(a, b, now: at(121_000))
    b.handleTimeout(now: at(121_025))
    try exchange(a, b, now: at(121_025))
    #expect(b.messages(.interactive).map(\.bytes) == [begun, [4]])
    #expect(a.completions() == [Completion(message: fourth, lane: .interactive, outcome: .delivered)])
  }

  @Test func `a closed channel fails unfinished sends once and refuses further ones`() throws {
    let (a, b) = pair()
    let id = try a.send([1], lane: .bulk, now: start)
    let frame = try #require(a.frames(start).first)
    a.close()
    a.close()
    #expect(a.completions() == [Completion(message: id, lane: .bulk, outcome: .failed(.closed))])
    #expect(throws: SendError.closed) { try a.send([1], now: start) }
    #expect(a.nextDeadline == .never)
    try b.receive(frame, now: start)
    b.handleTimeout(now: at(1_025))
    let answer = try #require(b.frames(at(1_025)).first)
    #expect(refusal { () throws(ChannelError) in try a.receive(answer, now: start) } == .closed)
    #expect(a.frames(start).isEmpty)
  }
}

@Suite struct RestartTests {
  @Test func `a restart of the peer fails unfinished sends once, and finished ones not at all`() throws {
    let (a, b) = pair()
    let first = try a.send([1], now: start)
    try exchange(a, b, now: start)
    b.handleTimeout(now: at(1_025))
    try exchange(a, b, now: at(1_025))
    let second = try a.send([2], now: at(1_030))
    let third = try a.send([3], lane: .bulk, now: at(1_030))
    a.remoteRestarted(epoch: 0xb2)
    a.remoteRestarted(epoch: 0xb2)
    #expect(
      a.completions() == [
        Completion(message: first, lane: .interactive, outcome: .delivered),
        Completion(message: second, lane: .interactive, outcome: .failed(.peerRestarted)),
        Completion(message: third, lane: .bulk, outcome: .failed(.peerRestarted)),
      ])
    a.remoteRestarted(epoch: 0xb3)
    #expect(a.completions().isEmpty)
  }

  @Test func `after a restart both directions begin at offset 0`() throws {
    let (a, b) = pair()
    _ = try a.send([1, 2, 3], now: start)
    _ = try b.send([4, 5, 6], now: start)
    try exchange(a, b, now: start)
    let fresh = Channel(localEpoch: 0xb2, remoteEpoch: 0xa1)
    fresh.routeChanged(pathMTU: 500, now: start)
    a.remoteRestarted(epoch: 0xb2)
    _ = try a.send([7], now: start)
    _ = try fresh.send([8], now: start)
    let frames = a.frames(start)
    #expect(try segmentOf(try #require(frames.first)).header.offset == 0)
    for frame in frames { try fresh.receive(frame, now: start) }
    try exchange(a, fresh, now: start)
    #expect(fresh.messages(.interactive).map(\.bytes) == [[7]])
    #expect(a.messages(.interactive).map(\.bytes) == [[4, 5, 6], [8]])
  }

  @Test(arguments: [false, true])
  func `thousands of empty messages are read, also after a restart`(isRestarted: Bool) throws {
    let (_, b) = pair()
    let step: [UInt8] = [0, 0, 0, 0, 7]
    let messages = 3_000
    let data: [UInt8] = [[UInt8]](repeating: step, count: messages).flatMap { $0 } + [0, 0, 0]
    try b.receiveSegment(segmentFromA(0, data).span.bytes, now: start)
    if isRestarted {
      b.remoteRestarted(epoch: 0xa2)
      try b.receiveSegment(segmentFromA(0, bytes("00000001 07 88"), epoch: 0xa2).span.bytes, now: start)
    } else {
      try b.receiveSegment(segmentFromA(UInt64(5 * messages + 3), bytes("01 07 88")).span.bytes, now: start)
    }
    let read = b.messages(.interactive)
    #expect(read.count == messages + 1 && read.last?.bytes == [0x88])
  }

  @Test func `a restart drops a partly received message and keeps complete ones`() throws {
    let (_, b) = pair()
    try b.receiveSegment(segmentFromA(0, bytes("00000001 05 77 00000009 06 1122")).span.bytes, now: start)
    b.remoteRestarted(epoch: 0xa2)
    try b.receiveSegment(segmentFromA(0, bytes("00000001 07 88"), epoch: 0xa2).span.bytes, now: start)
    #expect(b.messages(.interactive).map(\.bytes) == [[0x77], [0x88]])
  }

  @Test func `unread messages from before a restart reduce the new window`() throws {
    let (a, b) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 60_000), now: start)
    try exchange(a, b, now: start)
    b.remoteRestarted(epoch: 0xa2)
    try b.receiveSegment(segmentFromA(0, [0], epoch: 0xa2).span.bytes, now: start)
    b.handleTimeout(now: at(1_025))
    let value = try acknowledgementOf(try #require(b.frames(at(1_025)).first))
    #expect(value.windowLimit == UInt64(ChannelLimits.interactiveRingBytes) - 60_005)
  }

  @Test func `a repeated epoch does not restart the channel`() throws {
    let (a, b) = pair()
    _ = try a.send([1, 2, 3], now: start)
    let frames = a.frames(start)
    a.remoteRestarted(epoch: 0xb1)
    b.remoteRestarted(epoch: 0xa1)
    #expect(a.completions().isEmpty)
    for frame in frames { try b.receive(frame, now: start) }
    try settle(a, b, now: start)
    #expect(a.completions().map(\.outcome) == [.delivered])
  }

  @Test func `after a restart the window is the initial window of every receiver`() throws {
    let (a, b) = pair(pathMTU: 16_640)
    _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start)
    try settle(a, b, now: start)
    a.remoteRestarted(epoch: 0xb2)
    for _ in 0..<3 { _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: at(1_100)) }
    var end: UInt64 = 0
    for _ in 0..<20 {
      for frame in a.frames(at(1_100)) {
        let (header, count) = try segmentOf(frame)
        end = max(end, header.offset + count)
      }
      // The peer acknowledges everything and grants no more window than necessary.
      let value = Acknowledgement(
        epochs: EpochPair(destination: 0xa1, source: 0xb2), lane: .bulk, echo: 0, cumulative: end, windowLimit: end)
      let payload = encoded(value.byteCount) { value.encode(into: $0) }
      try a.receiveAcknowledgement(payload.span.bytes, now: at(1_100))
    }
    #expect(end == ChannelLimits.initialWindowBytes)
  }

  @Test func `a segment for another local epoch is refused with that epoch`() throws {
    let (a, _) = pair()
    let late = Channel(localEpoch: 0xb2, remoteEpoch: 0xa1)
    _ = try a.send([1], now: start)
    let frame = try #require(a.frames(start).first)
    #expect(
      refusal { () throws(ChannelError) in try late.receive(frame, now: start) }
        == .otherDestinationEpoch(0xb1))
  }

  @Test func `a segment from another epoch of the peer is refused with that epoch`() throws {
    let (a, _) = pair()
    let other = Channel(localEpoch: 0xb1, remoteEpoch: 0xa0)
    _ = try a.send([1], now: start)
    let frame = try #require(a.frames(start).first)
    #expect(refusal { () throws(ChannelError) in try other.receive(frame, now: start) } == .otherSourceEpoch(0xa1))
  }

  @Test func `an acknowledgement from another epoch is refused`() throws {
    let (a, _) = pair()
    a.remoteRestarted(epoch: 0xb2)
    #expect(
      refusal { () throws(ChannelError) in
        try a.receiveAcknowledgement(acknowledgementFromB(0, window: 1).span.bytes, now: start)
      } == .otherSourceEpoch(0xb1))
  }

  @Test func `a reset for the peer's current epoch restarts the channel with the epoch that it names`() throws {
    let (a, _) = pair()
    _ = try a.send([1], now: start)
    let reset = encoded(Reset.byteCount) { Reset(meantEpoch: 0xb1, currentEpoch: 0xb2).encode(into: $0) }
    try a.receiveReset(reset.span.bytes, now: start)
    #expect(a.remoteEpoch == 0xb2)
    #expect(a.completions().map(\.outcome) == [.failed(.peerRestarted)])
  }

  @Test func `a stale reset does not affect a new channel`() throws {
    let (a, _) = pair()
    let reset = encoded(Reset.byteCount) { Reset(meantEpoch: 0xb1, currentEpoch: 0xb2).encode(into: $0) }
    try a.receiveReset(reset.span.bytes, now: start)
    _ = try a.send([1], now: start)
    #expect(refusal { () throws(ChannelError) in try a.receiveReset(reset.span.bytes, now: start) } == .staleReset)
    #expect(a.remoteEpoch == 0xb2)
    #expect(a.completions().isEmpty)
  }

  @Test func `a payload that is too short is refused with the reason`() {
    let (a, _) = pair()
    #expect(
      refusal { () throws(ChannelError) in try a.receiveSegment([1].span.bytes, now: start) }
        == .malformed(.tooShort))
    #expect(
      refusal { () throws(ChannelError) in try a.receiveAcknowledgement([1].span.bytes, now: start) }
        == .malformed(.tooShort))
    #expect(
      refusal { () throws(ChannelError) in try a.receiveReset([1].span.bytes, now: start) }
        == .malformed(.tooShort))
  }

  @Test func `random bytes after a valid header never trap`() {
    let (a, b) = pair()
    var random = SeededRandom(seed: 5)
    _ = try? a.send([UInt8](repeating: 0, count: 60_000), now: start)
    _ = a.frames(start)
    for _ in 0..<20_000 {
      var octets =
        bytes("00000000000000a1 00000000000000b1")
        + (0..<random.below(120)).map { _ in
          random.chance(perThousand: 500) ? 0 : UInt8(truncatingIfNeeded: random.next())
        }
      if octets.count > 17 { octets[17] &= 7 }
      _ = refusal { () throws(ChannelError) in try a.receiveSegment(octets.span.bytes, now: start) }
      _ = refusal { () throws(ChannelError) in try a.receiveAcknowledgement(octets.span.bytes, now: start) }
      _ = a.frames(start)
      _ = a.messages(.interactive)
      _ = a.messages(.bulk)
    }
    #expect(b.completions().isEmpty)
  }
}
