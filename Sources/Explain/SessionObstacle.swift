/// The reason, as far as this box knows, why two nodes have a route but no end-to-end session.
public enum SessionObstacle: Equatable, Sendable {
  /// This box refuses the other node.
  case refusedHere(TrustFault)
  /// The other node refuses this box's key, certificate or name.
  case refusedThere
  /// This box refused the other node and would accept it now. The pause that follows a refusal has not ended.
  case acceptedSince
  /// The advertisement of one of the nodes differs from the sealed hello that this node sends inside the session.
  case contradiction
  case noCommonVersion
  /// This box has no free session or handshake.
  case noSlotHere
  /// The other node has no free session or handshake.
  case noSlotThere
  /// The last handshake timed out.
  case silent
  /// The node that answered has a different key.
  case otherKey
  /// The last handshake failed for another reason, given in a few words.
  case failed(String)
}

/// A `SessionObstacle`, and the time since it occurred.
public struct SessionFault: Equatable, Sendable {
  public var obstacle: SessionObstacle
  public var secondsAgo: UInt64

  public init(_ obstacle: SessionObstacle, secondsAgo: UInt64) {
    self.obstacle = obstacle
    self.secondsAgo = secondsAgo
  }
}

extension SessionObstacle {
  /// Whether the obstacle remains until a session is established. The other obstacles can disappear without an action
  /// of the user.
  var stands: Bool {
    switch self {
    case .refusedHere, .refusedThere, .acceptedSince, .contradiction, .noCommonVersion, .noSlotHere: true
    case .noSlotThere, .silent, .otherKey, .failed: false
    }
  }

  func text(_ names: RemedyNames) -> String {
    switch self {
    case .refusedHere(let fault): joined("this box refuses ", names.peer, ": ", fault.text)
    case .refusedThere: joined(names.peer, " refuses this box: it does not accept this box's key, certificate or name")
    case .acceptedSince:
      joined("this box refused ", names.peer, ", but accepts it now; they retry within a minute")
    case .contradiction:
      joined("an advertisement of ", names.peer, " or this box was altered on the path: the session contradicts it")
    case .noCommonVersion: joined(names.peer, " and this box have no common version of the end-to-end session")
    case .noSlotHere: "this box is busy: all its sessions with peers are in use"
    case .noSlotThere: joined(names.peer, " is busy: all its sessions with peers are in use")
    case .silent: joined(names.peer, " does not answer the end-to-end handshake")
    case .otherKey: joined("the node that answered for ", names.peer, " has another key")
    case .failed(let reason): joined("the end-to-end handshake with ", names.peer, " failed: ", reason)
    }
  }

  func remedy(_ names: RemedyNames) -> String {
    switch self {
    case .refusedHere(let fault): fault.remedy(names)
    case .refusedThere:
      joined("on ", names.peer, ": causeway identity trust ", names.ownID, "; then here: causeway ping ", names.peerID)
    case .acceptedSince: "try again in a minute"
    case .contradiction:
      joined("causeway trace ", names.peerID, " shows the boxes on the path; one of them alters frames")
    case .noCommonVersion: "compare “causeway version” on both"
    case .noSlotHere: "try again in a few seconds; if it persists: causeway log --level info"
    case .noSlotThere:
      joined("try again in a few seconds; if it persists, on ", names.peer, ": causeway log --level info")
    case .silent, .otherKey, .failed:
      joined("on ", names.peer, ": causeway explain ", names.ownID, " shows whether it refuses this box")
    }
  }
}
