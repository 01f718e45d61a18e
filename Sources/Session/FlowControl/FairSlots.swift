import Primitives

/// The node to which a table slot is charged, with the link over which the node is reached, and the admission class of
/// the node. In tables that local applications share, the application stands for the node and its user for the link
/// (`SessionOwner.holder`).
struct Holder: Equatable {
  /// The admission class of a node. For each class, slots are reserved that lower classes cannot use.
  enum Standing: UInt8, Comparable {
    /// A node that is neither proven nor pinned.
    case stranger
    /// A member on the node was connected before, in a session of this node.
    case formerMember
    /// The operator pinned the node's key here, or the node is the local node.
    case pinned

    static func < (a: Standing, b: Standing) -> Bool { a.rawValue < b.rawValue }

    /// The number of slots, of `capacity`, that are reserved for higher classes.
    func reserve(of capacity: Int) -> Int {
      switch self {
      case .stranger: capacity / 4
      case .formerMember: capacity / 8
      case .pinned: 0
      }
    }
  }

  let node: NodeID
  /// The address at the other end of the link over which a node is reached. An attacker can create keys at no cost, but
  /// not links.
  let ingress: UInt64
  let standing: Standing
}

/// A table whose slots are shared by nodes, by the links to these nodes, and by admission class.
///
/// A full table evicts an existing entry of the lowest class for a new entry. The evicted entry is the oldest of the
/// node with the most entries, on the link with the most entries. The new entry is counted for its own link and node.
/// So a link with many keys has no more than its share.
struct FairSlots {
  struct Entry {
    let holder: Holder
    let since: Instant
    /// Whether the entry can be evicted.
    var mayYield = true
  }

  enum Choice: Equatable {
    case free
    /// The slot of the entry with this index, which is evicted.
    case instead(of: Int)
    case none
  }

  let capacity: Int
  /// The age from which an entry can be evicted even if its link and node have no more entries than those of the new
  /// entry. This age limits how fast a node can replace its own entries.
  let standTime: TimeSpan

  /// Finds a slot for a new entry of `newcomer`. `entries` are in their order of arrival.
  func choose(for newcomer: Holder, among entries: [Entry], now: Instant) -> Choice {
    let below = entries.count { $0.holder.standing <= newcomer.standing }
    if entries.count < capacity && below < capacity - newcomer.standing.reserve(of: capacity) { return .free }
    var lowest: Holder.Standing?
    for entry in entries where entry.mayYield && entry.holder.standing <= newcomer.standing {
      lowest = min(lowest ?? entry.holder.standing, entry.holder.standing)
    }
    guard let lowest else { return .none }
    let rivals =
      entries.map { $0.holder }.filter { $0.standing == lowest } + (newcomer.standing == lowest ? [newcomer] : [])
    func share(_ holder: Holder) -> (link: Int, node: Int) {
      (rivals.count { $0.ingress == holder.ingress }, rivals.count { $0.node == holder.node })
    }
    var victim: (index: Int, share: (link: Int, node: Int))?
    for (index, entry) in entries.enumerated() where entry.mayYield && entry.holder.standing == lowest {
      let share = share(entry.holder)
      if let victim, share <= victim.share { continue }
      victim = (index, share)
    }
    guard let victim else { return .none }
    let entry = entries[victim.index], own = share(newcomer)
    let isOwed =
      lowest < newcomer.standing || victim.share.link > own.link
      || (entry.holder.ingress == newcomer.ingress && victim.share.node > own.node)
    return isOwed || now - entry.since >= standTime ? .instead(of: victim.index) : .none
  }
}

extension Sessions {
  /// Sets the link over which a node is reached, by the address at the link's other end, and whether the operator
  /// pinned the node's key. The host calls this method before passing a message of the node that needs a slot of a
  /// shared table.
  public func note(_ node: NodeID, ingress: UInt64, isPinned: Bool) {
    nodes.note(node, ingress: ingress, isPinned: isPinned)
  }

  func holder(_ node: NodeID) -> Holder { nodes.holder(node) }
}
