/// How a stream ended. docs/local-api.md, event 143.
public enum StreamEnd: Hashable, Sendable {
  /// The reader has been told all bytes that were written.
  case finished
  /// One of its two ends cut it.
  case cut
  /// The member did not want it.
  case refused
  /// The member, or its box, has no place for another one.
  case noPlace
  /// One of the two ends did not keep to the protocol.
  case broken
  /// The member is away or was met anew, or the session ended.
  case lost
  /// An end of a later daemon.
  case other(UInt8)

  init(code: UInt8) {
    switch code {
    case 0: self = .finished
    case 1: self = .cut
    case 2: self = .refused
    case 3: self = .noPlace
    case 4: self = .broken
    case 5: self = .lost
    default: self = .other(code)
    }
  }

  /// Nil when it ended well.
  var error: CausewayError? {
    let text: String
    switch self {
    case .finished: return nil
    case .cut: text = "the stream was cut"
    case .refused: text = "the member refused the stream"
    case .noPlace: text = "the member has no place for another stream"
    case .broken: text = "a rule of streams was broken"
    case .lost: text = "the stream was lost with its member or session"
    case .other(let code): text = "the stream ended with \(code)"
    }
    return CausewayError(.stream(self), text)
  }
}
