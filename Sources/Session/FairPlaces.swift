import Primitives

/// The proven facts about the node that takes a place in a table of the sessions. In a table of what this node's own
/// applications share they are the application and its user (`SessionOwner.holder`).
struct Holder: Equatable {
  /// The higher ones have places that the lower ones cannot take.
  enum Standing: UInt8, Comparable {
    case stranger
    /// It was a connected member of a session of this node.
    case formerMember
    /// Its key is pinned here, or it is this node.
    case pinned

    static func < (a: Standing, b: Standing) -> Bool { a.rawValue < b.rawValue }

    /// Of `capacity` places those that are left to higher standings.
    func reserve(of capacity: Int) -> Int {
      switch self {
      case .stranger: capacity / 4
      case .formerMember: capacity / 8
      case .pinned: 0
      }
    }
  }

  let node: NodeID
  /// The address at the other end of the link over which the node is reached: keys cost nothing, links do.
  let ingress: UInt64
  let standing: Standing
}

/// One table whose places nodes share.
///
/// A full table takes a newcomer in by pushing out: of the lowest standing the link that holds most gives way, of that link
/// the node that holds most, and of that node the oldest. The newcomer counts. So a link with many keys has no more than
/// its share, and the newest of each holder stays.
struct FairPlaces {
  struct Entry {
    let holder: Holder
    let since: Instant
    /// False for what cannot be taken back.
    var mayYield = true
  }

  enum Place: Equatable {
    case free
    case instead(of: Int)
    case none
  }

  let capacity: Int
  /// Without a larger share an entry gives way only after this time, which bounds how fast one holder can replace its own.
  let standTime: TimeSpan

  /// The place for a newcomer. `entries` are in their order of arrival.
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
  /// The host reports over which link a node is reached, by the address at its other end, and whether the node's key is
  /// pinned: before it hands over a message of the node for whose effect there are few places.
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

  /// A member connected: the node keeps a better standing than a stranger's. The one that connected longest ago is forgotten.
  func noteMember(_ node: NodeID) {
    if node == local || formerMembers.last == node { return }
    formerMembers.removeAll { $0 == node }
    if formerMembers.count == SessionLimits.formerMembersMax { formerMembers.removeFirst() }
    formerMembers.append(node)
  }
}
