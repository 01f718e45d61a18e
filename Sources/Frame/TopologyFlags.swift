import Primitives

/// The first byte of a topology advertisement. Bit 0 means that the node forwards frames for other nodes. Bits 1–2 are
/// the node's encryption preference. The other bits of this byte are for later versions: `rawValue` includes all bits,
/// and this version does not interpret those for later versions.
public struct TopologyFlags: Equatable, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public init(relays: Bool, encryption: EncryptionPreference) {
    rawValue = (relays ? 1 : 0) | encryption.rawValue << 1
  }

  public var relays: Bool { rawValue & 1 != 0 }
  /// The encryption preference. An unknown value is read as the strictest preference, `.required`.
  public var encryption: EncryptionPreference { EncryptionPreference(rawValue: rawValue >> 1 & 3) ?? .required }
}
