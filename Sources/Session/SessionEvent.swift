import Channel
import Primitives

/// Identifies a session of this node while its application has it open. The handle stays the same when sessions merge,
/// while the session's id may change.
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

/// The state of another member, as seen by the local member.
public enum MemberState: Equatable, Sendable {
  /// The member's node is reachable; the handshake between the two members is in progress.
  case connecting
  case connected
  /// Connected, but the member's application has not read waiting messages for `SessionLimits.pauseTime`.
  case paused
  /// The member's node is unreachable. The member reconnects without an invitation.
  case away
  /// The local application rejected the certificate of the member's node.
  case rejected
  case left(Departure.Reason, text: [UInt8])
  case ejected(text: [UInt8])
}

/// How an invitation ended. The inviter's and the invitee's node each report one outcome to their application.
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
  /// The merged sessions have more members than their rules allow, and this address got no place.
  case full
  /// The session was merged into another session of the application, which has this handle.
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
  /// The session has a new id, because its application joined another session or because sessions merged.
  case identified(SessionHandle, SessionID)
  case member(SessionHandle, MemberAddress, MemberState)
  /// The application must decide on the certificate of the member's node, with `decide`. The handshake waits for the
  /// decision. The event is repeated when the node becomes reachable, and when the node has proved its key or has
  /// failed to.
  case decisionWanted(SessionHandle, MemberAddress)
  case message(SessionHandle, from: MemberAddress, [UInt8])
  /// An unreliable message. An unreliable message uses no credit, so `taken` must not be called for it.
  case datagram(SessionHandle, from: MemberAddress, [UInt8])
  /// The delivery result of a message to one member. A delivered message has reached the member's node. The member's
  /// application does not get the message if the handshake is restarted at that moment. A failed message may have
  /// arrived. No message arrives twice.
  case sent(SessionMessageID, to: MemberAddress, isDelivered: Bool)
  /// A member has granted more credit, so more can be sent to it than before.
  case room(SessionHandle, MemberAddress)
  case stream(StreamHandle, StreamEvent)
  case ended(SessionHandle, SessionEnd)
}

/// Why a request of an application was refused.
public enum SessionError: Error, Equatable, Sendable {
  /// There is no such session or invitation, or it has ended.
  case unknown
  /// The address is the session's own, is not a member, or is unreachable.
  case unavailable
  case alreadyMember
  /// The rules of the session do not permit the request.
  case notAllowed
  /// The rules of the two sessions do not permit a merge.
  case incompatible
  /// The limit of members, sessions, invitations or unsent messages is reached.
  case full
  /// The session is about to join another session.
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
