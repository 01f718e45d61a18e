import Primitives

/// A circular buffer over a byte stream. The buffer starts without memory and grows on demand. Stream position p is
/// stored at index p modulo capacity. A position is in use while the owner may still read its byte. At most `capacity`
/// consecutive positions may be in use.
struct ByteRing: ~Copyable {
  /// The upper limit of `capacity`, in bytes.
  let capacityMax: Int
  private(set) var capacity = 0
  private var memory: UnsafeMutableRawPointer?
  private let budget: RingBudget

  init(capacityMax: Int, budget: RingBudget) {
    self.capacityMax = capacityMax
    self.budget = budget
  }

  deinit {
    memory?.deallocate()
    budget.giveBack(Self.cost(capacity))
  }

  /// Whether `reserve` would succeed.
  func canReserve(_ byteCount: Int) -> Bool {
    byteCount <= capacity
      || (byteCount <= capacityMax && Self.cost(grown(to: byteCount)) - Self.cost(capacity) <= budget.bytesFree)
  }

  /// Ensures a capacity of at least `byteCount` bytes. `start` is the first position in use. Returns false and changes
  /// nothing if `byteCount` exceeds `capacityMax` or the budget has too few free bytes.
  mutating func reserve(_ byteCount: Int, inUseFrom start: UInt64) -> Bool {
    guard byteCount > capacity else { return true }
    guard byteCount <= capacityMax else { return false }
    let larger = grown(to: byteCount)
    guard budget.take(Self.cost(larger) - Self.cost(capacity)) else { return false }
    let next = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    if let old = memory {
      var position = start
      var left = capacity
      while left > 0 {
        let from = Int(position % UInt64(capacity))
        let to = Int(position % UInt64(larger))
        let count = min(left, capacity - from, larger - to)
        (next + to).copyMemory(from: old + from, byteCount: count)
        position += UInt64(count)
        left -= count
      }
      old.deallocate()
    }
    memory = next
    capacity = larger
    return true
  }

  /// Frees the memory. No position in the ring is allowed to be in use.
  mutating func release() {
    memory?.deallocate()
    memory = nil
    budget.giveBack(Self.cost(capacity))
    capacity = 0
  }

  mutating func write(_ source: RawSpan, at position: UInt64) {
    precondition(source.byteCount <= capacity)
    source.withUnsafeBytes { bytes in
      guard let from = bytes.baseAddress, let memory else { return }
      let index = Int(position % UInt64(capacity))
      let first = min(bytes.count, capacity - index)
      (memory + index).copyMemory(from: from, byteCount: first)
      memory.copyMemory(from: from + first, byteCount: bytes.count - first)
    }
  }

  func read(at position: UInt64, into target: UnsafeMutableRawBufferPointer) {
    precondition(target.count <= capacity)
    guard let to = target.baseAddress, let memory else { return }
    let index = Int(position % UInt64(capacity))
    let first = min(target.count, capacity - index)
    to.copyMemory(from: memory + index, byteCount: first)
    (to + first).copyMemory(from: memory, byteCount: target.count - first)
  }

  /// Reads the message header at `position`: length (u32), then kind (u8).
  func messageHeader(at position: UInt64) -> (length: UInt32, kind: UInt8) {
    var length: UInt32 = 0
    for index in 0..<4 { length = length << 8 | UInt32(octet(at: position + UInt64(index))) }
    return (length, octet(at: position + 4))
  }

  mutating func writeMessageHeader(length: UInt32, kind: UInt8, at position: UInt64) {
    for index in 0..<4 { setOctet(UInt8(truncatingIfNeeded: length >> (24 - 8 * index)), at: position + UInt64(index)) }
    setOctet(kind, at: position + 4)
  }

  private func octet(at position: UInt64) -> UInt8 {
    guard let memory else { preconditionFailure("nothing was written") }
    return memory.load(fromByteOffset: Int(position % UInt64(capacity)), as: UInt8.self)
  }

  private mutating func setOctet(_ value: UInt8, at position: UInt64) {
    guard let memory else { preconditionFailure("nothing was reserved") }
    memory.storeBytes(of: value, toByteOffset: Int(position % UInt64(capacity)), as: UInt8.self)
  }

  /// The capacity to allocate for `byteCount` bytes. Capacities are powers of two, except the guaranteed size
  /// (`ChannelLimits.ringBytesMin`) and `capacityMax`.
  private func grown(to byteCount: Int) -> Int {
    var next = ChannelLimits.ringBytesFirst
    while next < byteCount {
      let isSure = next < ChannelLimits.ringBytesMin && byteCount <= ChannelLimits.ringBytesMin
      next = isSure ? min(2 * next, ChannelLimits.ringBytesMin) : 2 * next
    }
    return min(next, capacityMax)
  }

  /// The bytes of the shared budget that a ring of this capacity uses: those beyond the guaranteed size.
  private static func cost(_ capacity: Int) -> Int { max(0, capacity - ChannelLimits.ringBytesMin) }
}
