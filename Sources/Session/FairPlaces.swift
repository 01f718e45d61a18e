import Primitives

/// The proven facts about a node that takes a place in a table. In tables that the applications of this node share, the
/// application stands for the node and its user for the link (`SessionOwner.holder`).
struct Holder: Equatable {
  /// Higher standings have reserved places that lower ones cannot take.
  enum Standing: UInt8, Comparable {
    case stranger
    /// The node was a connected member of a session of this node.
    case formerMember
    /// The node's key is pinned here, or it is this node.
    case pinned

    static func < (a: Standing, b: Standing) -> Bool { a.rawValue < b.rawValue }

    /// The part of `capacity` places that is reserved for higher standings.
    func reserve(of capacity: Int) -> Int {
      switch self {
      case .stranger: capacity / 4
      case .formerMember: capacity / 8
      case .pinned: 0
      }
    }
  }

  let node: NodeID
  /// The address at the other end of the link over which the node is reached. Keys cost nothing, links do.
  let ingress: UInt64
  let standing: Standing
}

/// A table whose places are shared by nodes.
///
/// A full table evicts an entry of the lowest standing for a new one. The victim is the oldest entry of one node: the
/// node with the most entries on the link with the most. The new entry counts for its own link and node. So a link with
/// many keys has no more than its share, and the newest entry of each holder stays.
struct FairPlaces {
  struct Entry {
    let holder: Holder
    let since: Instant
    /// Whether the entry can be evicted.
    var mayYield = true
  }

  enum Place: Equatable {
    case free
    case instead(of: Int)
    case none
  }

  let capacity: Int
  /// The age from which an entry can be evicted even if its holder has no larger share. It bounds how fast a holder can
  /// replace its own entries.
  let standTime: TimeSpan

  /// Finds a place for a new entry. `entries` are in their order of arrival.
  func place(for newcomer: Holder, among entries: [Entry], now: Instant) -> Place {
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
  /// Sets the link over which a node is reached, by the address at its other end, and whether the node's key is pinned.
  /// The host calls it before it passes a message of the node that needs one of few places.
  public func note(_ node: NodeID, ingress: UInt64, isPinned: Bool) {
    guard let index = peers.firstIndex(where: { $0.node == node }) else { return }
    peers[index].ingress = ingress
    peers[index].isPinned = isPinned
  }

  func holder(_ node: NodeID) -> Holder {
    if node == local { return Holder(node: node, ingress: .max, standing: .pinned) }
    let peer = peers.first { $0.node == node }
    let standing: Holder.Standing =
      peer?.isPinned == true ? .pinned : formerMembers.contains(node) ? .formerMember : .stranger
    return Holder(node: node, ingress: peer?.ingress ?? 0, standing: standing)
  }

  /// Notes a member that connected: from then on its node has a better standing than an unknown one. If the list is
  /// full, the node that connected longest ago is removed.
  func noteMember(_ node: NodeID) {
    if node == local || formerMembers.last == node { return }
    formerMembers.removeAll { $0 == node }
    if formerMembers.count == SessionLimits.formerMembersMax { formerMembers.removeFirst() }
    formerMembers.append(node)
  }
}
