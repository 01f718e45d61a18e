/// The kind of a message between applications: the kind byte of the channel's messages.
///
/// Invitations, membership, streams and unreliable messages get kinds from 16 on.
public enum MessageKind: UInt8, Sendable, CaseIterable {
  /// About messages, between nodes: `ControlMessage`.
  case control = 0
  case text = 1
  case resourceOffer = 2
  case resourceAnswer = 3
  case resourceChunk = 4
  case resourceEnd = 5
  case resourceCancel = 6
}

/// A message at the daemon's interface to applications.
public struct Message: Equatable, Sendable {
  public var kind: MessageKind
  public var bytes: [UInt8]

  public init(kind: MessageKind, bytes: [UInt8]) {
    self.kind = kind
    self.bytes = bytes
  }
}

/// Why bytes are not a valid message. Counted by name.
public enum MessageRefusal: UInt8, Error, Sendable, CaseIterable {
  case tooShort
  case tooLong
  /// An empty text, name or chunk.
  case empty
  /// Not UTF-8 (RFC 3629).
  case notUTF8
  /// A code that this version does not know.
  case unknownCode
  case reservedNotZero
  /// A size or an offset beyond `MessageLimits.resourceBytesMax`.
  case offsetTooLarge
}
