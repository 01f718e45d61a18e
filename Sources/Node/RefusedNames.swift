import Frame
import Primitives

/// The names in signed profiles that this node refused, because another key is pinned under the name. The mesh stores
/// none of these profiles. The table has the name when the refused node proves its key in an encrypted session.
///
/// Every node in the mesh can fill an entry by a profile with a valid signature. An entry is charged to the link that
/// delivered the profile. In a full table, the oldest entry of the link with the most entries is replaced. If the node
/// of a replaced entry has a session, its name is checked when its profile is renewed (`Node.refuses`).
struct RefusedNames {
  static let entriesMax = 64

  private struct Entry {
    var node = NodeID.none
    /// The boot epoch of the profile.
    var epoch: UInt64 = 0
    var name: DisplayName?
    /// The slot of the link to which the entry is charged, or `FairShare.ownHolder` after that link has closed.
    var holder = FairShare.ownHolder
    /// The number of the entry, which increases with each new entry. 0 in a free entry.
    var order: UInt64 = 0
  }

  private var entries = FixedArray<64, Entry>(repeating: Entry())
  private var lastOrder: UInt64 = 0

  /// The name that this node refused in a profile of `node` in that boot epoch; nil if there is none.
  func name(of node: NodeID, in epoch: UInt64) -> DisplayName? {
    guard let index = find(node), entries[index].epoch == epoch else { return nil }
    return entries[index].name
  }

  /// The node and name of each entry.
  var all: [(node: NodeID, name: DisplayName)] {
    entries.indices.compactMap { index in entries[index].name.map { (entries[index].node, $0) } }
  }

  /// Records a refused name, which the link in slot `holder` delivered. A repeated profile stays charged to the first
  /// link, because every neighbour can repeat the profiles of others.
  mutating func note(_ node: NodeID, _ name: DisplayName, in epoch: UInt64, on holder: Int) {
    if let index = find(node) {
      if entries[index].epoch > epoch { return }
      entries[index].epoch = epoch
      entries[index].name = name
      if entries[index].holder == FairShare.ownHolder { entries[index].holder = holder }
      return
    }
    lastOrder += 1
    let free = entries.indices.first { entries[$0].order == 0 }
    entries[free ?? oldestOfLargest] = Entry(node: node, epoch: epoch, name: name, holder: holder, order: lastOrder)
  }

  /// Removes the entry of a node whose profile of `epoch` was accepted, unless the entry is of a later epoch.
  mutating func forget(_ node: NodeID, in epoch: UInt64 = .max) {
    guard let index = find(node), entries[index].epoch <= epoch else { return }
    entries[index] = Entry()
  }

  mutating func linkClosed(_ slot: Int) {
    for index in entries.indices where entries[index].holder == slot { entries[index].holder = FairShare.ownHolder }
  }

  private func find(_ node: NodeID) -> Int? { entries.indices.first { entries[$0].node == node } }

  private var oldestOfLargest: Int {
    FairShare.oldestOfLargest(Self.entriesMax, holder: { entries[$0].holder }, order: { entries[$0].order })
  }
}
