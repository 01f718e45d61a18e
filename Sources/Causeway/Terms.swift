/// The description of the node on which a service or member runs, as the local node sees it. Names are untrusted;
/// identify applications by their address.
public struct Peer: Hashable, Sendable {
  /// The display name of the node, at most 63 bytes; empty while the node is out of reach.
  public let name: String
  /// The number of links on the path from the local node to the node; 0 for the local node itself.
  public let hops: Int
  /// Whether the node's key is pinned on the local node: stored as the known key of this name. True for the local node
  /// itself.
  public let isVerified: Bool
}

/// A service of another application. See docs/local-api.md, event 130.
public struct Service: Hashable, Sendable {
  public let address: Address
  public let peer: Peer
  /// The discovery info: public and untrusted. A key without a value maps to an empty string.
  public let info: [String: String]
}

/// An event of a browse. Each service in reach is reported once, even if its node is reachable over several radios.
public enum Sighting: Hashable, Sendable {
  case found(Service)
  /// The discovery info, hop count or name of a service has changed.
  case changed(Service)
  /// A service went out of reach. The value is the service's last known state.
  case lost(Service)
  /// All services that were in reach at the start of the browse have been reported. This event occurs once.
  case allTold
}

/// The rules of a session, which the application that opens the session chooses. See docs/local-api.md, “Fields”.
public struct Rules: Hashable, Sendable {
  /// The maximum number of members, 2 to 64.
  public var membersMax: Int
  /// Whether only the application that opened the session can admit members. If false, every member can admit members.
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
    /// Messages reach the member. If two successive reports of a member have this state, the member has reconnected.
    /// Messages between the two reports may be lost.
    case connected
    /// Connected, but the member's application has not read its messages for 30 s.
    case paused
    /// The member is out of reach. A member out of reach returns to the session without an invitation.
    case away
    /// This application has rejected the member; see `Session.decide`.
    case rejected
    /// The member left the session, with a farewell.
    case left(String)
    /// The member's application or daemon ended without leaving.
    case crashed
    /// The member was dropped because merged sessions had too many members.
    case foundNoPlace
    /// The founder of the session removed the member, with an explanation.
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
  /// The sender, with the sender's state when the message arrived.
  public let sender: Member
  /// The content of the message, at most 65,000 bytes.
  public let bytes: [UInt8]
  public let isReliable: Bool

  /// The content as text that is safe to print: invalid UTF-8 is repaired, and control characters are replaced.
  public var text: String { harmless(String(decoding: bytes, as: UTF8.self)) }
}

/// An event of a session. The events of a session are delivered in the order in which they occurred.
public enum SessionEvent: Hashable, Sendable {
  /// The state of a member has changed. If the application reads late, only the latest state is delivered.
  case member(Member)
  case message(Message)
  /// After a message had the result `Delivery.noRoom`: the member may have room for the message now.
  case room(Address)
  /// A member opened a stream, which the application takes or refuses. A stream that the application releases is
  /// refused.
  case stream(OfferedStream)
  /// A member offers files or folders, which the application accepts or declines. An offer that the application
  /// releases is declined.
  case offer(Offer)
  /// The application must decide whether to accept a member; see `Session.decide`. The event occurs only in a session
  /// that was opened with `decides: true`.
  ///
  /// The decision can use the node id, which is derived from the node's public key; `Peer.isVerified`; or the
  /// certificate chain with which the node has proved its key. The chain contains X.509 certificates in DER, at most 6
  /// KiB in total. The node's own certificate is first, and each certificate is followed by its issuer's. The chain is
  /// empty if the traffic is not sealed, if the member is on the local node, or if the daemon is too old to report
  /// certificates.
  ///
  /// The daemon has checked that the first certificate has the node's key. The daemon has checked the rest of the chain
  /// only if its own configuration requires trust anchors. The application has to check names and dates.
  case decisionWanted(Address, Peer, certificates: [[UInt8]])
  /// The session has ended. This event is the last event of the session, after all messages.
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
  /// A code for another reason, from a newer daemon.
  case other(UInt8)
}

/// The delivery mode of a message. See docs/local-api.md, “send”.
public enum Mode: UInt8, Hashable, Sendable {
  /// The message is delivered completely, in order and once.
  case reliable = 0
  /// Delivered like `reliable`, but sent after all other traffic. Suited to large data without urgency.
  case bulk = 1
  /// The message is sent at once. The message may be lost or reordered. A message that arrives is complete.
  case unreliable = 2
}

/// The result of a reliable message to one member. See docs/local-api.md, event 138.
public enum Delivery: UInt8, Hashable, Sendable {
  /// The member's node has the message.
  case delivered = 0
  /// Delivery failed. The failed message may have arrived, but not twice.
  case failed = 1
  /// The message was not sent because there is no buffer space for it at the member. `SessionEvent.room` reports when
  /// to retry. `Session.deliver` waits for the event `room` and retries.
  case noRoom = 2
  /// The message was not sent because the member is not connected.
  case notConnected = 3
}

/// The outcome of an invitation. See docs/local-api.md, event 133.
public enum Outcome: Hashable, Sendable {
  case connected
  /// The invitee declined, with an explanation.
  case declined(String)
  /// Nobody answered the invitation in time.
  case timedOut
  /// The inviter cancelled the invitation.
  case cancelled
  /// Too many invitations wait at the invited application.
  case busy
  case full
  /// The invited address no longer offers the service.
  case noService
  /// The rules of the two sessions differ.
  case incompatible
  /// The session of the invitation has ended.
  case sessionEnded
  /// A code for another outcome, from a newer daemon.
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
