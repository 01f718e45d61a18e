import Primitives

/// Notices that another node uses this node's key where nobody passes on its advertisements (`EpochContest`): a neighbour
/// that is linked with the other one closes each link of this node as the lesser of the two (`CloseReason.duplicate`).
///
/// A former link of this node looks the same to it, until it has given that up: within 7 s. A neighbour that lies looks the same
/// to this node: so it is told as the neighbour's word, and nothing else follows from it.
struct OtherHolder {
  /// One neighbour has closed links for so long.
  static let patience = TimeSpan.seconds(20)
  /// Above the longest pause between two dials: what comes later is another story.
  static let memory = TimeSpan.seconds(60)
  /// It is told again after so long.
  static let pause = TimeSpan.seconds(600)

  /// The one that is watched, of several the first.
  private var neighbour = NodeID.none
  private var since = Instant.zero, last = Instant.zero
  private var toldAt: Instant?

  /// A neighbour has closed a link as the lesser of two, and this node has no other one to it. True when it is to be told
  /// that another node uses the key.
  mutating func linkRefused(by peer: NodeID, now: Instant) -> Bool {
    if neighbour == .none || last + Self.memory < now { (neighbour, since, toldAt) = (peer, now, nil) }
    guard peer == neighbour else { return false }
    last = now
    if now < since + Self.patience { return false }
    if let toldAt, now < toldAt + Self.pause { return false }
    toldAt = now
    return true
  }

  /// A link of this node to a neighbour has lasted.
  mutating func linkStands(with peer: NodeID) {
    if peer == neighbour { neighbour = .none }
  }

  /// Whether it was told that a neighbour is linked with the other node.
  func isKnown(to peer: NodeID) -> Bool { peer == neighbour && toldAt != nil }
}
