import Frame
import Primitives

/// Splits a byte stream into frames. A frame that lies whole in the input is returned in place; any other is assembled
/// in the inbox's own memory.
public struct FrameInbox {
  private let memory: UnsafeMutableRawBufferPointer
  private var held = 0

  /// `memory` has at least `Limits.frameBytesMax` bytes (one frame). No one else may use it.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Limits.frameBytesMax)
    self.memory = memory
  }

  /// The next frame, or nil when `input` from `offset` on does not complete one: those bytes are then stored, and
  /// `offset` is at the end. The result is valid until the next call and as long as `input` is.
  ///
  /// Throws `.unknownVersion` or `.overLength`: the frame boundaries are lost, and the link must be closed.
  public mutating func next(
    _ input: UnsafeRawBufferPointer, _ offset: inout Int
  ) throws(FrameRefusal) -> UnsafeRawBufferPointer? {
    if held == 0 {
      let rest = UnsafeRawBufferPointer(rebasing: input[offset...])
      if let byteCount = try FrameHeader.frameByteCount(beginning: rest.bytes), byteCount <= rest.count {
        offset += byteCount
        return UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
      }
    }
    // First as many bytes as tell the length, then the rest of the frame.
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
