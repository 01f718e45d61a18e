import Frame
import Primitives

/// How many bytes a link encrypts before its stream accepts them. Encrypted bytes keep their order, so an urgent frame
/// waits for all of them. A slow bearer therefore encrypts little ahead, a fast one enough to keep the stream busy from
/// one wake-up to the next.
public struct EncryptAhead: Equatable, Sendable {
  /// Encrypted, unsent bytes of a fast bearer; also the limit of any link.
  public static let bytesMax = 65_536

  /// The greatest number of encrypted, unsent bytes.
  public let limit: Int

  /// On a slow bearer, two frames of the greatest length: one is sent while the next is encrypted.
  public init(over bearer: BearerKind) {
    limit =
      switch bearer {
      case .bluetoothLE, .bluetoothClassic: 2 * (FrameHeader.byteCount + Link.payloadBytesMax(over: bearer))
      case .ethernet, .wifi, .wifiDirect, .loopback: Self.bytesMax
      }
  }

  /// How many bytes of frames to take from the node next, when `unsent` bytes are encrypted and unsent; nil from half
  /// of the limit on. The stream has room for all of them: at least half of the limit, or the longest frame.
  public func room(unsent: Int) -> Int? {
    unsent >= limit / 2 ? nil : min(limit - unsent, Limits.frameBytesMax)
  }
}
