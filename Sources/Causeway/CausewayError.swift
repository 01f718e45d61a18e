/// What every call of this library throws. `code` is what most applications look at, `reason` says more, `text` is for
/// people.
public struct CausewayError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The codes that users of nearby networking know.
  public enum Code: Int, Hashable, Sendable, CaseIterable {
    /// The daemon gave a code that this version does not know, or broke the protocol.
    case unknown
    /// There is no connection to the daemon, the session has ended, or the member is not connected.
    case notConnected
    /// An argument is not legal; `text` names the rule.
    case invalidParameter
    /// The other side, or the daemon, cannot do that.
    case unsupported
    /// It took longer than was allowed.
    case timedOut
    /// The task was cancelled, the inviter took its invitation back, or a stream was cut.
    case cancelled
    /// It cannot be had now: out of reach, declined, full, busy, in use, or not allowed.
    case unavailable
  }

  /// Why exactly. docs/local-api.md, “Events”: codes of `done`, and outcomes of an invitation.
  public enum Reason: Hashable, Sendable {
    /// The daemon does not know the request, or no version that this library speaks (code 1).
    case unsupported
    /// The service, browse, session, invitation or stream has ended (code 2).
    case ended
    /// An argument is not legal (code 3, or found before it was sent).
    case invalid
    /// Not by the rules of the session, or by the box's configuration (code 4).
    case notAllowed
    /// Not in reach, or no member (code 5).
    case outOfReach
    /// A limit is reached (code 6, outcome 5).
    case full
    /// The session is about to join another one (code 7), or the invitee has too many invitations (outcome 4).
    case busy
    /// The rules of the two sessions differ (code 8, outcome 7).
    case incompatible
    /// It is a member already (code 9).
    case alreadyMember
    /// Another application of this user has this name and type (code 10).
    case inUse
    /// The invitation was declined (outcome 1); `text` is the invitee's explanation.
    case declined
    /// Nobody answered in time (outcome 2), or the limit of a call was reached.
    case timedOut
    /// Cancelled by the inviter (outcome 3), or with its task.
    case cancelled
    /// The invited address offers no such service any more (outcome 6).
    case noService
    /// There is no daemon at the socket, or it may not be used.
    case noDaemon
    /// The connection to the daemon ended: it stopped or was restarted. Everything that was made with it is gone.
    case daemonEnded
    /// This application closed the connection.
    case closed
    /// The daemon broke the protocol; the connection was ended.
    case daemonBroken
    /// A stream ended, and not by `OutgoingStream.finish`.
    case stream(StreamEnd)
    /// A file cannot be read or written; `text` names it.
    case storage
    /// A disk, or a share of it, has not enough room, here or at the member; or the offer is larger than it takes.
    case noSpace
    /// Not all files of a resource were transferred; `text` names the first one. The others of its folder are kept for
    /// another try.
    case incomplete
    /// A code of a later daemon.
    case other(UInt8)
  }

  public let reason: Reason
  /// One line for people. Explanations of others are in it, so it is untrusted.
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

  /// A code of `done` other than 0.
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

  /// With the daemon's last words.
  static func daemonEnded(saying words: String) -> CausewayError {
    CausewayError(.daemonEnded, "\(words): services, browses and sessions are gone; connect again")
  }

  static func broken(_ what: String) -> CausewayError {
    CausewayError(.daemonBroken, "the daemon broke the protocol: \(what)")
  }
}
