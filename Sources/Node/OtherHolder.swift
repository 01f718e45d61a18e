import Primitives

/// Notices that another node uses this node's key where nobody passes on its advertisements (`EpochContest`): a neighbour
/// that is linked with the other one closes each link of this node as the lesser of the two (`CloseReason.duplicate`).
///
/// A former link of this node looks the same to it, until it has given that up: within 7 s. A neighbour that lies looks the
/// same to this node, so it is reported as the neighbour's statement, and nothing else follows from it. Each neighbour is
/// watched by itself, and their addresses share the places (`SourcePlaces`): a liar hides no other neighbour's statement.
struct OtherHolder {
  /// One neighbour has closed links for so long.
  static let patience = TimeSpan.seconds(20)
  /// Above the longest pause between two dials. A refusal after a longer time begins another watch.
  static let memory = TimeSpan.seconds(60)
  /// It is reported again after so long, by the neighbours of one address together.
  static let pause = TimeSpan.seconds(600)

  private struct Watch {
    var neighbour = NodeID.none
    var since = Instant.zero
    var last = Instant.zero
    var reportedAt: Instant?
  }

  private var watches = FixedArray<64, Watch>(repeating: Watch())
  private var sources = SourcePlaces()

  /// A neighbour with the address `source` has closed a link as the lesser of two, and this node has no other one to it.
  /// True when it is to be reported that another node uses the key.
  mutating func linkRefused(by peer: NodeID, from source: UInt64, now: Instant) -> Bool {
    let index: Int
    if let known = find(peer) {
      index = known
      if watches[index].last + Self.memory < now { watches[index].since = now }
    } else {
      index = place(for: source)
      watches[index] = Watch(neighbour: peer, since: now)
    }
    sources[index] = source
    watches[index].last = now
    if now < watches[index].since + Self.patience || wasReported(source, now) { return false }
    watches[index].reportedAt = now
    return true
  }

  /// A link of this node to a neighbour has lasted.
  mutating func linkStands(with peer: NodeID) {
    guard let index = find(peer) else { return }
    watches[index] = Watch()
    sources[index] = 0
  }

  /// Whether a neighbour has closed links for long enough to be linked with the other node.
  func isKnown(to peer: NodeID) -> Bool {
    guard let index = find(peer) else { return false }
    return watches[index].last >= watches[index].since + Self.patience
  }

  private func wasReported(_ source: UInt64, _ now: Instant) -> Bool {
    for index in watches.indices where sources[index] == source {
      if let reportedAt = watches[index].reportedAt, now < reportedAt + Self.pause { return true }
    }
    return false
  }

  private func find(_ peer: NodeID) -> Int? {
    for index in watches.indices where watches[index].neighbour == peer { return index }
    return nil
  }

  /// A free place, or that of the address with most whose neighbour was silent longest.
  private func place(for source: UInt64) -> Int {
    let most = sources.most(beside: source)
    var place = 0
    var oldest = Instant.never
    for index in watches.indices {
      if watches[index].neighbour == .none { return index }
      if watches[index].last < oldest && sources.held(by: sources[index], beside: source) == most {
        (place, oldest) = (index, watches[index].last)
      }
    }
    return place
  }
}
