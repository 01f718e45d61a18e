import Primitives
import Text

/// The peers that a command knows, with a lookup by name or id.
public struct PeerBook {
  public private(set) var peers: [PeerStatus] = []
  public init() {}

  /// Adds or updates a peer. Returns whether the peer is new.
  public mutating func present(_ peer: PeerStatus) -> Bool {
    if let index = peers.firstIndex(where: { $0.id == peer.id }) {
      peers[index] = peer
      return false
    }
    peers.append(peer)
    return true
  }

  /// Removes a peer. Returns the removed peer, or nil if the peer was unknown.
  public mutating func lost(_ id: NodeID) -> PeerStatus? {
    guard let index = peers.firstIndex(where: { $0.id == id }) else { return nil }
    return peers.remove(at: index)
  }

  public func peer(_ id: NodeID) -> PeerStatus? { peers.first { $0.id == id } }

  /// The display name of a node. The short id is added if another peer has the same name. For an unknown node, only the
  /// short id.
  public func name(_ id: NodeID) -> String {
    guard let name = peer(id)?.name else { return id.shortText }
    let isShared = peers.contains { $0.id != id && $0.name.utf8.elementsEqual(name.utf8) }
    return isShared ? "\(name) (\(id.shortText))" : name
  }

  /// The result of a lookup by name.
  public enum Match {
    case one(NodeID)
    case none
    case several([NodeID])
  }

  /// Finds a peer by its exact display name, or by the first hexadecimal digits of its id (at least 4).
  ///
  /// A peer whose name looks like another peer's id cannot be found instead of that peer. A text of 8 or 32 hexadecimal
  /// digits, the two forms in which ids are shown, never matches a name. A text of another length that matches one
  /// peer's id and another peer's name yields `.several`.
  public func match(_ text: String) -> Match {
    let wanted = Array(text.utf8)
    var ids: [NodeID] = []
    for peer in peers {
      let isCalledSo = !looksLikeNodeID(wanted.span.bytes) && peer.name.utf8.elementsEqual(wanted)
      if isCalledSo || peer.id.begins(withDigits: wanted) { ids.append(peer.id) }
    }
    return ids.isEmpty ? .none : ids.count == 1 ? .one(ids[0]) : .several(ids)
  }
}
