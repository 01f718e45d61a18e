import Channel
import Primitives

/// A session of this node, for as long as its application has it open. Its id may change when sessions merge.
public struct SessionHandle: Hashable, Sendable {
  public let number: UInt32
  public init(number: UInt32) { self.number = number }
}

/// An invitation that this node sent or received.
public struct InvitationHandle: Hashable, Sendable {
  public let number: UInt32
  public init(number: UInt32) { self.number = number }
}

/// One message of an application, to any number of members.
public struct SessionMessageID: Hashable, Sendable {
  public let number: UInt64
  public init(number: UInt64) { self.number = number }
}

/// How a member stands to this one.
public enum MemberState: Equatable, Sendable {
  /// In reach; the two have not met yet.
  case connecting
  case connected
  /// Connected; its application has not read for `SessionLimits.pauseTime` what came.
  case paused
  /// Out of reach. It returns uninvited.
  case away
  /// The application rejected its certificate.
  case rejected
  case left(Departure.Reason, text: [UInt8])
  case ejected(text: [UInt8])
}

/// How an invitation ended. Each ends once, at either end.
public enum InvitationOutcome: Equatable, Sendable {
  case connected
  case declined(explanation: [UInt8])
  case timedOut
  case cancelled
  /// The invitee has too many invitations.
  case busy
  case full
  case noService
  case incompatible
  /// The session it was for has ended.
  case sessionEnded
}

/// Why a session ended for this node.
public enum SessionEnd: Equatable, Sendable {
  case left
  case ejected(text: [UInt8])
  /// Merged sessions have more members than places, and this one has one of the highest addresses.
  case full
  /// The application has the same session under this handle too.
  case isSame(SessionHandle)
}

/// An invitation that came.
public struct Invitation: Equatable, Sendable {
  public var handle: InvitationHandle
  public var from: MemberAddress
  /// This node's endpoint.
  public var to: UInt32
  public var rules: SessionRules
  public var memberCount: Int
  /// Opaque and untrusted.
  public var context: [UInt8]
  /// Until then it can be accepted.
  public var deadline: Instant

  public init(
    handle: InvitationHandle, from: MemberAddress, to: UInt32, rules: SessionRules, memberCount: Int, context: [UInt8],
    deadline: Instant
  ) {
    self.handle = handle
    self.from = from
    self.to = to
    self.rules = rules
    self.memberCount = memberCount
    self.context = context
    self.deadline = deadline
  }
}

/// What the applications are told.
public enum SessionEvent: Equatable, Sendable {
  case serviceFound(MemberAddress, Service)
  case serviceChanged(MemberAddress, Service)
  case serviceLost(MemberAddress)
  case invited(Invitation)
  case invitationEnded(InvitationHandle, InvitationOutcome)
  /// The session has this id now: it joined another one, or sessions merged.
  case identified(SessionHandle, SessionID)
  case member(SessionHandle, MemberAddress, MemberState)
  /// The application decides on the certificate of the member's node: `decide`. Until then the two do not meet. It is told
  /// again when the node comes into reach, and when it has proved its key or failed to.
  case decisionWanted(SessionHandle, MemberAddress)
  case message(SessionHandle, from: MemberAddress, [UInt8])
  /// An unreliable message. It takes no credit: `taken` is not for it.
  case datagram(SessionHandle, from: MemberAddress, [UInt8])
  /// What became of a message to one member. It may have arrived when it failed, but never twice. Delivered is what the
  /// other node has: its application does not get it if the two began to meet anew at that moment.
  case sent(SessionMessageID, to: MemberAddress, isDelivered: Bool)
  /// A member may be sent more than before.
  case room(SessionHandle, MemberAddress)
  case stream(StreamHandle, StreamEvent)
  case ended(SessionHandle, SessionEnd)
}

/// Why a request of an application was refused.
public enum SessionError: Error, Equatable, Sendable {
  /// No such session or invitation, or it has ended.
  case unknown
  /// The address is this one, or no member, or not in reach.
  case unavailable
  case alreadyMember
  /// This member may not do it by the session's rules.
  case notAllowed
  /// The rules of the two sessions do not allow that they become one.
  case incompatible
  /// No place is left: of members, sessions, invitations or unsent messages.
  case full
  /// The session is about to join another one.
  case busy
  /// A text or a context is too long or no plain text, or an endpoint is 0.
  case invalid
}

/// A message for another node's sessions.
public struct SessionOutput: Equatable, Sendable {
  public var to: NodeID
  public var kind: SessionKind
  public var bytes: [UInt8]
  /// Nil: as a datagram, without a result.
  public var lane: Lane?
  /// Names it in `completed`.
  public var tag: UInt64
}
