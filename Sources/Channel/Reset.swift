import Primitives

/// Payload of frame type 35: the answer to a segment that was addressed to another epoch of its receiver.
///
///     0–7 the destination epoch of that segment · 8–15 the current epoch of the answering node
///
/// A channel accepts a reset only if it still sends to the epoch in bytes 0–7. An old reset names an epoch that is no
/// longer in use. So an old reset cannot end a new channel, however late or often it arrives. Acknowledgements and
/// resets are never answered with a reset, so two ends cannot cause each other to send forever.
public struct Reset: Equatable, Sendable {
  public static let byteCount = 16

  public var meantEpoch: UInt64
  public var currentEpoch: UInt64

  public init(meantEpoch: UInt64, currentEpoch: UInt64) {
    self.meantEpoch = meantEpoch
    self.currentEpoch = currentEpoch
  }

  public init(_ payload: RawSpan) throws(PayloadError) {
    guard payload.byteCount >= Self.byteCount else { throw .tooShort }
    guard payload.byteCount == Self.byteCount else { throw .tooLong }
    meantEpoch = payload.word64(0)
    currentEpoch = payload.word64(8)
    guard meantEpoch != currentEpoch else { throw .sameEpoch }
  }

  /// Writes `byteCount` bytes to the start of `buffer`, which must be at least that long.
  public func encode(into buffer: UnsafeMutableRawBufferPointer) {
    buffer.write { output in
      output.append(bigEndian: meantEpoch)
      output.append(bigEndian: currentEpoch)
    }
  }
}
