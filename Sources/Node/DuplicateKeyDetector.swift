import Primitives

/// Detects another node that uses this node's key when no path forwards that node's advertisements. Where a path
/// forwards these advertisements, `EpochRecovery` detects the other node. A neighbour that is linked with the other
/// node closes each link of this node as a duplicate (`CloseReason.duplicate`).
///
/// The close of one link as a duplicate proves nothing. The neighbour may still have a former link of this node, which
/// times out within 7 s. The neighbour may also lie. So this node only reports the neighbour's claim, and does nothing
/// else.
///
/// Each neighbour is watched separately, and the table's entries are divided among the addresses of neighbours
/// (`SourceSlots`). So a liar cannot hide the claim of another neighbour.
struct DuplicateKeyDetector {
  /// How long a neighbour must have closed links before the other node is reported.
  static let patience = TimeSpan.seconds(20)
  /// A refusal later than this after the last one starts a new watch. The time is longer than the longest pause between
  /// two dials.
  static let memory = TimeSpan.seconds(60)
  /// The least interval between reports about the neighbours of one address.
  static let pause = TimeSpan.seconds(600)

  private struct Watch {
    var neighbour = NodeID.none
    var since = Instant.zero
    var last = Instant.zero
    var reportedAt: Instant?
  }

  private var watches = FixedArray<64, Watch>(repeating: Watch())
  private var sources = SourceSlots()

  /// Records that a neighbour with address `source` closed a link as a duplicate, although this node has no other link
  /// to it. Returns true if another node with this node's key must be reported.
  mutating func linkRefused(by peer: NodeID, from source: UInt64, now: Instant) -> Bool {
    let index: Int
    if let known = find(peer) {
      index = known
      if watches[index].last + Self.memory < now { watches[index].since = now }
    } else {
      index = self.index(for: source)
      watches[index] = Watch(neighbour: peer, since: now)
    }
    sources[index] = source
    watches[index].last = now
    if now < watches[index].since + Self.patience || wasReported(source, now) { return false }
    watches[index].reportedAt = now
    return true
  }

  /// Ends the watch of a neighbour after a link to it has lasted.
  mutating func linkStands(with peer: NodeID) {
    guard let index = find(peer) else { return }
    watches[index] = Watch()
    sources[index] = 0
  }

  /// Whether a neighbour has closed links for `patience`, so that it appears to be linked with the other node.
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

  /// The entry for a new watch, which is free if possible. In a full table, the address with the most entries loses the
  /// entry with the oldest refusal.
  private func index(for source: UInt64) -> Int {
    let most = sources.most(beside: source)
    var stalest = 0
    var oldest = Instant.never
    for index in watches.indices {
      if watches[index].neighbour == .none { return index }
      if watches[index].last < oldest && sources.held(by: sources[index], beside: source) == most {
        (stalest, oldest) = (index, watches[index].last)
      }
    }
    return stalest
  }
}
