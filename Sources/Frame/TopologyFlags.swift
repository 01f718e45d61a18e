import Primitives

/// The first byte of a topology advertisement. Bit 0 means that the node forwards for others; bits 1–2 are its
/// encryption preference. Other bits belong to later versions; they are kept and ignored.
public struct TopologyFlags: Equatable, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public init(relays: Bool, encryption: EncryptionPreference) {
    rawValue = (relays ? 1 : 0) | encryption.rawValue << 1
  }

  public var relays: Bool { rawValue & 1 != 0 }
  /// The encryption preference. An unknown one counts as the strictest.
  public var encryption: EncryptionPreference { EncryptionPreference(rawValue: rawValue >> 1 & 3) ?? .required }
}
