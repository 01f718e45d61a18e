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
  /// As long as so many bytes are unsent nothing more is taken.
  public let enough: Int
  /// A bulk frame is taken only when the stream has reported room since it last took bytes. The kernel's buffer is then
  /// nearly empty, and until then an urgent frame goes first.
  public let waitsForRoom: Bool

  /// On a slow bearer one frame of the greatest length, when the kernel has all of the one before: its buffer is sent meanwhile.
  public init(over bearer: BearerKind) {
    waitsForRoom = bearer == .bluetoothLE
    switch bearer {
    case .bluetoothLE: (limit, enough) = (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE), 1)
    case .bluetoothClassic:
      // Two frames: one is sent while the next is encrypted.
      limit = 2 * (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothClassic))
      enough = limit / 2
    case .ethernet, .wifi, .wifiDirect, .loopback:
      // As long as there is room for another frame, so that much leaves in one write.
      (limit, enough) = (Self.bytesMax, Self.bytesMax - Limits.frameBytesMax + 1)
    }
  }

  /// How many bytes of frames to take from the node next, when `unsent` bytes are encrypted and unsent; nil from `enough`
  /// on. There is always room for the longest frame.
  public func room(unsent: Int) -> Int? {
    unsent >= enough ? nil : min(limit - unsent, Limits.frameBytesMax)
  }
}
