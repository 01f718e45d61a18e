import Frame
import Link
import Primitives
import TestSupport
import Testing

// The number of flows has no separate limit. But each flow holds at least one block, and each neighbour has a share of
// the blocks.

@Test func `a neighbour has at most as many flows as blocks`() {
  let queue = Queue()
  let most = Limits.linkQueueBytesMax / 2 / Limits.queueBlockBytes
  for source in 0..<most { #expect(queue.append([1], .bulk, source: UInt64(source + 1), from: 3)) }
  #expect(!queue.append([1], .bulk, source: 1000, from: 3) && queue.drops[.linkQuota] == 1)
  // A flow that holds a block already is not refused, and flows of other neighbours find room.
  #expect(queue.append([1], .bulk, source: 7, from: 3) && queue.append([1], .bulk, source: 1000, from: 4))
  _ = queue.popAll()
  #expect(queue.append([1], .bulk, source: 1000, from: 3))
}

@Test func `the pool has enough flow records for almost all blocks`() {
  let queues = Queue.family(64)
  var waiting = 0
  for round in 0..<40 as Range<UInt64> {
    for (number, queue) in queues.enumerated() {
      for kind in [FramePriority.bulk, .interactive, .realtime] {
        if queue.append([1], kind, source: round + 1, from: (number + Int(round)) % 64) { waiting += 1 }
      }
    }
  }
  #expect(waiting > Limits.queueBlocksMax * 9 / 10)
  #expect(queues.reduce(0) { $0 + $1.popAll().count } == waiting)
  #expect(queues[0].freeBytes == Limits.queueBlocksMax * Limits.queueBlockBytes)
}

/// A relay forwards many flows, each with one waiting frame at a time. Beside the relay, `hostile` other neighbours
/// open new flows all the time.
@Test(arguments: [(60, 0), (65, 0), (200, 0), (60, 3), (65, 1), (100, 1)])
func `a relay with many flows loses no frame and keeps its share`(flows: Int, hostile: Int) {
  let queue = Queue()
  queue.frameBytesMax = 4144
  let payload = [UInt8](repeating: 0, count: 1000)
  var isWaiting = [Bool](repeating: false, count: flows)
  var (lost, bytes, bytesOfAll) = (0, 0, 0)
  var next: UInt64 = 1000
  for _ in 0..<2000 {
    for flow in 0..<flows where !isWaiting[flow] {
      isWaiting[flow] = queue.append(payload, .bulk, source: UInt64(flow + 1), from: 1)
      if !isWaiting[flow] { lost += 1 }
    }
    for neighbour in 0..<hostile {
      for _ in 0..<5 {
        _ = queue.append(payload, .bulk, source: next, from: 2 + neighbour)
        next += 1
      }
    }
    for frame in frames(in: queue.pop(4144)) {
      bytesOfAll += frame.header.frameByteCount
      if frame.header.source.high > UInt64(flows) { continue }
      bytes += frame.header.frameByteCount
      isWaiting[Int(frame.header.source.high) - 1] = false
    }
  }
  let share = Double(bytes) / Double(bytesOfAll)
  #expect(lost == 0 && share > 0.98 / Double(hostile + 1), "\(lost) lost, share \(share)")
}

/// One neighbour sends a flow of its own, and also relays as many flows as find room. A second neighbour has one flow.
@Test func `a neighbour's own frames take turns with all frames that it relays`() {
  let queue = Queue()
  queue.frameBytesMax = 4144
  var next: UInt64 = 1000
  var counts: [UInt64: Int] = [:]
  for _ in 0..<400 {
    for _ in 0..<50 {
      _ = queue.append([UInt8](repeating: 0, count: 1000), .bulk, source: next, from: 1, isRelayed: true)
      next += 1
    }
    for source in 1...2 as ClosedRange<UInt64> {
      for _ in 0..<4 {
        _ = queue.append([UInt8](repeating: 0, count: 1000), .bulk, source: source, from: Int(source))
      }
    }
    for frame in frames(in: queue.pop(4144)) { counts[min(frame.header.source.high, 1000), default: 0] += 1 }
  }
  let parts = [1, 2, 1000].map { Double(counts[$0] ?? 0) / Double(counts.values.reduce(0, +)) }
  #expect(parts[0] > 0.23 && parts[1] > 0.48 && parts[2] > 0.23, "\(parts)")
}

@Test(arguments: [1, 40]) func `a neighbour's own longest frame finds room however much it relays`(links: Int) {
  let queues = Queue.family(links)
  for source in 0..<2000 {
    for queue in queues { _ = queue.append([1], .bulk, source: UInt64(source + 10), from: 3, isRelayed: true) }
  }
  let longest = [UInt8](repeating: 0, count: Limits.framePayloadBytesMax)
  #expect(!queues[0].append(longest, .bulk, source: 5000, from: 3, isRelayed: true))
  #expect(queues[0].append(longest, .bulk, source: 3, from: 3))
}

@Test func `small frames that a neighbour relays leave room for its own`() {
  let queues = Queue.family(8)
  for source in 0..<16 {
    for queue in queues {
      for _ in 0..<600 { _ = queue.append([1], .bulk, source: UInt64(source + 10), from: 3, isRelayed: true) }
    }
  }
  for _ in 0..<512 { #expect(queues[0].append([1], .bulk, source: 3, from: 3)) }
}

@Test func `frames that a neighbour relays do not evict its own realtime frames`() {
  let queue = Queue()
  let payload = [UInt8](repeating: 0, count: 8000)
  for _ in 0..<4 { #expect(queue.append(payload, .realtime, source: 3, from: 3)) }
  for _ in 0..<4 { #expect(queue.append(payload, .realtime, source: 4, from: 3, isRelayed: true)) }
  for source in 11...40 {
    for _ in 0..<30 { _ = queue.append(payload, .bulk, source: UInt64(source), from: 3, isRelayed: true) }
  }
  #expect(queue.drops[.overtaken] == 4)
  #expect(queue.popAll().count { $0.header.priority == .realtime && $0.header.source == queue.id(3) } == 4)
}
