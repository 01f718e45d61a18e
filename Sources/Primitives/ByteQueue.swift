/// A FIFO queue of bytes in a ring of memory that the caller owns.
///
/// An empty queue restarts at the beginning of the ring, so a short queue touches only the first pages of its memory.
public struct ByteQueue {
  private let memory: UnsafeMutableRawBufferPointer
  private var head = 0
  public private(set) var count = 0

  /// `memory` must outlive the queue. Nothing else may use the memory.
  public init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

  public var capacity: Int { memory.count }
  public var free: Int { memory.count - count }
  public var isEmpty: Bool { count == 0 }

  /// Appends all of `bytes`. Traps when `free` is less than `bytes.byteCount`.
  public mutating func append(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { append($0) }
  }

  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count <= free)
    guard let source = bytes.baseAddress, let base = memory.baseAddress else { return }
    var tail = head + count
    if tail >= memory.count { tail -= memory.count }
    let first = min(bytes.count, memory.count - tail)
    (base + tail).copyMemory(from: source, byteCount: first)
    base.copyMemory(from: source + first, byteCount: bytes.count - first)
    count += bytes.count
  }

  /// Copies the first `byteCount` bytes to `destination` and removes them from the queue. Traps when the queue holds
  /// fewer bytes.
  public mutating func pop(_ byteCount: Int, into destination: UnsafeMutableRawPointer) {
    copy(byteCount, from: 0, into: destination)
    drop(byteCount)
  }

  /// Copies `byteCount` bytes starting at `offset` to `destination`. The bytes stay in the queue.
  public func copy(_ byteCount: Int, from offset: Int, into destination: UnsafeMutableRawPointer) {
    precondition(offset >= 0 && byteCount >= 0 && offset + byteCount <= count)
    guard let base = memory.baseAddress else { return }
    var start = head + offset
    if start >= memory.count { start -= memory.count }
    let first = min(byteCount, memory.count - start)
    destination.copyMemory(from: base + start, byteCount: first)
    (destination + first).copyMemory(from: base, byteCount: byteCount - first)
  }

  /// The byte at `offset`, counted from the front.
  public subscript(offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < count)
    var index = head + offset
    if index >= memory.count { index -= memory.count }
    return memory[index]
  }

  /// Removes the first `byteCount` bytes. Traps when the queue holds fewer bytes.
  public mutating func drop(_ byteCount: Int) {
    precondition(byteCount >= 0 && byteCount <= count)
    count -= byteCount
    head += byteCount
    if head >= memory.count { head -= memory.count }
    if count == 0 { head = 0 }
  }

  public mutating func removeAll() {
    head = 0
    count = 0
  }
}
