/// What a node wants of the frames between itself and another one. The raw value is on the wire.
public enum EncryptionPreference: UInt8, Sendable {
  /// Sealed, or not at all.
  case required = 0
  /// Sealed where the other node can.
  case optional = 1
  /// In clear: relays on the way can read and alter what is said.
  case none = 2

  /// What two preferences come to.
  public enum Agreement: Equatable, Sendable {
    case sealed
    case clear
    /// One requires what the other does not do.
    case refused
  }

  /// Symmetric: both ends come to the same.
  public static func agreement(_ a: EncryptionPreference, _ b: EncryptionPreference) -> Agreement {
    switch (a, b) {
    case (.required, .none), (.none, .required): .refused
    case (.none, .none), (.none, .optional), (.optional, .none): .clear
    case (.optional, .optional), (.optional, .required), (.required, .optional), (.required, .required): .sealed
    }
  }
}

/// The first octet of a topology, as its node signed it: bit 0 forwards for others, bits 1–2 the encryption
/// preference. Other bits are a later version's: they are kept, and mean nothing here.
public struct TopologyFlags: Equatable, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  public init(relays: Bool, encryption: EncryptionPreference) {
    rawValue = (relays ? 1 : 0) | encryption.rawValue << 1
  }

  public var relays: Bool { rawValue & 1 != 0 }
  /// A preference of a later version counts as the strictest.
  public var encryption: EncryptionPreference { EncryptionPreference(rawValue: rawValue >> 1 & 3) ?? .required }
}
