import Frame
import Link
import Primitives

/// Passes frames to a tap, which observes the frames of all links. Without a tap this code does not run.
extension Node {
  /// Passes a complete frame that arrived inside TLS to `tap`.
  func show(received frame: UnsafeRawBufferPointer, on slot: Int, to tap: any FrameTap) {
    let (header, payload) = parts(of: frame)
    show(header, payload, slot, isSent: false, isOutsideTLS: false, to: tap)
  }

  /// Passes consecutive frames that are about to enter the stream to `tap`.
  func show(sent frames: UnsafeRawBufferPointer, on slot: Int, to tap: any FrameTap) {
    let isBypassed = isBypassAgreed(slot)
    var offset = 0
    while offset < frames.count {
      let rest = UnsafeRawBufferPointer(rebasing: frames[offset...])
      let count = FrameHeader.frameByteCount(of: rest.bytes)
      let (header, payload) = parts(of: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      show(header, payload, slot, isSent: true, isOutsideTLS: isBypassed && FrameHeader.isSealed(rest.bytes), to: tap)
      offset += count
    }
  }

  func show(
    _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, _ slot: Int, isSent: Bool, isOutsideTLS: Bool,
    to tap: any FrameTap
  ) {
    let passage = FramePassage(
      slot: slot, neighbour: links[slot].peer, bearer: links[slot].bearer, isSent: isSent, isOutsideTLS: isOutsideTLS)
    tap.passed(passage, header, payload)
  }

  private func parts(
    of frame: UnsafeRawBufferPointer
  ) -> (header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) {
    (
      UnsafeRawBufferPointer(rebasing: frame[..<FrameHeader.byteCount]),
      UnsafeRawBufferPointer(rebasing: frame[FrameHeader.byteCount...])
    )
  }
}
