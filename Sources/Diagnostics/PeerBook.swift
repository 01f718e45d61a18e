import Primitives

/// The peers that a command has been told of, and how people name them.
public struct PeerBook {
  public private(set) var peers: [PeerStatus] = []
  public init() {}

  /// True when it was not known before.
  public mutating func present(_ peer: PeerStatus) -> Bool {
    if let index = peers.firstIndex(where: { $0.id == peer.id }) {
      peers[index] = peer
      return false
    }
    peers.append(peer)
    return true
  }

  /// The peer that is gone, if it was known.
  public mutating func lost(_ id: NodeID) -> PeerStatus? {
    guard let index = peers.firstIndex(where: { $0.id == id }) else { return nil }
    return peers.remove(at: index)
  }

  public func peer(_ id: NodeID) -> PeerStatus? { peers.first { $0.id == id } }

  /// The display name of a node; its short id when it is not known.
  public func name(_ id: NodeID) -> String { peer(id)?.name ?? id.shortText }

  /// What a name given by a person leads to.
  public enum Match {
    case one(NodeID)
    case none
    case several([NodeID])
  }

  /// Find a peer by its exact display name, else by the first hexadecimal digits of its id (at least 4).
  public func match(_ text: String) -> Match {
    let wanted = Array(text.utf8)
    let named = peers.filter { $0.name.utf8.elementsEqual(wanted) }
    if named.count == 1 { return .one(named[0].id) }
    if named.count > 1 { return .several(named.map { $0.id }) }
    guard wanted.count >= 4, let digits = Self.hexDigits(wanted) else { return .none }
    let prefixed = peers.filter { peer in
      digits.indices.allSatisfy { index in
        let byte = peer.id.byte(index / 2)
        return digits[index] == (index % 2 == 0 ? byte >> 4 : byte & 15)
      }
    }
    if prefixed.count == 1 { return .one(prefixed[0].id) }
    return prefixed.isEmpty ? .none : .several(prefixed.map { $0.id })
  }

  private static func hexDigits(_ bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count <= NodeID.byteCount * 2 else { return nil }
    var digits: [UInt8] = []
    for byte in bytes {
      guard let digit = hexDigit(byte) else { return nil }
      digits.append(digit)
    }
    return digits
  }
}
