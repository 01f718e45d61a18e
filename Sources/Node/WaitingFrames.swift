import Frame
import Primitives

/// Advertisements and deny-lists whose signatures are checked later, oldest first. Checks are made in pieces, a few in
/// a row (`CheckBudget`). The links that delivered the frames share the memory.
struct WaitingFrames {
  static let byteCount = Limits.waitingFrameBytesMax
  private static let blockBytes = 64
  /// The bytes of the header before each frame. The header has the link's slot, or `removed`, and the number of the
  /// frame's blocks.
  private static let headBytes = 4
  private static let removed: UInt16 = .max

  private let memory: UnsafeMutableRawBufferPointer
  private var share = FairShare(capacity: byteCount / blockBytes)
  private var first = 0
  private var end = 0
  private(set) var count = 0

  /// `memory` has `byteCount` bytes and is aligned to two.
  init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

  var isEmpty: Bool { count == 0 }

  /// Stores a frame from a link. Returns false if the frame is too long, the link has used its share, or the memory is
  /// full.
  mutating func append(_ header: FrameHeader, _ payload: RawSpan, on slot: Int) -> Bool {
    let blocks = (Self.headBytes + FrameHeader.byteCount + payload.byteCount + Self.blockBytes - 1) / Self.blockBytes
    guard payload.byteCount <= Limits.advertisementBytesMax, share.mayTake(blocks, by: slot) else { return false }
    let byteCount = blocks * Self.blockBytes
    if end + byteCount > memory.count {
      compact()
      guard end + byteCount <= memory.count else { return false }
    }
    share.take(blocks, by: slot)
    store(UInt16(slot), blocks: UInt16(blocks), at: end)
    let frame = UnsafeMutableRawBufferPointer(rebasing: memory[end + Self.headBytes..<end + byteCount])
    var output = OutputRawSpan(buffer: frame, initializedCount: 0)
    header.write(to: &output)
    payload.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(rebasing: frame[FrameHeader.byteCount...]).copyMemory(from: $0)
    }
    end += byteCount
    count += 1
    return true
  }

  /// Removes the oldest frame, copies the frame to the start of `buffer`, and returns the slot of its link. `buffer`
  /// must have room for the frame.
  mutating func takeFirst(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    while first < end {
      let (slot, blocks) = head(at: first)
      let next = first + Int(blocks) * Self.blockBytes
      let frame = memory[first + Self.headBytes..<next]
      first = next
      if slot == Self.removed { continue }
      share.giveBack(Int(blocks), by: Int(slot))
      count -= 1
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: frame))
      if count == 0 { (first, end) = (0, 0) }
      return Int(slot)
    }
    return nil
  }

  /// Removes the frames of a link.
  mutating func remove(_ slot: Int) {
    var offset = first
    while offset < end {
      let (holder, blocks) = head(at: offset)
      if Int(holder) == slot {
        share.giveBack(Int(blocks), by: slot)
        count -= 1
        store(Self.removed, blocks: blocks, at: offset)
      }
      offset += Int(blocks) * Self.blockBytes
    }
    if count == 0 { (first, end) = (0, 0) }
  }

  private func head(at offset: Int) -> (slot: UInt16, blocks: UInt16) {
    (memory.load(fromByteOffset: offset, as: UInt16.self), memory.load(fromByteOffset: offset + 2, as: UInt16.self))
  }

  private func store(_ slot: UInt16, blocks: UInt16, at offset: Int) {
    memory.storeBytes(of: slot, toByteOffset: offset, as: UInt16.self)
    memory.storeBytes(of: blocks, toByteOffset: offset + 2, as: UInt16.self)
  }

  /// Moves the waiting frames to the front and drops the removed ones.
  private mutating func compact() {
    var offset = first, target = 0
    while offset < end {
      let (slot, blocks) = head(at: offset)
      let byteCount = Int(blocks) * Self.blockBytes
      if slot != Self.removed {
        UnsafeMutableRawBufferPointer(rebasing: memory[target..<target + byteCount])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[offset..<offset + byteCount]))
        target += byteCount
      }
      offset += byteCount
    }
    (first, end) = (0, target)
  }
}
