import Primitives
import Testing

/// Calls `body` with a queue of `capacity` bytes. The queue's memory is valid until `body` returns.
private func withQueue(_ capacity: Int, _ body: (inout ByteQueue) throws -> Void) rethrows {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
  defer { memory.deallocate() }
  var queue = ByteQueue(memory)
  try body(&queue)
}

private func append(_ bytes: [UInt8], to queue: inout ByteQueue) { queue.append(bytes.span.bytes) }

private func pop(_ count: Int, from queue: inout ByteQueue) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, initialized in
    queue.pop(count, into: buffer.baseAddress!)
    initialized = count
  }
}

@Test func `bytes leave the queue in the order of their arrival`() {
  withQueue(8) { queue in
    append([1, 2, 3], to: &queue)
    append([4, 5], to: &queue)
    #expect(pop(4, from: &queue) == [1, 2, 3, 4])
    #expect(pop(1, from: &queue) == [5])
    #expect(queue.isEmpty)
  }
}

@Test func `bytes that wrap around the end are read completely`() {
  withQueue(8) { queue in
    append([1, 2, 3, 4, 5, 6], to: &queue)
    #expect(pop(5, from: &queue) == [1, 2, 3, 4, 5])
    append([7, 8, 9, 10, 11, 12, 13], to: &queue)
    #expect(queue.free == 0)
    #expect((0..<8).map { queue[$0] } == [6, 7, 8, 9, 10, 11, 12, 13])
    #expect(pop(8, from: &queue) == [6, 7, 8, 9, 10, 11, 12, 13])
  }
}

@Test func `copying reads bytes across the wrap without removing them`() {
  withQueue(8) { queue in
    append([1, 2, 3, 4, 5, 6], to: &queue)
    queue.drop(6 - 1)
    append([7, 8, 9, 10], to: &queue)
    var copy = [UInt8](repeating: 0, count: 3)
    copy.withUnsafeMutableBytes { queue.copy(3, from: 2, into: $0.baseAddress!) }
    #expect(copy == [8, 9, 10])
    #expect(queue.count == 5)
  }
}

@Test func `an emptied queue accepts its whole capacity again`() {
  withQueue(8) { queue in
    append([1, 2, 3], to: &queue)
    queue.drop(3)
    #expect(queue.free == 8)
    append([1, 2, 3, 4, 5, 6, 7, 8], to: &queue)
    #expect(queue.free == 0)
    queue.removeAll()
    #expect(queue.isEmpty && queue.free == 8)
  }
}

@Test func `the queue matches a plain array over a thousand random steps`() {
  withQueue(37) { queue in
    var random = SeededRandom(seed: 7)
    var model: [UInt8] = []
    for _ in 0..<1000 {
      if random.chance(perThousand: 500) {
        let bytes = (0..<random.below(UInt64(queue.free + 1))).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        append(bytes, to: &queue)
        model += bytes
      } else {
        let count = Int(random.below(UInt64(model.count + 1)))
        #expect(pop(count, from: &queue) == [UInt8](model.prefix(count)))
        model.removeFirst(count)
      }
      #expect(queue.count == model.count)
    }
  }
}
