import Primitives

/// The first byte of a topology advertisement: bit 0 forwards for others, bits 1–2 the encryption preference. Other
/// bits belong to a later version: they are kept and ignored.
public struct TopologyFlags: Equatable, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public init(relays: Bool, encryption: EncryptionPreference) {
    rawValue = (relays ? 1 : 0) | encryption.rawValue << 1
  }

  public var relays: Bool { rawValue & 1 != 0 }
  /// An unknown preference counts as the strictest.
  public var encryption: EncryptionPreference { EncryptionPreference(rawValue: rawValue >> 1 & 3) ?? .required }
}
