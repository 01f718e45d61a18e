import Frame
import Link
import Primitives
import TestSupport
import Testing

@Test func `the most urgent frame leaves first`() {
  let queue = Queue()
  for priority in [FramePriority.bulk, .interactive, .realtime] { #expect(queue.append([priority.rawValue], priority)) }
  #expect(queue.appendControl([0]))
  #expect(queue.popAll().map(\.payload) == [[0], [1], [2], [3]])
}

@Test func `a routed frame with control priority is queued as interactive`() {
  let queue = Queue()
  #expect(queue.append([9], .control) && queue.append([2], .realtime) && queue.appendControl([1]))
  #expect(queue.popAll().map(\.payload) == [[1], [2], [9]])
}

@Test func `frames of a flow keep their order`() {
  let queue = Queue()
  for number in 0..<100 { #expect(queue.append([UInt8](repeating: UInt8(number), count: number * 40 + 1), .bulk)) }
  #expect(queue.popAll().map { Int($0.payload[0]) } == Array(0..<100))
}

@Test func `frames of every length leave the queue unchanged`() {
  let queue = Queue()
  var random = SeededRandom(seed: 4)
  for length in Array(1...100) + [1999, 2000, 2001, 2047, 2048, 2049, 4048, 16_639, 16_640] {
    let payload = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    #expect(queue.append(payload, .bulk, source: 7, destination: 8))
    let popped = queue.popAll()
    #expect(popped.map(\.payload) == [payload], "\(length)")
    #expect(popped.first?.header.source == queue.id(7) && popped.first?.header.destination == queue.id(8))
  }
}

@Test func `only whole frames are popped`() {
  let queue = Queue()
  #expect(queue.append([UInt8](repeating: 1, count: 100), .bulk) && queue.append([2], .bulk))
  #expect(queue.pop(147).isEmpty && queue.pop(148).count == 148 && queue.pop(48).isEmpty && queue.pop(49).count == 49)
  #expect(queue.isEmpty)
}

@Test func `one pop returns at most the bytes of the link's longest frame`() {
  let queue = Queue()
  queue.frameBytesMax = 4144
  for _ in 0..<10 { #expect(queue.append([UInt8](repeating: 1, count: 4000), .bulk)) }
  #expect(queue.pop(100_000).count == 4048)
  for _ in 0..<100 { #expect(queue.append([1], .interactive)) }
  #expect(queue.pop(100_000).count == 84 * 49)
}

@Test func `one pop returns at most the frames that the caller accepts`() {
  let queue = Queue()
  #expect(queue.append([1], .interactive) && queue.append([2], .bulk) && queue.appendControl([3]))
  let popped = (0..<4).map { _ in frames(in: queue.pop(1000, framesMax: 1)).map(\.payload) }
  #expect(popped == [[[3]], [[1]], [[2]], []])
}

@Test func `a less urgent frame does not overtake a frame that does not fit`() {
  let queue = Queue()
  #expect(queue.append([UInt8](repeating: 1, count: 1000), .interactive) && queue.append([2], .bulk))
  #expect(queue.pop(500).isEmpty)
}

@Test func `removing all frames frees all blocks`() {
  let queue = Queue()
  for priority in [FramePriority.bulk, .interactive, .realtime] {
    for source in 1...3 { #expect(queue.append([1], priority, source: UInt64(source))) }
  }
  #expect(queue.appendControl([1]))
  queue.removeAll()
  #expect(queue.isEmpty && queue.pop(1000).isEmpty)
  #expect(queue.freeBytes == Limits.queueBlocksMax * Limits.queueBlockBytes)
}

@Test func `the node's own frames are counted separately`() {
  let queue = Queue()
  #expect(queue.append([1], .bulk, from: 3) && queue.append([1, 2], .bulk, from: FramePool.ownIngress))
  #expect(queue.byteCount(.bulk) == 49 + 50 && queue.ownByteCount(.bulk) == 50)
  _ = queue.popAll()
  #expect(queue.byteCount(.bulk) == 0 && queue.ownByteCount(.bulk) == 0)
}

// MARK: Turns

@Test func `flows take turns by bytes`() {
  let queue = Queue()
  queue.frameBytesMax = 4144
  // One flow has long frames and another flow has short frames, and both flows always have frames waiting.
  for _ in 0..<40 { #expect(queue.append([UInt8](repeating: 1, count: 4000), .bulk, source: 1)) }
  for _ in 0..<900 { #expect(queue.append([UInt8](repeating: 2, count: 100), .bulk, source: 2)) }
  var bytes: [UInt8: Int] = [:]
  for _ in 0..<200 {
    for frame in frames(in: queue.pop(4144)) { bytes[frame.payload[0], default: 0] += frame.header.frameByteCount }
    if bytes[2, default: 0] > 80_000 { break }
  }
  let ratio = Double(bytes[1, default: 0]) / Double(bytes[2, default: 1])
  #expect(ratio > 0.9 && ratio < 1.1, "\(bytes)")
}

@Test func `a new flow waits for at most one turn of each other flow`() {
  let queue = Queue()
  queue.frameBytesMax = 4144
  for source in 1...3 {
    for _ in 0..<30 {
      #expect(queue.append([UInt8](repeating: UInt8(source), count: 4000), .bulk, source: UInt64(source)))
    }
  }
  for _ in 0..<7 { _ = queue.pop(4144) }
  #expect(queue.append([9], .bulk, source: 9))
  var before = 0
  while queue.pop(4144).last != 9 { before += 1 }
  #expect(before <= 3)
}

@Test func `every flow sends its share, however many flows there are`() {
  let queue = Queue()
  queue.frameBytesMax = 549
  for source in 1...20 {
    for _ in 0..<20 {
      #expect(
        queue.append(
          [UInt8(source)] + [UInt8](repeating: 0, count: 500), .bulk, source: UInt64(source), from: source % 4))
    }
  }
  var counts = [Int](repeating: 0, count: 21)
  for _ in 0..<200 { counts[Int(queue.pop(549)[48])] += 1 }
  #expect(counts.dropFirst().min() == 10 && counts.max() == 10)
}

/// A neighbour gains nothing by inventing flows, because the source and destination of a frame are not proven.
@Test(arguments: [1, 7, 64]) func `a neighbour with many flows gets no more than a neighbour with one`(flows: Int) {
  let queue = Queue()
  queue.frameBytesMax = 4144
  let payload = [UInt8](repeating: 0, count: 1000)
  var bytes: [Int] = [0, 0]
  for round in 0..<2000 {
    // Each of the two neighbours offers more than the link can send.
    for flow in 0..<5 {
      _ = queue.append([0] + payload, .bulk, source: UInt64((round * 5 + flow) % flows + 2), from: 1)
      _ = queue.append([1] + payload, .bulk, source: 1, from: 2)
    }
    for frame in frames(in: queue.pop(4144)) { bytes[Int(frame.payload[0])] += frame.header.frameByteCount }
  }
  let share = Double(bytes[1]) / Double(bytes[0] + bytes[1])
  #expect(share > 0.48 && share < 0.52, "\(bytes)")
}

@Test func `a neighbour that fills a link leaves room for others`() {
  let queue = Queue()
  let payload = [UInt8](repeating: 0, count: 2000)
  for source in 1...60 {
    for _ in 0..<20 { _ = queue.append(payload, .bulk, source: UInt64(source), from: 1) }
    _ = queue.append(payload, .realtime, source: 99, from: 2)
  }
  #expect(queue.byteCount(.bulk) <= Limits.linkQueueBytesMax / 2 && queue.drops[.linkQuota] > 0)
  // The frames of the neighbour that fills the link displace no frame of the other neighbour.
  #expect(queue.byteCount(.realtime) > 30_000)
  #expect((0..<60).allSatisfy { _ in queue.append(payload, .bulk, source: 1, from: 2) })
}

/// Greedy and modest flows come from the same neighbour, for example from a relay in front of their sources.
@Test func `a flow finds room beside many greedy flows of the same neighbour`() {
  let queue = Queue()
  let payload = [UInt8](repeating: 0, count: 1000)
  for _ in 0..<100 {
    for source in 1...50 { _ = queue.append(payload, .bulk, source: UInt64(source), from: 1) }
  }
  #expect((0..<3).allSatisfy { _ in queue.append(payload, .bulk, source: 99, from: 1) })
}

@Test func `the node's own frames take turns with those of its neighbours`() {
  let queue = Queue()
  queue.frameBytesMax = 549
  let payload = [UInt8](repeating: 0, count: 500)
  for ingress in [0, 5, FramePool.ownIngress] {
    for source in 1...4 {
      for _ in 0..<40 {
        #expect(queue.append([UInt8(ingress)] + payload, .bulk, source: UInt64(source), from: ingress))
      }
    }
  }
  var counts: [UInt8: Int] = [:]
  for _ in 0..<90 { counts[queue.pop(549)[48], default: 0] += 1 }
  #expect(counts == [0: 30, 5: 30, 64: 30])
}

/// The queue groups waiting frames by the neighbour that sent them. Groups appear and disappear on several links. No
/// frame is lost, and each group is freed.
@Test func `groups of frames are created and freed as flows begin and end`() {
  let queues = Queue.family(8)
  for round in 0..<40 {
    for ingress in 0...64 {
      #expect(queues[(ingress + round) % 8].append([UInt8(ingress)], .bulk, from: ingress))
      #expect(queues[(ingress + round) % 8].append([UInt8(ingress)], .interactive, from: ingress))
      #expect(queues[(ingress + round) % 8].append([UInt8(ingress)], .realtime, from: ingress))
    }
    #expect(queues.reduce(0) { $0 + $1.popAll().count } == 3 * 65)
  }
}

@Test func `a priority that was passed over for long sends one frame`() {
  let queue = Queue()
  for number in 0..<10 { #expect(queue.append([3, UInt8(number)], .bulk)) }
  var sent = 0
  var bulk: [Int] = []
  for round in 0..<200 {
    while queue.byteCount(.interactive) < 20_000 {
      #expect(queue.append([UInt8](repeating: 2, count: 5000), .interactive))
    }
    for frame in frames(in: queue.pop(5048)) {
      if frame.payload[0] == 3 { bulk.append(sent) } else { sent += frame.header.frameByteCount }
    }
    if round > 0 && queue.byteCount(.bulk) == 0 { break }
  }
  #expect(bulk.count == 10)
  for (first, second) in zip([0] + bulk, bulk) { #expect(second - first >= 65_536 && second - first < 75_000) }
}

// MARK: Quotas

@Test(arguments: [(FramePriority.interactive, 65_536), (.bulk, 262_144)])
func `a flow holds at most the bytes that its priority allows`(priority: FramePriority, bytes: Int) {
  let queue = Queue()
  let payload = [UInt8](repeating: 0, count: 4096 - 48)
  for _ in 0..<bytes / 4096 { #expect(queue.append(payload, priority)) }
  #expect(!queue.append([1], priority) && queue.drops[.flowQuota] == 1)
  // Each flow has a quota of its own.
  #expect(queue.append([1], priority, source: 2))
  #expect(queue.byteCount(priority) == bytes + 49)
}

@Test func `a flow holds at most a thousand frames`() {
  let queue = Queue()
  for _ in 0..<Limits.flowFramesMax { #expect(queue.append([1], .bulk)) }
  #expect(!queue.append([1], .bulk) && queue.drops[.flowQuota] == 1)
}

@Test func `the oldest realtime frames are dropped first`() {
  let queue = Queue()
  for number in 0..<40 { #expect(queue.append([UInt8(number)] + [UInt8](repeating: 0, count: 4000), .realtime)) }
  #expect(queue.popAll().map(\.payload[0]) == Array(32..<40))
  #expect(queue.drops[.overtaken] == 32 && queue.drops.sum == 32)
}

@Test func `reliable frames take the room of realtime frames`() {
  let queue = Queue()
  let payload = [UInt8](repeating: 0, count: 8000)
  for source in 1...4 {
    for _ in 0..<4 { #expect(queue.append(payload, .realtime, source: UInt64(source), from: 3)) }
  }
  var accepted = 0
  for source in 11...20 {
    for _ in 0..<30 where queue.append(payload, .bulk, source: UInt64(source), from: 3) { accepted += 1 }
  }
  #expect(queue.byteCount(.realtime) == 0 && queue.drops[.overtaken] == 16)
  #expect(accepted * 8048 > Limits.linkQueueBytesMax / 2 - 5 * 8048)
  #expect(queue.drops[.linkQuota] == UInt64(300 - accepted))
}

@Test func `a neighbour that does not read uses at most the quota of its link`() {
  let queue = Queue()
  for source in 1...40 {
    for _ in 0..<20 {
      _ = queue.append([UInt8](repeating: 0, count: 2000), .bulk, source: UInt64(source), from: source)
    }
  }
  let held = Limits.queueBlocksMax * Limits.queueBlockBytes - queue.freeBytes
  #expect(held <= Limits.linkQueueBytesMax && held > Limits.linkQueueBytesMax * 9 / 10)
  #expect(queue.drops[.linkQuota] > 0)
}

@Test func `one neighbour holds at most its quota over all links`() {
  let queues = Queue.family(8)
  for queue in queues {
    for source in 1...8 {
      for _ in 0..<60 { _ = queue.append([UInt8](repeating: 0, count: 4000), .bulk, source: UInt64(source), from: 5) }
    }
  }
  #expect(queues[0].heldBytes(by: 5) <= Limits.neighbourQueueBytesMax)
  #expect(queues[0].heldBytes(by: 5) > Limits.neighbourQueueBytesMax - 10_000)
  #expect(queues[0].drops[.neighbourQuota] > 0)
}

@Test func `a late neighbour soon has as much room as each greedy one`() {
  let queues = Queue.family(30)
  let payload = [UInt8](repeating: 0, count: 16_640)
  for _ in 0..<200 {
    for queue in queues {
      for ingress in 0..<20 {
        _ = queue.append([UInt8](repeating: 0, count: 16_640), .bulk, source: UInt64(ingress), from: ingress)
      }
    }
  }
  let pool = queues[0]
  let held = (0..<20).map { pool.heldBytes(by: $0) }
  #expect(held.min()! > 150_000 && held.max()! < 250_000)
  #expect(pool.freeBytes >= held.max()! - 20_000)
  // The latecomer gets at least 40 % of a greedy neighbour's room at once. When frames have left, its share is about
  // equal.
  func fill(_ ingress: Int) { for queue in queues { _ = queue.append(payload, .bulk, source: 99, from: ingress) } }
  for _ in 0..<20 { fill(63) }
  #expect(pool.heldBytes(by: 63) >= held.max()! * 4 / 10)
  let all = Array(0..<20) + [63]
  for round in 0..<210 {
    for queue in queues {
      _ = queue.pop(Limits.frameBytesMax)
      for index in all.indices {
        let ingress = all[(index + round) % all.count]
        _ = queue.append(payload, .bulk, source: UInt64(ingress), from: ingress)
      }
    }
  }
  let average = all.reduce(0) { $0 + pool.heldBytes(by: $1) } / all.count
  #expect(pool.heldBytes(by: 63) > average * 7 / 10)
}

@Test func `the room for a frame is known before the frame is built`() {
  let queue = Queue()
  #expect(queue.hasRoom(for: 3))
  var count = 0
  var source: UInt64 = 1
  while queue.hasRoom(for: 3) {
    if !queue.append([UInt8](repeating: 0, count: 16_640), .bulk, source: source, from: 3) {
      source += 1
    } else {
      count += 1
    }
  }
  #expect(count * 16_688 > Limits.linkQueueBytesMax / 2 - 3 * 16_688)
  _ = queue.popAll()
  #expect(queue.hasRoom(for: 3))
}

@Test func `control frames have a reserve that no other frame uses`() {
  let queues = Queue.family(40)
  for ingress in 0..<40 {
    for queue in queues {
      while queue.append([UInt8](repeating: 0, count: 2000), .interactive, source: UInt64(ingress), from: ingress) {}
    }
  }
  for queue in queues {
    #expect(queue.appendControl([UInt8](repeating: 7, count: 2048)))
    #expect(frames(in: queue.pop(5000)).first?.payload.count == 2048)
  }
}

@Test func `a full control reserve drops the frame`() {
  let queue = Queue()
  var count = 0
  while queue.appendControl([UInt8](repeating: 1, count: 8)) { count += 1 }
  #expect(count == Limits.queueBytesMaxControl / 56 && queue.drops[.controlFull] == 1)
}

// MARK: The pool

/// Frames of all lengths come and go on several links in random order. Each frame leaves unchanged, and at the end the
/// complete pool is free.
@Test func `the pool loses no frame and mixes no frames up`() {
  let queues = Queue.family(4)
  var random = SeededRandom(seed: 11)
  var waiting: [[UInt64: [UInt8]]] = Array(repeating: [:], count: 4)
  var next: UInt8 = 0
  for _ in 0..<20_000 {
    let which = Int(random.below(4))
    let queue = queues[which]
    if random.chance(perThousand: 520) {
      let source = random.below(6) + 1
      let length = Int(random.below(random.chance(perThousand: 200) ? 16_640 : 300)) + 1
      next &+= 1
      if queue.append([UInt8](repeating: next, count: length), .bulk, source: source, from: Int(source)) {
        waiting[which][source, default: []].append(next)
      }
    } else {
      for frame in frames(in: queue.pop(Limits.frameBytesMax)) {
        let source = frame.header.source.high
        #expect(waiting[which][source]?.first == frame.payload[0] && Set(frame.payload).count == 1)
        waiting[which][source]?.removeFirst()
      }
    }
  }
  for which in 0..<4 {
    for frame in queues[which].popAll() { waiting[which][frame.header.source.high]?.removeFirst() }
    #expect(waiting[which].values.reduce(0) { $0 + $1.count } == 0)
  }
  #expect(queues[0].freeBytes == Limits.queueBlocksMax * Limits.queueBlockBytes)
  #expect((0...64).allSatisfy { queues[0].heldBytes(by: $0) == 0 })
}

@Test func `the block that was freed last is used first`() {
  // A long sequence of single frames touches no more memory than the longest frame needs.
  let queue = Queue()
  for _ in 0..<1000 {
    #expect(queue.append([UInt8](repeating: 0xAB, count: 16_640), .bulk))
    _ = queue.popAll()
  }
  #expect(queue.touchedBlocks(0xAB) <= 10)
}
