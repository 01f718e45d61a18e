/// A node's preference for end-to-end encryption. The raw value is sent on the wire.
public enum EncryptionPreference: UInt8, Sendable {
  /// Communicate only encrypted.
  case required = 0
  /// Encrypt if the other node supports it.
  case optional = 1
  /// Send plaintext: relays can read and alter the payloads.
  case none = 2

  /// The outcome of both nodes' preferences.
  public enum Agreement: Equatable, Sendable {
    case sealed
    case clear
    /// One node requires encryption, and the other does not support it.
    case refused
  }

  /// The agreement of two preferences. Symmetric, so both ends compute the same one.
  public static func agreement(_ a: EncryptionPreference, _ b: EncryptionPreference) -> Agreement {
    switch (a, b) {
    case (.required, .none), (.none, .required): .refused
    case (.none, .none), (.none, .optional), (.optional, .none): .clear
    case (.optional, .optional), (.optional, .required), (.required, .optional), (.required, .required): .sealed
    }
  }
}
