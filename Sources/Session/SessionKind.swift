/// The kind byte of the messages that sessions exchange. All go in the interactive lane but those that say otherwise.
public enum SessionKind: UInt8, Sendable, CaseIterable {
  case invite = 16
  case answer = 17
  case welcome = 18
  case end = 19
  case meet = 20
  case table = 21
  /// Of an application: any lane, or a datagram.
  case message = 22
  case window = 23
  case streamOpen = 24
  /// In the bulk lane.
  case streamBytes = 25
  /// In the bulk lane after the last byte, in the interactive lane when it cuts the stream.
  case streamEnd = 26
  /// More room is asked for, or room is given back.
  case need = 27
}
