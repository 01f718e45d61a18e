import Frame
import Primitives

/// The number of bytes that a link may encrypt before its stream accepts them.
///
/// Encrypted bytes are sent in order, so an urgent frame waits for all bytes that were encrypted before it. A link over
/// a slow bearer therefore encrypts little ahead. A link over a fast bearer encrypts enough to keep the stream busy
/// between two passes of the event loop.
public struct EncryptAhead: Equatable, Sendable {
  /// The greatest `limit` of any bearer, in bytes.
  public static let bytesMax = 65_536

  /// The maximum number of encrypted bytes that the stream has not accepted yet.
  public let limit: Int
  /// The number of encrypted, unsent bytes from which no further frame is encrypted.
  public let enough: Int
  /// Whether a bulk frame is encrypted only after the stream has accepted bytes and has then reported room for more.
  /// When the stream reports room, the kernel's buffer is nearly empty. Until the frame is encrypted, urgent frames can
  /// overtake the bulk frame.
  public let waitsForRoom: Bool

  /// The limits for one bearer. Over Bluetooth LE a link encrypts one frame of maximum length after the kernel has
  /// accepted the previous frame completely. While the link encrypts, the kernel sends from its buffer.
  public init(over bearer: BearerKind) {
    waitsForRoom = bearer == .bluetoothLE
    switch bearer {
    case .bluetoothLE: (limit, enough) = (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE), 1)
    case .bluetoothClassic:
      // Two frames, so that one frame is sent while the next is encrypted.
      limit = 2 * (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothClassic))
      enough = limit / 2
    case .ethernet, .wifi, .wifiDirect, .loopback:
      // Frames are encrypted while another frame of maximum length fits, so that a single write sends many bytes.
      (limit, enough) = (Self.bytesMax, Self.bytesMax - Limits.frameBytesMax + 1)
    }
  }

  /// The maximum number of frame bytes to encrypt next, when `unsent` bytes are encrypted and unsent. Nil if `unsent`
  /// is at least `enough`. A frame of maximum length always fits.
  public func room(unsent: Int) -> Int? {
    unsent >= enough ? nil : min(limit - unsent, Limits.frameBytesMax)
  }
}
