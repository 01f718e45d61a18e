/// How a stream ended. See docs/local-api.md, event 143.
public enum StreamEnd: Hashable, Sendable {
  /// The reader has received all bytes that were written.
  case finished
  /// One of the two ends reset the stream.
  case cut
  /// The member refused the stream.
  case refused
  /// The member or the member's node has no slot for another stream. A later attempt may succeed.
  case noPlace
  /// One of the two ends violated the protocol.
  case broken
  /// The member went out of reach, the member reconnected, or the session ended.
  case lost
  /// A code for another end of a stream, from a newer daemon.
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

  /// The error for this end, or nil for `finished`.
  var error: CausewayError? {
    let text: String
    switch self {
    case .finished: return nil
    case .cut: text = "the stream was cut"
    case .refused: text = "the member refused the stream"
    case .noPlace: text = "the member has no place for another stream"
    case .broken: text = "the protocol was violated"
    case .lost: text = "the stream was lost with its member or session"
    case .other(let code): text = "the stream ended with code \(code)"
    }
    return CausewayError(.stream(self), text)
  }
}
