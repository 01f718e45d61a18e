/// The kinds of messages that the sessions of two nodes send to each other (docs/protocol.md, section 12). These
/// messages use the interactive lane (lane 0) unless stated otherwise.
public enum SessionKind: UInt8, Sendable, CaseIterable {
  case invite = 16
  case answer = 17
  case welcome = 18
  case end = 19
  case meet = 20
  case table = 21
  /// A message of an application: in any lane, or as a datagram.
  case message = 22
  case window = 23
  case streamOpen = 24
  /// The bytes of a stream, in the bulk lane (lane 1).
  case streamBytes = 25
  /// In the bulk lane after the last byte of the stream; in the interactive lane if the message resets the stream.
  case streamEnd = 26
  /// Requests credit, or returns it.
  case need = 27
}
