import Frame
import Link
import Primitives
import TestSupport

/// A queue of one link. The queue has a frame pool of its own, or shares a pool with the other queues of its family.
final class Queue {
  private let memory = Borrowed(FrameQueue.byteCount)
  private let poolMemory: Borrowed
  private let pool: FramePool
  private var queue: FrameQueue

  convenience init() {
    let poolMemory = Borrowed(FramePool.byteCount)
    poolMemory.bytes.initializeMemory(as: UInt8.self, repeating: 0)
    self.init(poolMemory, FramePool(poolMemory.bytes))
  }

  private init(_ poolMemory: Borrowed, _ pool: FramePool) {
    self.poolMemory = poolMemory
    self.pool = pool
    queue = FrameQueue(memory.bytes, pool)
    queue.frameBytesMax = Limits.frameBytesMax
  }

  static func family(_ count: Int) -> [Queue] {
    let first = Queue()
    return [first] + (1..<count).map { _ in Queue(first.poolMemory, first.pool) }
  }

  // `pool` and `queue` point into memory that this object owns. `withExtendedLifetime` keeps the object alive during
  // each call.
  var drops: QueueDropCounters { withExtendedLifetime(self) { pool.drops } }
  var freeBytes: Int { withExtendedLifetime(self) { pool.freeBytes } }
  func heldBytes(by ingress: Int) -> Int { withExtendedLifetime(self) { pool.heldBytes(by: ingress) } }
  func hasRoom(for ingress: Int) -> Bool { withExtendedLifetime(self) { queue.hasRoom(for: ingress) } }
  func byteCount(_ priority: FramePriority) -> Int { withExtendedLifetime(self) { queue.byteCount(priority) } }
  func ownByteCount(_ priority: FramePriority) -> Int { withExtendedLifetime(self) { queue.ownByteCount(priority) } }
  var isEmpty: Bool { withExtendedLifetime(self) { queue.isEmpty } }
  func removeAll() { withExtendedLifetime(self) { queue.removeAll() } }
  var frameBytesMax: Int {
    get { queue.frameBytesMax }
    set { queue.frameBytesMax = newValue }
  }

  func id(_ number: UInt64) -> NodeID { NodeID(high: number, low: 1) }

  func append(
    _ payload: [UInt8], _ priority: FramePriority, source: UInt64 = 1, destination: UInt64 = 2, from ingress: Int = 0,
    isRelayed: Bool = false
  ) -> Bool {
    let header = FrameHeader(
      type: .segment, priority: priority, payloadByteCount: payload.count, destination: id(destination),
      source: id(source), identifier: 0)
    return queue.append(header, payload.span.bytes, from: ingress, isRelayed: isRelayed)
  }

  func appendControl(_ payload: [UInt8]) -> Bool {
    let header = FrameHeader(
      type: .advertisement, priority: .control, payloadByteCount: payload.count, source: id(1), identifier: 0)
    return queue.append(header, payload.span.bytes, from: FramePool.ownIngress, isRelayed: false)
  }

  func pop(_ room: Int, framesMax: Int = .max) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
      count = queue.pop(into: UnsafeMutableRawBufferPointer(buffer), framesMax: framesMax)
    }
  }

  func popAll() -> [(header: FrameHeader, payload: [UInt8])] {
    var all: [(header: FrameHeader, payload: [UInt8])] = []
    while true {
      let bytes = pop(Limits.frameBytesMax)
      if bytes.isEmpty { return all }
      all += frames(in: bytes)
    }
  }

  /// The number of blocks in the pool that contain a run of `byte`.
  func touchedBlocks(_ byte: UInt8) -> Int {
    stride(
      from: poolMemory.bytes.count - Limits.queueBlocksMax * Limits.queueBlockBytes, to: poolMemory.bytes.count,
      by: Limits.queueBlockBytes
    )
    .count { start in poolMemory.bytes[start + 1000] == byte && poolMemory.bytes[start + 1001] == byte }
  }
}
