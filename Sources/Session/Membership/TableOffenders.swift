import Primitives

/// The nodes whose tables had wrong signatures. A node with many wrong signatures is refused for a time. Each check
/// costs as much as a signature that the node's link could use for correct members. The full list forgets its oldest
/// node.
struct TableOffenders {
  private var entries: [(node: NodeID, count: Int, since: Instant)] = []

  /// Whether the tables of a node are ignored now.
  func isRefused(_ node: NodeID, _ now: Instant) -> Bool {
    entries.contains {
      $0.node == node && $0.count >= SessionLimits.forgeriesMax && now - $0.since < SessionLimits.forgerTime
    }
  }

  /// Counts wrong signatures of a node.
  mutating func count(_ node: NodeID, _ count: Int, _ now: Instant) {
    entries.removeAll { now - $0.since >= SessionLimits.forgerTime }
    if let index = entries.firstIndex(where: { $0.node == node }) {
      entries[index].count += count
      entries[index].since = now
    } else {
      if entries.count == SessionLimits.offendersMax { entries.removeFirst() }
      entries.append((node, count, now))
    }
  }
}
