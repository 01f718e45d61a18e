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
