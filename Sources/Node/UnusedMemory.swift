import Link
import Primitives

/// What a link's slot has in the memory of the forwarding path besides its records: room for control frames, and for a
/// frame that comes in parts.
enum SlotMemory {
  static let byteCount = Arena.byteCount(FrameQueue.byteCount) + Arena.byteCount(Limits.frameBytesMax)
}

extension Node {
  /// Calls `body` with memory of slots without a link. Its bytes say nothing to anybody, so its pages may go back to the
  /// system until the next link touches them.
  public func forEachUnusedMemory(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    var first = 0
    while first < Limits.linksMax {
      var end = first
      while end < Limits.linksMax, links[end].state == .idle { end += 1 }
      if first < end {
        let bytes = first * SlotMemory.byteCount..<end * SlotMemory.byteCount
        body(UnsafeMutableRawBufferPointer(rebasing: slotMemory[bytes]))
      }
      first = end + 1
    }
  }
}
