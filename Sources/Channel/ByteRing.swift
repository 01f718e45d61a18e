/// A stretch of a byte stream in a fixed block of memory. Position p of the stream is kept at p modulo
/// capacity; the owner sees to it that no more than `capacity` positions are in use.
struct ByteRing: ~Copyable {
  let capacity: Int
  // Left untouched until written: a channel that carries little occupies little memory.
  private let memory: UnsafeMutableRawPointer

  init(capacity: Int) {
    self.capacity = capacity
    memory = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { memory.deallocate() }

  func write(_ source: RawSpan, at position: UInt64) {
    precondition(source.byteCount <= capacity)
    source.withUnsafeBytes { bytes in
      guard let from = bytes.baseAddress else { return }
      let index = Int(position % UInt64(capacity))
      let first = min(bytes.count, capacity - index)
      (memory + index).copyMemory(from: from, byteCount: first)
      memory.copyMemory(from: from + first, byteCount: bytes.count - first)
    }
  }

  func read(at position: UInt64, into target: UnsafeMutableRawBufferPointer) {
    precondition(target.count <= capacity)
    guard let to = target.baseAddress else { return }
    let index = Int(position % UInt64(capacity))
    let first = min(target.count, capacity - index)
    to.copyMemory(from: memory + index, byteCount: first)
    (to + first).copyMemory(from: memory, byteCount: target.count - first)
  }

  func octet(at position: UInt64) -> UInt8 {
    memory.load(fromByteOffset: Int(position % UInt64(capacity)), as: UInt8.self)
  }

  /// A message header (u32 length, u8 kind) at `position`.
  func messageHeader(at position: UInt64) -> (length: UInt32, kind: UInt8) {
    var length: UInt32 = 0
    for index in 0..<4 { length = length << 8 | UInt32(octet(at: position + UInt64(index))) }
    return (length, octet(at: position + 4))
  }

  func writeMessageHeader(length: UInt32, kind: UInt8, at position: UInt64) {
    for index in 0..<4 { setOctet(UInt8(truncatingIfNeeded: length >> (24 - 8 * index)), at: position + UInt64(index)) }
    setOctet(kind, at: position + 4)
  }

  private func setOctet(_ value: UInt8, at position: UInt64) {
    memory.storeBytes(of: value, toByteOffset: Int(position % UInt64(capacity)), as: UInt8.self)
  }
}
