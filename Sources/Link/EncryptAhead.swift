import Frame
import Primitives

/// The number of bytes that a link encrypts before its stream accepts them.
///
/// Encrypted bytes keep their order, so an urgent frame waits for all of them. A slow bearer therefore encrypts little
/// ahead. A fast one encrypts enough to keep the stream busy between wake-ups.
public struct EncryptAhead: Equatable, Sendable {
  /// The limit of encrypted, unsent bytes for every bearer.
  public static let bytesMax = 65_536

  /// The most encrypted, unsent bytes.
  public let limit: Int
  /// No further frames are taken while at least this many bytes are unsent.
  public let enough: Int
  /// Whether a bulk frame is taken only after the stream has reported room since it last took bytes. The kernel's
  /// buffer is nearly empty then. Until it is, urgent frames can go first.
  public let waitsForRoom: Bool

  /// A slow bearer encrypts one frame of maximum length once the kernel has all of the previous one. The kernel's
  /// buffer is sent meanwhile.
  public init(over bearer: BearerKind) {
    waitsForRoom = bearer == .bluetoothLE
    switch bearer {
    case .bluetoothLE: (limit, enough) = (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE), 1)
    case .bluetoothClassic:
      // Two frames, so that one is sent while the next is encrypted.
      limit = 2 * (FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothClassic))
      enough = limit / 2
    case .ethernet, .wifi, .wifiDirect, .loopback:
      // Takes frames while there is room for another one, so that a single write sends many bytes.
      (limit, enough) = (Self.bytesMax, Self.bytesMax - Limits.frameBytesMax + 1)
    }
  }

  /// The number of frame bytes to take from the node next when `unsent` bytes are encrypted and unsent. nil if `unsent`
  /// is at least `enough`. There is always room for the longest frame.
  public func room(unsent: Int) -> Int? {
    unsent >= enough ? nil : min(limit - unsent, Limits.frameBytesMax)
  }
}
