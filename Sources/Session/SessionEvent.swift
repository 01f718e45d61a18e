import Channel
import Primitives

/// Identifies a session of this node while its application has it open. The id of the session may change when sessions
/// merge.
public struct SessionHandle: Hashable, Sendable {
  public let number: UInt32
  public init(number: UInt32) { self.number = number }
}

/// Identifies an invitation that this node sent or received.
public struct InvitationHandle: Hashable, Sendable {
  public let number: UInt32
  public init(number: UInt32) { self.number = number }
}

/// Identifies one message of an application to any number of members.
public struct SessionMessageID: Hashable, Sendable {
  public let number: UInt64
  public init(number: UInt64) { self.number = number }
}

/// The state of a member, as this one sees it.
public enum MemberState: Equatable, Sendable {
  /// Its node is reachable; the handshake is in progress.
  case connecting
  case connected
  /// Connected, but its application has not read its messages for `SessionLimits.pauseTime`.
  case paused
  /// Its node is unreachable. The member reconnects without an invitation.
  case away
  /// The application rejected its certificate.
  case rejected
  case left(Departure.Reason, text: [UInt8])
  case ejected(text: [UInt8])
}

/// How an invitation ended. Each end reports one outcome, once.
public enum InvitationOutcome: Equatable, Sendable {
  case connected
  case declined(explanation: [UInt8])
  case timedOut
  case cancelled
  /// Too many invitations wait at the invitee.
  case busy
  case full
  case noService
  case incompatible
  /// The session of the invitation has ended.
  case sessionEnded
}

/// Why a session ended for this node.
public enum SessionEnd: Equatable, Sendable {
  case left
  case ejected(text: [UInt8])
  /// Merged sessions have more members than places, and this address got none.
  case full
  /// The session was merged into another one of the application, which has this handle.
  case isSame(SessionHandle)
}

/// A received invitation.
public struct Invitation: Equatable, Sendable {
  public var handle: InvitationHandle
  public var from: MemberAddress
  /// The invited endpoint of this node.
  public var to: UInt32
  public var rules: SessionRules
  public var memberCount: Int
  /// Opaque data of the inviting application; untrusted.
  public var context: [UInt8]
  /// The time until which the invitation can be accepted.
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

/// An event for the applications.
public enum SessionEvent: Equatable, Sendable {
  case serviceFound(MemberAddress, Service)
  case serviceChanged(MemberAddress, Service)
  case serviceLost(MemberAddress)
  case invited(Invitation)
  case invitationEnded(InvitationHandle, InvitationOutcome)
  /// The session has a new id, because it joined another session or sessions merged.
  case identified(SessionHandle, SessionID)
  case member(SessionHandle, MemberAddress, MemberState)
  /// The application must decide on the certificate of the member's node, with `decide`. The handshake waits for the
  /// decision. The event is repeated when the node becomes reachable, and when it has proved its key or has failed to.
  case decisionWanted(SessionHandle, MemberAddress)
  case message(SessionHandle, from: MemberAddress, [UInt8])
  /// An unreliable message. It uses no credit: do not call `taken` for it.
  case datagram(SessionHandle, from: MemberAddress, [UInt8])
  /// The result of a message to one member. A failed message may have arrived, but never twice. A delivered message has
  /// reached the other node. Its application does not get it if the handshake was restarted at that moment.
  case sent(SessionMessageID, to: MemberAddress, isDelivered: Bool)
  /// More may be sent to a member than before.
  case room(SessionHandle, MemberAddress)
  case stream(StreamHandle, StreamEvent)
  case ended(SessionHandle, SessionEnd)
}

/// Why a request of an application was refused.
public enum SessionError: Error, Equatable, Sendable {
  /// There is no such session or invitation, or it has ended.
  case unknown
  /// The address is the session's own, is no member, or is unreachable.
  case unavailable
  case alreadyMember
  /// The rules of the session do not permit this member to do it.
  case notAllowed
  /// The rules of the two sessions do not permit a merge.
  case incompatible
  /// The limit of members, sessions, invitations or unsent messages is reached.
  case full
  /// The session is about to join another one.
  case busy
  /// A text or context is too long, a text is not plain text, or an endpoint is 0.
  case invalid
}

/// A message to the sessions of another node.
public struct SessionOutput: Equatable, Sendable {
  public var to: NodeID
  public var kind: SessionKind
  public var bytes: [UInt8]
  /// The lane; nil for a datagram, which has no result.
  public var lane: Lane?
  /// Identifies the message in `completed`.
  public var tag: UInt64
}
