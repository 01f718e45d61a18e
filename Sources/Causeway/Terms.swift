/// Who offers something or is a member, as far as this box knows. Names are untrusted: go by the address.
public struct Peer: Hashable, Sendable {
  /// The display name of its box, at most 63 bytes; empty while it is out of reach.
  public let name: String
  /// Links between this box and its own; 0: an application of this box.
  public let hops: Int
  /// Its key is pinned on this box.
  public let isVerified: Bool
}

/// A service of another application. docs/local-api.md, event 130.
public struct Service: Hashable, Sendable {
  public let address: Address
  public let peer: Peer
  /// The discovery info: public and untrusted. A key without a value has an empty one.
  public let info: [String: String]
}

/// What a browse tells: each service is found once, however many radios show it.
public enum Sighting: Hashable, Sendable {
  case found(Service)
  /// Other discovery info, hops or name.
  case changed(Service)
  /// As it was told last.
  case lost(Service)
  /// What was in reach when the browse began has been told. It comes once.
  case allTold
}

/// The rules of a session, fixed when it is opened. docs/local-api.md, “Fields”.
public struct Rules: Hashable, Sendable {
  /// Members at most, 2 to 64.
  public var membersMax: Int
  /// Only who opened the session can admit members; otherwise every member can.
  public var onlyFounderAdmits: Bool
  /// Also members whose traffic is not sealed end to end are admitted.
  public var allowsUnsealed: Bool

  public init(membersMax: Int = 8, onlyFounderAdmits: Bool = false, allowsUnsealed: Bool = false) {
    self.membersMax = membersMax
    self.onlyFounderAdmits = onlyFounderAdmits
    self.allowsUnsealed = allowsUnsealed
  }
}

/// A member of a session. docs/local-api.md, event 136.
public struct Member: Hashable, Sendable {
  /// How a member stands.
  public enum State: Hashable, Sendable {
    case connecting
    /// Messages reach it. Told again without another state before: the two have met anew, and messages between may be
    /// lost.
    case connected
    /// Connected, but its application has read nothing for 30 s.
    case paused
    /// Out of reach. It returns uninvited.
    case away
    /// This node's user or application does not accept its certificate.
    case rejected
    /// It left by itself, with a farewell.
    case left(String)
    /// Its application ended without a word, or its daemon did.
    case crashed
    /// It found no place when sessions merged.
    case foundNoPlace
    /// A member with that right put it out, with an explanation.
    case ejected(String)
  }

  public let address: Address
  public let peer: Peer
  public let state: State

  /// Messages can be sent to it.
  public var isConnected: Bool { state == .connected || state == .paused }

  /// It is no member any more.
  public var hasLeft: Bool {
    switch state {
    case .left, .crashed, .foundNoPlace, .ejected: true
    case .connecting, .connected, .paused, .away, .rejected: false
    }
  }
}

/// A message that came.
public struct Message: Hashable, Sendable {
  /// Who sent it, as it stands at that time.
  public let sender: Member
  /// At most 65,000 bytes.
  public let bytes: [UInt8]
  public let isReliable: Bool

  /// The bytes as text that is harmless to print: what is no UTF-8 is repaired, control characters are replaced.
  public var text: String { harmless(String(decoding: bytes, as: UTF8.self)) }
}

/// What happens in a session, in order.
public enum SessionEvent: Hashable, Sendable {
  /// A member has another state. Changes that the application did not take in time are told as one.
  case member(Member)
  case message(Message)
  /// There is room for messages to this member again, after `Delivery.noRoom`.
  case room(Address)
  /// A member opened a stream: take or refuse it. One that is not kept is refused.
  case stream(OfferedStream)
  /// A member offers files or folders: accept or decline them. One that is not kept is declined.
  case offer(Offer)
  /// This application is to decide on a member: `Session.decide`. By its node's id, which stands for its key, by whether that is
  /// pinned, or by the certificates (X.509 in DER) with which the node has proved its key: its own comes first, then each one's
  /// issuer, at most 6 KiB of them. They are none where traffic is not sealed, with an application on the same box, and from
  /// a daemon of the first version. The daemon has checked the key, and the chain only by the box's own anchors.
  /// Only in a session that was opened with `decides`.
  case decisionWanted(Address, Peer, certificates: [[UInt8]])
  /// The last event. All messages of the session came before.
  case ended(SessionEnd)
}

/// Why a session ended for this application. docs/local-api.md, event 135.
public enum SessionEnd: Hashable, Sendable {
  case left
  /// With the explanation.
  case ejected(String)
  /// Merged sessions had too many members.
  case full
  /// It is the same as another session of this application, which goes on.
  case merged
  /// A reason of a later daemon.
  case other(UInt8)
}

/// How a message travels. docs/local-api.md, “send”.
public enum Mode: UInt8, Hashable, Sendable {
  /// Whole, in order, once.
  case reliable = 0
  /// The same, behind everything else: for what is large and not urgent.
  case bulk = 1
  /// At once, whole or not at all; may be lost or overtaken.
  case unreliable = 2
}

/// What became of a reliable message to one member. docs/local-api.md, event 138.
public enum Delivery: UInt8, Hashable, Sendable {
  /// The member's box has it.
  case delivered = 0
  /// It may have arrived, but not twice.
  case failed = 1
  /// It was not sent: the member's share is full. `SessionEvent.room` says when to try again; `Session.deliver` waits
  /// for it.
  case noRoom = 2
  /// It was not sent.
  case notConnected = 3
}

/// How an invitation ended. docs/local-api.md, event 133.
public enum Outcome: Hashable, Sendable {
  case connected
  /// With the invitee's explanation.
  case declined(String)
  case timedOut
  case cancelled
  case busy
  case full
  case noService
  case incompatible
  case sessionEnded
  /// An outcome of a later daemon.
  case other(UInt8)

  /// Nil when it ended well.
  var error: CausewayError? {
    switch self {
    case .connected: nil
    case .declined(let text): CausewayError(.declined, text.isEmpty ? "declined" : "declined: \(text)")
    case .timedOut: CausewayError(.timedOut, "nobody answered the invitation in time")
    case .cancelled: CausewayError(.cancelled, "the invitation was cancelled")
    case .busy: CausewayError(.busy, "the invitee has too many invitations")
    case .full: CausewayError(.full, "the session has no place left")
    case .noService: CausewayError(.noService, "nobody is there any more")
    case .incompatible: CausewayError(.incompatible, "the rules of the two sessions differ")
    case .sessionEnded: CausewayError(.ended, "the session has ended")
    case .other(let code): CausewayError(.other(code), "the invitation ended with outcome \(code)")
    }
  }
}
