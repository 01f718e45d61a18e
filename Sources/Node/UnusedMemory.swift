import Link
import Primitives

/// The memory of one link slot on the forwarding path, besides the link's records: control frames, and one frame that
/// arrives in parts.
enum SlotMemory {
  static let byteCount = Arena.byteCount(FrameQueue.byteCount) + Arena.byteCount(Limits.frameBytesMax)
}

extension Node {
  /// Calls `body` with the memory of link slots without a link. The content of this memory is unused, so its pages may
  /// be returned to the system until the next link touches them.
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
