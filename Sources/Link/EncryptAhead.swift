import Frame
import Primitives

/// How much of a link is encrypted ahead of what its stream has taken. Bytes that are encrypted keep their order, so an
/// urgent frame waits for all of them: on a slow bearer little is encrypted ahead, on a fast one enough to keep the stream
/// busy from one wake-up to the next.
public struct EncryptAhead: Equatable, Sendable {
  /// Encrypted and unsent bytes of a fast bearer; also the most that any link may hold.
  public static let bytesMax = 65_536

  /// Encrypted and unsent bytes from which on the link wants none.
  public let limit: Int

  /// Twice the longest frame of a slow bearer: one leaves while the next is made.
  public init(over bearer: BearerKind) {
    limit =
      switch bearer {
      case .bluetoothLE: 2 * (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE))
      case .ethernet, .wifi, .wifiDirect, .loopback: Self.bytesMax
      }
  }

  /// How many bytes of frames to take from the node next, while `unsent` bytes are encrypted and unsent; nil when enough
  /// is ahead. What is taken fits the stream whole: half of the limit, or the longest frame.
  public func room(unsent: Int) -> Int? {
    unsent >= limit / 2 ? nil : min(limit - unsent, Limits.frameBytesMax)
  }
}
