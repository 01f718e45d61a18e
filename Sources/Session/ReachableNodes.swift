import Primitives

/// The nodes that are reachable, and those on which a member was connected before.
struct ReachableNodes {
  /// The difference that a report of a node makes.
  enum Change {
    case none
    case found
    /// The node has another boot epoch, or its traffic has changed between sealed and unsealed.
    case restarted(hasOtherEpoch: Bool)
  }

  private struct Entry {
    let node: NodeID
    var epoch: UInt64
    /// Whether traffic with the node is sealed (encrypted end to end).
    var isSealed: Bool
    /// The address at the other end of the link over which this node is reached.
    var ingress: UInt64 = 0
    var isPinned = false
  }

  let local: NodeID
  private var entries: [Entry] = []
  /// The nodes on which a member was connected, the latest one last.
  private var formerMembers: [NodeID] = []

  init(local: NodeID) { self.local = local }

  mutating func found(_ node: NodeID, epoch: UInt64, isSealed: Bool) -> Change {
    guard let index = entries.firstIndex(where: { $0.node == node }) else {
      entries.append(Entry(node: node, epoch: epoch, isSealed: isSealed))
      return .found
    }
    if entries[index].epoch == epoch && entries[index].isSealed == isSealed { return .none }
    let hasOtherEpoch = entries[index].epoch != epoch
    entries[index].epoch = epoch
    entries[index].isSealed = isSealed
    return .restarted(hasOtherEpoch: hasOtherEpoch)
  }

  mutating func lost(_ node: NodeID) { entries.removeAll { $0.node == node } }

  func contains(_ node: NodeID) -> Bool { node == local || entries.contains { $0.node == node } }

  /// Whether traffic with a node is sealed; nil if the node is unreachable. This node's messages to itself are sealed.
  func isSealed(_ node: NodeID) -> Bool? {
    node == local ? true : entries.first { $0.node == node }?.isSealed
  }

  /// Sets the link over which a node is reached, and whether the operator pinned the node's key.
  mutating func note(_ node: NodeID, ingress: UInt64, isPinned: Bool) {
    guard let index = entries.firstIndex(where: { $0.node == node }) else { return }
    entries[index].ingress = ingress
    entries[index].isPinned = isPinned
  }

  func holder(_ node: NodeID) -> Holder {
    if node == local { return Holder(node: node, ingress: .max, standing: .pinned) }
    let entry = entries.first { $0.node == node }
    let standing: Holder.Standing =
      entry?.isPinned == true ? .pinned : formerMembers.contains(node) ? .formerMember : .stranger
    return Holder(node: node, ingress: entry?.ingress ?? 0, standing: standing)
  }

  /// Notes that a member on `node` connected: from then on the node's admission class is `.formerMember` at least. If
  /// the list is full, the node that connected longest ago is removed.
  mutating func memberConnected(on node: NodeID) {
    if node == local || formerMembers.last == node { return }
    formerMembers.removeAll { $0 == node }
    if formerMembers.count == SessionLimits.formerMembersMax { formerMembers.removeFirst() }
    formerMembers.append(node)
  }
}
