import Primitives

/// Payload of frame type 35: the answer to a segment that was meant for another life of its receiver.
///
///     0–7 the destination epoch of that segment · 8–15 the epoch of whoever answers
///
/// A reset counts only at a channel that still sends to the first epoch. An old reset names an epoch that the
/// channel has left behind, so however late and however often it arrives it cannot end a fresh channel.
/// Acknowledgements and resets are never answered with a reset: two ends cannot keep each other busy.
public struct Reset: Equatable, Sendable {
  public static let byteCount = 16

  public var meantEpoch: UInt64
  public var currentEpoch: UInt64

  public init(meantEpoch: UInt64, currentEpoch: UInt64) {
    self.meantEpoch = meantEpoch
    self.currentEpoch = currentEpoch
  }

  public init(_ payload: RawSpan) throws(PayloadRefusal) {
    guard payload.byteCount >= Self.byteCount else { throw .tooShort }
    guard payload.byteCount == Self.byteCount else { throw .tooLong }
    meantEpoch = payload.word64(0)
    currentEpoch = payload.word64(8)
    guard meantEpoch != currentEpoch else { throw .sameEpoch }
  }

  /// Writes `byteCount` bytes to the start of `buffer`, which must have them.
  public func encode(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.store(bigEndian: meantEpoch, at: 0)
    buffer.store(bigEndian: currentEpoch, at: 8)
  }
}
