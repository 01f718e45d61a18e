/// The error that every call of this library throws. Most applications need only `code`; `reason` is more specific, and
/// `text` is for people.
public struct CausewayError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A coarse classification, familiar from nearby-networking libraries.
  public enum Code: Int, Hashable, Sendable, CaseIterable {
    /// The daemon sent an unknown code or violated the protocol.
    case unknown
    /// The daemon is not connected, the session has ended, or the member is not connected.
    case notConnected
    /// An argument is invalid; `text` names the rule.
    case invalidParameter
    /// The other side or the daemon does not support the operation.
    case unsupported
    /// A timeout expired.
    case timedOut
    /// The task was cancelled, the inviter withdrew its invitation, or a stream was reset.
    case cancelled
    /// The operation is not possible now: out of reach, declined, full, busy, in use, or not allowed.
    case unavailable
  }

  /// The exact reason: a code of `done` or an outcome of an invitation. See docs/local-api.md, “Events”.
  public enum Reason: Hashable, Sendable {
    /// The daemon does not know the request, or no version that this library speaks (code 1).
    case unsupported
    /// The service, browse, session, invitation or stream has ended (code 2).
    case ended
    /// An argument is invalid (code 3, or detected before sending).
    case invalid
    /// The rules of the session or the configuration of the node do not allow it (code 4).
    case notAllowed
    /// The address is out of reach or is not a member (code 5).
    case outOfReach
    /// A limit is reached (code 6, outcome 5).
    case full
    /// The session is about to join another one (code 7), or the invitee has too many invitations (outcome 4).
    case busy
    /// The rules of the two sessions differ (code 8, outcome 7).
    case incompatible
    /// The address is already a member (code 9).
    case alreadyMember
    /// Another application of this user has this name and offers this type (code 10).
    case inUse
    /// The invitation was declined (outcome 1); `text` is the invitee's explanation.
    case declined
    /// Nobody answered in time (outcome 2), or the timeout of a call expired.
    case timedOut
    /// The inviter cancelled the invitation (outcome 3), or the task was cancelled.
    case cancelled
    /// The invited address no longer offers the service (outcome 6).
    case noService
    /// No daemon answers at the socket, or access to it is denied.
    case noDaemon
    /// The connection ended because the daemon stopped or restarted. All objects created with it are gone.
    case daemonEnded
    /// This application closed the connection.
    case closed
    /// The daemon violated the protocol, and the connection was closed.
    case daemonBroken
    /// A stream ended other than by `OutgoingStream.finish`.
    case stream(StreamEnd)
    /// A file cannot be read or written; `text` names it.
    case storage
    /// A disk or disk quota has not enough room, here or at the member, or the offer exceeds the receiver's limit.
    case noSpace
    /// Some files of a resource were not transferred; `text` names the first one. The other files of its folder are
    /// kept for another attempt.
    case incomplete
    /// A code from a newer daemon.
    case other(UInt8)
  }

  public let reason: Reason
  /// One line for people. It may contain explanations from others, so it is untrusted.
  public let text: String

  init(_ reason: Reason, _ text: String = "") {
    self.reason = reason
    self.text = text
  }

  public var code: Code {
    switch reason {
    case .daemonBroken, .other: .unknown
    case .ended, .noDaemon, .daemonEnded, .closed: .notConnected
    case .invalid, .alreadyMember: .invalidParameter
    case .unsupported, .incompatible: .unsupported
    case .timedOut: .timedOut
    case .cancelled: .cancelled
    case .notAllowed, .outOfReach, .full, .busy, .inUse, .declined, .noService, .storage, .noSpace, .incomplete:
      .unavailable
    case .stream(let end):
      switch end {
      case .cut: .cancelled
      case .refused, .noPlace: .unavailable
      case .finished, .lost: .notConnected
      case .broken, .other: .unknown
      }
    }
  }

  public var description: String { text.isEmpty ? "\(code): \(reason)" : "\(code): \(text)" }

  /// Creates the error for a code of `done` other than 0.
  init(refusal: UInt8, text: String) {
    switch refusal {
    case 1: self.init(.unsupported, text)
    case 2: self.init(.ended, text)
    case 3: self.init(.invalid, text)
    case 4: self.init(.notAllowed, text)
    case 5: self.init(.outOfReach, text)
    case 6: self.init(.full, text)
    case 7: self.init(.busy, text)
    case 8: self.init(.incompatible, text)
    case 9: self.init(.alreadyMember, text)
    case 10: self.init(.inUse, text)
    default: self.init(.other(refusal), text)
    }
  }

  static let cancelled = CausewayError(.cancelled, "the task was cancelled")
  static let closed = CausewayError(.closed, "this application closed the connection to the daemon")
  static let daemonEnded = daemonEnded(saying: "the daemon ended")

  /// The error for a daemon that announced its end with a message.
  static func daemonEnded(saying words: String) -> CausewayError {
    CausewayError(.daemonEnded, "\(words): services, browses and sessions are gone; connect again")
  }

  static func broken(_ what: String) -> CausewayError {
    CausewayError(.daemonBroken, "the daemon violated the protocol: \(what)")
  }
}
