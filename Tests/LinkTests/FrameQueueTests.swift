import Frame
import Link
import Primitives
import TestSupport
import Testing

private let node = NodeID(high: 1, low: 2)

private func withQueue(_ body: (inout FrameQueue) throws -> Void) rethrows {
  let memory = Borrowed(FrameQueue.byteCount)
  var queue = FrameQueue(memory.bytes)
  try body(&queue)
}

private func append(_ payload: [UInt8], _ priority: FramePriority, to queue: inout FrameQueue) -> Bool {
  queue.append(
    FrameHeader(type: .segment, priority: priority, payloadByteCount: payload.count, source: node, identifier: 0),
    payload.span.bytes)
}

private func pop(_ room: Int, from queue: inout FrameQueue) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: max(room, 1)) { buffer, count in
    count = queue.pop(into: UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: room))
  }
}

@Test func theMostUrgentFrameLeavesFirst() {
  withQueue { queue in
    let order: [FramePriority] = [.bulk, .interactive, .control, .realtime]
    for priority in order { _ = append([priority.rawValue], priority, to: &queue) }
    #expect(frames(in: pop(10_000, from: &queue)).map(\.payload) == [[0], [1], [2], [3]])
  }
}

@Test func framesOfOnePriorityKeepTheirOrder() {
  withQueue { queue in
    for number in 0..<5 { _ = append([UInt8(number)], .bulk, to: &queue) }
    #expect(frames(in: pop(10_000, from: &queue)).map(\.payload) == [[0], [1], [2], [3], [4]])
  }
}

@Test func onlyWholeFramesArePopped() {
  withQueue { queue in
    _ = append([UInt8](repeating: 1, count: 100), .control, to: &queue)
    _ = append([UInt8](repeating: 2, count: 100), .control, to: &queue)
    #expect(pop(147, from: &queue).isEmpty)
    #expect(pop(148 + 147, from: &queue).count == 148)
    #expect(pop(148, from: &queue).count == 148)
    #expect(queue.isEmpty)
  }
}

@Test func aLessUrgentFrameDoesNotOvertakeOneThatDoesNotFit() {
  withQueue { queue in
    _ = append([UInt8](repeating: 1, count: 1000), .control, to: &queue)
    _ = append([2], .bulk, to: &queue)
    #expect(pop(500, from: &queue).isEmpty)
  }
}

@Test(arguments: [
  (FramePriority.control, 262_144), (.realtime, 32_768), (.interactive, 65_536), (.bulk, 262_144),
]) func aFullPriorityRefusesTheFrameWhole(priority: FramePriority, capacity: Int) {
  withQueue { queue in
    let payload = [UInt8](repeating: 0, count: 4096 - 48)
    for _ in 0..<capacity / 4096 { #expect(append(payload, priority, to: &queue)) }
    #expect(queue.byteCount(priority) == capacity)
    #expect(!append([1], priority, to: &queue))
    #expect(queue.byteCount == capacity)
  }
}

@Test func aFullPriorityLeavesTheOthersTheirRoom() {
  withQueue { queue in
    while append([UInt8](repeating: 0, count: 4000), .bulk, to: &queue) {}
    #expect(append([1], .control, to: &queue))
    #expect(append([1], .realtime, to: &queue))
    #expect(append([1], .interactive, to: &queue))
  }
}

@Test func anEmptiedQueueHoldsNothing() {
  withQueue { queue in
    _ = append([1], .bulk, to: &queue)
    _ = append([1], .control, to: &queue)
    queue.removeAll()
    #expect(queue.isEmpty && queue.byteCount == 0 && pop(1000, from: &queue).isEmpty)
  }
}
