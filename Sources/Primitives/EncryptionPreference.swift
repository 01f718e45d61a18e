/// A node's preference for end-to-end encryption. The raw value is sent on the wire.
public enum EncryptionPreference: UInt8, Sendable {
  /// Communicate only encrypted.
  case required = 0
  /// Encrypt if the other node supports encryption.
  case optional = 1
  /// Send plaintext: relays can read and alter the payloads.
  case none = 2

  /// The mode of communication that follows from the preferences of two nodes.
  public enum Agreement: Equatable, Sendable {
    case sealed
    case clear
    /// One node requires encryption, and the other node does not support encryption.
    case refused
  }

  /// The agreement of two preferences. The order of the preferences does not matter, so both nodes compute the same
  /// agreement.
  public static func agreement(_ a: EncryptionPreference, _ b: EncryptionPreference) -> Agreement {
    switch (a, b) {
    case (.required, .none), (.none, .required): .refused
    case (.none, .none), (.none, .optional), (.optional, .none): .clear
    case (.optional, .optional), (.optional, .required), (.required, .optional), (.required, .required): .sealed
    }
  }
}
