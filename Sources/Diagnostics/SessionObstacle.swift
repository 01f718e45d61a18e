/// Why two nodes have no end-to-end session although there is a route between them, seen from this box.
public enum SessionObstacle: Equatable, Sendable {
  /// This box refuses the other node.
  case refusedHere(TrustFault)
  /// The other node refuses this box's key, certificate or name.
  case refusedThere
  /// This box refused the other node and would accept it now; the two are still in the pause that follows a refusal.
  case acceptedSince
  /// What one node advertises differs from what it sends inside the session.
  case contradiction
  case noCommonVersion
  /// All places for sessions or handshakes are taken here.
  case noPlaceHere
  /// They are taken there.
  case noPlaceThere
  /// The last handshake got no answer.
  case silent
  /// The node that answered has another key.
  case otherKey
  /// The last handshake failed otherwise; the reason in a few words.
  case failed(String)
}

/// A `SessionObstacle` with its age.
public struct SessionFault: Equatable, Sendable {
  public var obstacle: SessionObstacle
  public var secondsAgo: UInt64

  public init(_ obstacle: SessionObstacle, secondsAgo: UInt64) {
    self.obstacle = obstacle
    self.secondsAgo = secondsAgo
  }
}

extension SessionObstacle {
  /// A refusal stands until a session is established. The others may be over after a while.
  var stands: Bool {
    switch self {
    case .refusedHere, .refusedThere, .acceptedSince, .contradiction, .noCommonVersion, .noPlaceHere: true
    case .noPlaceThere, .silent, .otherKey, .failed: false
    }
  }

  func text(_ names: RemedyNames) -> String {
    switch self {
    case .refusedHere(let fault): joined("this box refuses ", names.peer, ": ", fault.text)
    case .refusedThere: joined(names.peer, " refuses this box: it does not accept this box's key, certificate or name")
    case .acceptedSince:
      joined("this box refused ", names.peer, " and would accept it now; they wait until a minute is over")
    case .contradiction:
      joined("what ", names.peer, " or this box advertises was altered on the way: it differs inside the session")
    case .noCommonVersion: joined(names.peer, " and this box have no version of the end-to-end session in common")
    case .noPlaceHere: "this box is busy: all its places for sessions with peers are taken"
    case .noPlaceThere: joined(names.peer, " is busy: all its places for sessions with peers are taken")
    case .silent: joined(names.peer, " does not answer the end-to-end handshake")
    case .otherKey: joined("the node that answers for ", names.peer, " has another key")
    case .failed(let reason): joined("the end-to-end handshake with ", names.peer, " failed: ", reason)
    }
  }

  func remedy(_ names: RemedyNames) -> String {
    switch self {
    case .refusedHere(let fault): fault.remedy(names)
    case .refusedThere:
      joined("on ", names.peer, ": causeway identity trust ", names.ownID, "; then here: causeway ping ", names.peerID)
    case .acceptedSince: "ask again in a minute"
    case .contradiction:
      joined("causeway trace ", names.peerID, " names the boxes on the way; one of them alters frames")
    case .noCommonVersion: "compare “causeway version” of the two"
    case .noPlaceHere: "ask again in some seconds; if it stays so: causeway log --level info"
    case .noPlaceThere:
      joined("ask again in some seconds; if it stays so, on ", names.peer, ": causeway log --level info")
    case .silent, .otherKey, .failed:
      joined("on ", names.peer, ": causeway explain ", names.ownID, " says whether it refuses this box")
    }
  }
}
