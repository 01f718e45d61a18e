/// The only error type that this library throws. Most applications need only `code`; `reason` is more specific, and
/// `text` is for people.
public struct CausewayError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A coarse classification of the reasons. Each `Reason` belongs to one code.
  public enum Code: Int, Hashable, Sendable, CaseIterable {
    /// The daemon sent an unknown code or violated the protocol.
    case unknown
    /// The connection to the daemon has ended, the object (such as a session or an invitation) has ended, or a stream
    /// was lost.
    case notConnected
    /// An argument is invalid, and `text` names the violated rule; or the address is already a member.
    case invalidParameter
    /// The daemon does not support the operation, or the rules of two sessions differ.
    case unsupported
    /// The timeout of the operation expired.
    case timedOut
    /// The task was cancelled, the inviter withdrew its invitation, or a stream was reset.
    case cancelled
    /// The operation is not possible now. For example, the address is out of reach or not a connected member, an
    /// invitation was declined, or a limit or a full disk prevents the operation.
    case unavailable
  }

  /// The exact reason. In the cases below, a code is that of the daemon's event *done*, and an outcome is that of an
  /// invitation (docs/local-api.md, “Events”).
  public enum Reason: Hashable, Sendable {
    /// The daemon does not know the request, or does not support the protocol version of this library (code 1).
    case unsupported
    /// The service, browse, session, invitation or stream has ended (code 2).
    case ended
    /// An argument is invalid (code 3, or detected before sending).
    case invalid
    /// The rules of the session or the configuration of the node do not allow the operation (code 4).
    case notAllowed
    /// The address is out of reach or is not a member (code 5).
    case outOfReach
    /// A limit is reached (code 6, outcome 5).
    case full
    /// The session is about to join another session or already waits for the address (code 7), the invitee has too many
    /// invitations (outcome 4), or the offered files are already being received.
    case busy
    /// The rules of the two sessions differ (code 8, outcome 7).
    case incompatible
    /// The address is already a member (code 9).
    case alreadyMember
    /// Another application of the same user and name already uses the service type (code 10).
    case inUse
    /// The invitation was declined (outcome 1); `text` is the invitee's explanation.
    case declined
    /// The invitation or the offer was not answered in time (outcome 2), or a time limit of this library expired.
    case timedOut
    /// The inviter cancelled the invitation (outcome 3), or the task was cancelled.
    case cancelled
    /// The invited address no longer offers the service (outcome 6).
    case noService
    /// No daemon answers at the socket, or access to the socket is denied.
    case noDaemon
    /// The connection ended because the daemon stopped or restarted. All objects created with the connection have
    /// ended.
    case daemonEnded
    /// This application closed the connection.
    case closed
    /// The daemon violated the protocol, and the connection was closed.
    case daemonBroken
    /// A stream was reset, refused or lost, or one end violated the protocol.
    case stream(StreamEnd)
    /// A file cannot be read or written; `text` names the file.
    case storage
    /// A disk or a disk quota is full, on this machine or at the member; or an offer has more bytes than the receiver
    /// accepts.
    case noSpace
    /// Some files of an offer were not transferred; `text` names the first of these files. Received files of the same
    /// folder are kept for another attempt.
    case incomplete
    /// A code for a reason, from a newer daemon.
    case other(UInt8)
  }

  public let reason: Reason
  /// One line about the error, for people. The text can contain an explanation from another application, so it is
  /// untrusted.
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

  /// The error for a daemon that announced its end with the message `words`.
  static func daemonEnded(saying words: String) -> CausewayError {
    CausewayError(.daemonEnded, "\(words): services, browses and sessions are gone; connect again")
  }

  static func broken(_ what: String) -> CausewayError {
    CausewayError(.daemonBroken, "the daemon violated the protocol: \(what)")
  }
}
