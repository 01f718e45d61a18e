import Frame
import Primitives

/// Splits a received byte stream into frames. A frame that is complete in the input is returned without a copy. Any
/// other frame is assembled in the inbox's own memory.
public struct FrameInbox {
  private let memory: UnsafeMutableRawBufferPointer
  private var held = 0

  /// `memory` has at least `Limits.frameBytesMax` bytes (one frame) and must not be used for anything else.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Limits.frameBytesMax)
    self.memory = memory
  }

  /// Returns the next frame and moves `offset` past it. Returns nil if `input` from `offset` on does not complete a
  /// frame; the bytes are then stored, and `offset` is moved to the end. The result is valid until the next call, and
  /// only while `input` is valid.
  ///
  /// Throws `.unknownVersion` or `.overLength`. After an error the frame boundaries are unknown, so the link must be
  /// closed.
  public mutating func next(
    _ input: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(FrameError) -> UnsafeRawBufferPointer? {
    if held == 0 {
      let rest = UnsafeRawBufferPointer(rebasing: input[offset...])
      if let byteCount = try FrameHeader.frameByteCount(beginning: rest.bytes), byteCount <= rest.count {
        offset += byteCount
        return UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
      }
    }
    // Bytes are copied first up to the end of the length field, then up to the end of the frame.
    take(upTo: FrameHeader.lengthEnd, input, &offset)
    let begun = UnsafeRawBufferPointer(rebasing: memory[..<held])
    guard let byteCount = try FrameHeader.frameByteCount(beginning: begun.bytes) else { return nil }
    take(upTo: byteCount, input, &offset)
    if held < byteCount { return nil }
    held = 0
    return UnsafeRawBufferPointer(rebasing: memory[..<byteCount])
  }

  /// Discards an incomplete frame.
  public mutating func removeAll() { held = 0 }

  private mutating func take(upTo end: Int, _ input: UnsafeRawBufferPointer, _ offset: inout Int) {
    let count = min(max(end - held, 0), input.count - offset)
    if count <= 0 { return }
    UnsafeMutableRawBufferPointer(rebasing: memory[held..<held + count])
      .copyMemory(from: UnsafeRawBufferPointer(rebasing: input[offset..<offset + count]))
    held += count
    offset += count
  }
}
