@testable import Channel
import Primitives
import Testing

private let start = at(1_000)
private let chunk = [UInt8](repeating: 0x55, count: 15_360)

@Suite struct RingTests {
  @Test func `a growing ring keeps the bytes in use, wherever it wraps`() {
    var random = SeededRandom(seed: 3)
    for _ in 0..<50 {
      let budget = RingBudget()
      var ring = ByteRing(capacityMax: 1_048_576, budget: budget)
      var low = random.below(1 << 40)
      var high = low
      for _ in 0..<20 {
        let more = Int(random.below(60_000))
        let isReserved = ring.reserve(Int(high - low) + more, inUseFrom: low)
        #expect(isReserved)
        let data = (0..<more).map { UInt8(truncatingIfNeeded: (high + UInt64($0)) &* 2_654_435_761 >> 7) }
        ring.write(data.span.bytes, at: high)
        high += UInt64(more)
        low += random.below(high - low + 1) / 4
        var back = [UInt8](repeating: 0, count: Int(high - low))
        back.withUnsafeMutableBytes { ring.read(at: low, into: $0) }
        let wanted = (0..<back.count).map { UInt8(truncatingIfNeeded: (low + UInt64($0)) &* 2_654_435_761 >> 7) }
        #expect(back == wanted)
        if back != wanted { return }
      }
    }
  }
}

@Suite struct MemoryTests {
  @Test func `every field is wide enough for its limit`() {
    ChannelLimits.eachWidth { field, greatest, fits in
      #expect(greatest <= fits, "\(field): \(greatest) does not fit \(fits)")
    }
  }

  private func ringBytes(_ channel: Channel) -> Int {
    Lane.allCases.reduce(0) { $0 + channel.statistics($1).ringBytes }
  }

  @Test func `a channel has no rings before its first message, and small ones after it`() throws {
    let (a, b) = pair()
    #expect(ringBytes(a) == 0 && ringBytes(b) == 0)
    _ = try a.send([1], now: start)
    try exchange(a, b, now: start)
    #expect(ringBytes(a) == ChannelLimits.ringBytesFirst && ringBytes(b) == ChannelLimits.ringBytesFirst)
  }

  @Test func `a ring that was empty for ten seconds frees its memory`() throws {
    let (a, b) = pair()
    _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start)
    try settle(a, b, now: start)
    b.handleTimeout(now: at(60_000))
    #expect(ringBytes(b) > 0, "a message waits to be read")
    #expect(b.messages(.bulk).count == 1)
    for now in [at(10_999), at(12_000)] {
      a.handleTimeout(now: now)
      b.handleTimeout(now: at(61_000))
    }
    #expect(ringBytes(a) == 0 && ringBytes(b) == 0)
    _ = try a.send([2], lane: .bulk, now: at(70_000))
    try exchange(a, b, now: at(70_000))
    #expect(b.messages(.bulk).map(\.bytes) == [[2]])
  }

  @Test func `a stalled reader uses no more than the initial memory of a lane`() throws {
    let path = Path([.ethernet])
    path.afterEvent = { path in
      while path.a.canSend(byteCount: 15_360, lane: .bulk) {
        guard (try? path.a.send(chunk, lane: .bulk, now: path.now)) != nil else { return }
      }
    }
    path.run(until: path.now + .seconds(5))
    #expect(path.b.statistics(.bulk).bytesReceived == UInt64(ChannelLimits.bulkRoomBytes))
    #expect(path.b.statistics(.bulk).ringBytes == ChannelLimits.bulkRoomBytes)
  }

  @Test func `a ring grows to what a long path holds, up to the limit`() {
    let path = Path([Hop(125_000_000, .milliseconds(10))])
    var arrived = 0
    var largest = 0
    path.afterEvent = { path in
      while path.a.canSend(byteCount: 15_360, lane: .bulk) {
        guard (try? path.a.send(chunk, lane: .bulk, now: path.now)) != nil else { return }
      }
      while let message = path.b.nextMessage(.bulk) { arrived += message.bytes.count }
      while path.a.nextCompletion() != nil {}
      largest = max(largest, path.a.statistics(.bulk).ringBytes, path.b.statistics(.bulk).ringBytes)
    }
    path.run(until: path.now + .seconds(1))
    // A ring of one megabyte for each round trip of 20 ms would allow 50 MB/s. The initial ring alone would allow a
    // quarter of that rate.
    #expect(arrived > 25_000_000)
    #expect(largest <= ChannelLimits.bulkRingBytes)
  }

  @Test func `channels continue within their guaranteed memory when the shared budget is used up`() throws {
    let budget = RingBudget(bytes: 0)
    let a = Channel(localEpoch: 0xa1, remoteEpoch: 0xb1, budget: budget)
    let b = Channel(localEpoch: 0xb1, remoteEpoch: 0xa1, budget: budget)
    a.routeChanged(pathMTU: 1_000, now: start)
    b.routeChanged(pathMTU: 1_000, now: start)
    let message = [UInt8](repeating: 5, count: 60_000)
    _ = try a.send(message, lane: .bulk, now: start)
    #expect(throws: SendError.full) { try a.send(message, lane: .bulk, now: start) }
    #expect(!a.canSend(byteCount: message.count, lane: .bulk))
    var now = start
    for _ in 0..<5 {
      try settle(a, b, now: now)
      #expect(b.messages(.bulk).map(\.bytes) == [message])
      try settle(a, b, now: now)
      now = now + .seconds(1)
      _ = try a.send(message, lane: .bulk, now: now)
    }
    #expect(budget.bytesFree == 0)
  }

  @Test func `data for which the receiver has no memory is dropped and retransmitted`() throws {
    let (a, _) = pair()
    let b = Channel(localEpoch: 0xb1, remoteEpoch: 0xa1, budget: RingBudget(bytes: 0))
    b.routeChanged(pathMTU: 1_000, now: start)
    for index in 0..<4 { _ = try a.send([UInt8](repeating: UInt8(index), count: 60_000), lane: .bulk, now: start) }
    var now = start
    var arrived: [UInt8] = []
    for _ in 0..<200 where arrived.count < 4 {
      try exchange(a, b, now: now)
      if b.statistics(.bulk).unplacedReceived > 0 { arrived += b.messages(.bulk).map { $0.bytes[0] } }
      now = now + .milliseconds(100)
      a.handleTimeout(now: now)
      b.handleTimeout(now: now)
    }
    #expect(arrived == [0, 1, 2, 3])
    #expect(b.statistics(.bulk).ringBytes == ChannelLimits.ringBytesMin)
  }

  @Test func `an advertised window is not reduced for lack of memory`() throws {
    let b = Channel(localEpoch: 0xb1, remoteEpoch: 0xa1, budget: RingBudget(bytes: 0))
    b.routeChanged(pathMTU: 1_000, hops: 1, now: at(1_000))
    let message = [UInt8](repeating: 0, count: ChannelLimits.messageHeaderBytes)
    try b.receiveSegment(segmentFromA(0, message, lane: .bulk).span.bytes, now: at(1_000))
    let told = try acknowledgementOf(try #require(b.frames(at(1_000)).first)).windowLimit
    #expect(told > UInt64(ChannelLimits.ringBytesMin))
    try b.receiveSegment(segmentFromA(told - 1, [0], lane: .bulk).span.bytes, now: at(1_001))
    let later = try acknowledgementOf(try #require(b.frames(at(1_001)).first))
    #expect(later.rangeCount == 0 && later.windowLimit == told)
  }

  @Test func `a released channel returns its memory to the budget`() throws {
    let budget = RingBudget()
    let all = budget.bytesFree
    do {
      let a = Channel(localEpoch: 1, remoteEpoch: 2, budget: budget)
      for _ in 0..<4 { _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start) }
      #expect(budget.bytesFree == all - (262_144 - ChannelLimits.ringBytesMin))
    }
    #expect(budget.bytesFree == all)
  }
}
