/// A node's preference for end-to-end encryption. The raw value is sent on the wire.
public enum EncryptionPreference: UInt8, Sendable {
  /// Encrypted, or no communication.
  case required = 0
  /// Encrypted if the other node supports it.
  case optional = 1
  /// Plaintext: relays can read and alter the payloads.
  case none = 2

  /// The result of two preferences.
  public enum Agreement: Equatable, Sendable {
    case sealed
    case clear
    /// One node requires encryption, and the other does not support it.
    case refused
  }

  /// Symmetric: both ends get the same result.
  public static func agreement(_ a: EncryptionPreference, _ b: EncryptionPreference) -> Agreement {
    switch (a, b) {
    case (.required, .none), (.none, .required): .refused
    case (.none, .none), (.none, .optional), (.optional, .none): .clear
    case (.optional, .optional), (.optional, .required), (.required, .optional), (.required, .required): .sealed
    }
  }
}

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
