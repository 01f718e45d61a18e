/// The local node's description of the node behind a service or member. Names are untrusted; identify applications by
/// their address.
public struct Peer: Hashable, Sendable {
  /// The display name of its node, at most 63 bytes; empty while it is out of reach.
  public let name: String
  /// The number of links between the local node and its node; 0 for an application on the local node.
  public let hops: Int
  /// Whether its key is pinned on the local node.
  public let isVerified: Bool
}

/// A service of another application. See docs/local-api.md, event 130.
public struct Service: Hashable, Sendable {
  public let address: Address
  public let peer: Peer
  /// The discovery info: public and untrusted. A key without a value maps to an empty string.
  public let info: [String: String]
}

/// An event of a browse. Each service is reported once, however many radios see it.
public enum Sighting: Hashable, Sendable {
  case found(Service)
  /// The discovery info, hop count or name of a service has changed.
  case changed(Service)
  /// A service went out of reach. The value is its last known state.
  case lost(Service)
  /// All services that were in reach at the start of the browse have been reported. It occurs once.
  case allTold
}

/// The rules of a session, fixed when it is opened. See docs/local-api.md, “Fields”.
public struct Rules: Hashable, Sendable {
  /// The maximum number of members, 2 to 64.
  public var membersMax: Int
  /// Whether only the application that opened the session can admit members; otherwise every member can.
  public var onlyFounderAdmits: Bool
  /// Whether members whose traffic is not sealed end to end are admitted.
  public var allowsUnsealed: Bool

  public init(membersMax: Int = 8, onlyFounderAdmits: Bool = false, allowsUnsealed: Bool = false) {
    self.membersMax = membersMax
    self.onlyFounderAdmits = onlyFounderAdmits
    self.allowsUnsealed = allowsUnsealed
  }
}

/// A member of a session. See docs/local-api.md, event 136.
public struct Member: Hashable, Sendable {
  /// The state of a member.
  public enum State: Hashable, Sendable {
    case connecting
    /// Messages reach the member. If it is reported again without another state before, the member has reconnected, and
    /// messages in between may be lost.
    case connected
    /// Connected, but the application has read nothing for 30 s.
    case paused
    /// Out of reach. It returns without an invitation.
    case away
    /// The user or application at the local node does not accept the member's certificate.
    case rejected
    /// The member left the session, with a farewell.
    case left(String)
    /// The member's application or daemon ended without leaving.
    case crashed
    /// The member found no place when sessions merged.
    case foundNoPlace
    /// A member with the right to do so removed it, with an explanation.
    case ejected(String)
  }

  public let address: Address
  public let peer: Peer
  public let state: State

  /// Whether messages can be sent to the member.
  public var isConnected: Bool { state == .connected || state == .paused }

  /// Whether the membership has ended.
  public var hasLeft: Bool {
    switch state {
    case .left, .crashed, .foundNoPlace, .ejected: true
    case .connecting, .connected, .paused, .away, .rejected: false
    }
  }
}

/// A received message.
public struct Message: Hashable, Sendable {
  /// The sender, in its state at that time.
  public let sender: Member
  /// The content, at most 65,000 bytes.
  public let bytes: [UInt8]
  public let isReliable: Bool

  /// The content as text that is safe to print: invalid UTF-8 is repaired, and control characters are replaced.
  public var text: String { harmless(String(decoding: bytes, as: UTF8.self)) }
}

/// An event of a session, in order of occurrence.
public enum SessionEvent: Hashable, Sendable {
  /// The state of a member has changed. Changes that the application does not take in time are merged into the latest
  /// one.
  case member(Member)
  case message(Message)
  /// Messages to this member may have room again, after `Delivery.noRoom`.
  case room(Address)
  /// A member opened a stream: take or refuse it. A stream that the application releases is refused.
  case stream(OfferedStream)
  /// A member offers files or folders: accept or decline them. An offer that the application releases is declined.
  case offer(Offer)
  /// The application must decide whether to accept a member; see `Session.decide`. Only in a session that was opened
  /// with `decides`.
  ///
  /// The decision can use the node id, which stands for the node's key; whether the key is pinned; or the certificate
  /// chain with which the node has proved its key. The chain is X.509 in DER, the node's own certificate first, each
  /// followed by its issuer, at most 6 KiB in total. It is empty if the traffic is not sealed, for an application on
  /// the same node, and from a daemon of the first version. The daemon has checked the key; it has checked the chain
  /// only against the trust anchors of its own configuration.
  case decisionWanted(Address, Peer, certificates: [[UInt8]])
  /// The session has ended. It is the last event, after all messages.
  case ended(SessionEnd)
}

/// Why a session ended for this application. See docs/local-api.md, event 135.
public enum SessionEnd: Hashable, Sendable {
  case left
  /// This application was removed, with an explanation.
  case ejected(String)
  /// The merged sessions had too many members.
  case full
  /// The session was merged into another session of this application, which continues.
  case merged
  /// A reason from a newer daemon.
  case other(UInt8)
}

/// The delivery mode of a message. See docs/local-api.md, “send”.
public enum Mode: UInt8, Hashable, Sendable {
  /// Delivered whole, in order and once.
  case reliable = 0
  /// As `reliable`, but after all other traffic: for large data without urgency.
  case bulk = 1
  /// Sent at once, whole or not at all. It may be lost or reordered.
  case unreliable = 2
}

/// The result of a reliable message to one member. See docs/local-api.md, event 138.
public enum Delivery: UInt8, Hashable, Sendable {
  /// The member's node has the message.
  case delivered = 0
  /// Delivery failed. The message may have arrived, but not twice.
  case failed = 1
  /// The message was not sent because the member's share is full. `SessionEvent.room` reports when to retry;
  /// `Session.deliver` waits for it.
  case noRoom = 2
  /// The message was not sent because the member is not connected.
  case notConnected = 3
}

/// How an invitation ended. See docs/local-api.md, event 133.
public enum Outcome: Hashable, Sendable {
  case connected
  /// The invitee declined, with an explanation.
  case declined(String)
  case timedOut
  case cancelled
  case busy
  case full
  case noService
  case incompatible
  case sessionEnded
  /// A code from a newer daemon.
  case other(UInt8)

  /// The error for this outcome, or nil for `connected`.
  var error: CausewayError? {
    switch self {
    case .connected: nil
    case .declined(let text): CausewayError(.declined, text.isEmpty ? "declined" : "declined: \(text)")
    case .timedOut: CausewayError(.timedOut, "nobody answered the invitation in time")
    case .cancelled: CausewayError(.cancelled, "the invitation was cancelled")
    case .busy: CausewayError(.busy, "the invitee has too many invitations")
    case .full: CausewayError(.full, "the session has no place left")
    case .noService: CausewayError(.noService, "the service is no longer offered")
    case .incompatible: CausewayError(.incompatible, "the rules of the two sessions are incompatible")
    case .sessionEnded: CausewayError(.ended, "the session has ended")
    case .other(let code): CausewayError(.other(code), "the invitation ended with outcome \(code)")
    }
  }
}
