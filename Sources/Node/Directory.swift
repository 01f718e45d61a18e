import Frame
import Mesh
import Primitives

/// A reachable node with a known profile.
public struct Peer: Equatable {
  public var id: NodeID
  public var epoch: UInt64
  public var name: DisplayName
  public var serviceType: [UInt8]
  /// The discovery info: `key=value` pairs in advertised order.
  public var info: [[UInt8]]
  /// The number of links on the path to the peer.
  public var hops: UInt8
  /// The bearer of the first link of the path.
  public var bearer: BearerKind
  /// The neighbour at the end of the first link, which is the peer itself if `hops` is 1.
  public var firstHop: NodeID
}

/// A change of a peer.
public enum PeerEvent: Equatable {
  case found(Peer)
  /// The profile, the epoch or the route changed.
  case changed(Peer)
  case lost(NodeID)
}

/// Derives peers from routes and profiles. A peer is reported found once and lost once, however many bearers lead to
/// it.
struct Directory {
  private struct Entry {
    var peer: Peer
    /// The epoch and sequence of the profile in `peer`.
    var profile: (UInt64, UInt64)
    var loss: Loss?
  }

  /// A peer without a route.
  private struct Loss {
    var since: Instant
    /// Whether the grace began again because a link was resumed. The grace begins again only once, because each visit
    /// to a parked node may be shorter than the grace.
    var isRenewed = false
  }

  /// The memory of one peer: its entry, and an array for each pair of discovery info.
  static let entryBytesMax =
    MemoryLayout<Entry>.stride + Limits.infoBytesMax
    + Limits.infoPairsMax * (MemoryLayout<[UInt8]>.stride + Self.arrayOverheadBytes)
  /// The overhead of an array: its header and the allocator's rounding.
  private static let arrayOverheadBytes = 48

  private var entries: [Entry] = []
  /// The last known position in `entries` of each node, by its mesh index.
  private var hints = [Int](repeating: 0, count: Limits.nodesMax)
  private var events: [PeerEvent] = []
  /// The time at which the peer that is without a route for longest lost its route, or `.never`.
  private var firstLoss = Instant.never

  var peers: [Peer] { entries.map { $0.peer } }

  func isPeer(_ id: NodeID) -> Bool { entries.contains { $0.peer.id == id } }

  func peer(_ id: NodeID) -> Peer? { entries.first { $0.peer.id == id }?.peer }

  mutating func nextEvent() -> PeerEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// When the next peer without a route is lost. `isParked`: whether all links of this node are parked.
  func deadline(isParked: Bool) -> Instant {
    firstLoss == .never ? .never : firstLoss + Self.grace(isParked: isParked)
  }

  private mutating func findFirstLoss() {
    firstLoss = .never
    for index in entries.indices { firstLoss = min(firstLoss, entries[index].loss?.since ?? .never) }
  }

  private static func grace(isParked: Bool) -> TimeSpan { isParked ? Timing.parkedGrace : Timing.peerGrace }

  /// Gives peers without a route their grace again, once for each loss. Called when a parked link is up again, because
  /// news of these peers is about to arrive.
  mutating func renewGrace(now: Instant) {
    for index in entries.indices where entries[index].loss?.isRenewed == false {
      entries[index].loss = Loss(since: now, isRenewed: true)
    }
    findFirstLoss()
  }

  /// Updates the peers from the mesh. `bearer` returns a link slot's bearer. While all links are parked (`isParked`), a
  /// peer is lost after a longer time, because news of its return arrives later.
  mutating func update(_ mesh: borrowing Mesh, isParked: Bool, now: Instant, bearer: (Int) -> BearerKind) {
    for index in 0..<mesh.indexEnd {
      guard let route = mesh.route(at: index), let stamp = mesh.stamp(of: index, .profile) else { continue }
      let id = mesh.node(at: index)
      let epoch = mesh.epoch(of: id) ?? stamp.epoch
      let first = bearer(Int(route.link))
      let known = position(of: id, at: index)
      if let known {
        entries[known].loss = nil
        let old = entries[known].peer
        let isSame =
          old.epoch == epoch && entries[known].profile == stamp && old.hops == route.hops && old.bearer == first
          && old.firstHop == route.firstHop
        if isSame { continue }
      }
      guard let bytes = mesh.advertisement(of: index, .profile), let advertisement = try? AdvertisementView(bytes),
        let profile = try? ProfileView(advertisement.body)
      else { continue }
      let entry = entry(id, epoch, profile, stamp, route, first)
      if let known {
        // A renewed profile with the same content is not a change.
        if entries[known].peer != entry.peer { events.append(.changed(entry.peer)) }
        entries[known] = entry
      } else {
        hints[index] = entries.count
        entries.append(entry)
        events.append(.found(entry.peer))
      }
    }
    forgetUnreachable(mesh, isParked, now)
    findFirstLoss()
  }

  private mutating func position(of id: NodeID, at index: Int) -> Int? {
    if hints[index] < entries.count, entries[hints[index]].peer.id == id { return hints[index] }
    guard let found = entries.firstIndex(where: { $0.peer.id == id }) else { return nil }
    hints[index] = found
    return found
  }

  private mutating func forgetUnreachable(_ mesh: borrowing Mesh, _ isParked: Bool, _ now: Instant) {
    for index in entries.indices.reversed() {
      if mesh.route(to: entries[index].peer.id) != nil {
        entries[index].loss = nil
        continue
      }
      guard let loss = entries[index].loss else {
        entries[index].loss = Loss(since: now)
        continue
      }
      if loss.since + Self.grace(isParked: isParked) <= now {
        events.append(.lost(entries[index].peer.id))
        entries.remove(at: index)
      }
    }
  }

  private func entry(
    _ id: NodeID, _ epoch: UInt64, _ profile: borrowing ProfileView, _ stamp: (UInt64, UInt64), _ route: Route,
    _ bearer: BearerKind
  ) -> Entry {
    var info: [[UInt8]] = []
    profile.info.forEach { info.append(array($0)) }
    let peer = Peer(
      id: id, epoch: epoch, name: profile.name, serviceType: sharedType(profile.serviceType), info: info,
      hops: route.hops, bearer: bearer, firstHop: route.firstHop)
    return Entry(peer: peer, profile: stamp, loss: nil)
  }

  /// The service type as an array. Most peers have the same service type as another peer and share its array. Many
  /// small arrays would prevent pages that closed links used from being returned to the system.
  private func sharedType(_ type: RawSpan) -> [UInt8] {
    for entry in entries where type.withUnsafeBytes({ $0.elementsEqual(entry.peer.serviceType) }) {
      return entry.peer.serviceType
    }
    return array(type)
  }
}

/// A copy of the bytes of a span.
func array(_ span: RawSpan) -> [UInt8] { span.withUnsafeBytes { [UInt8]($0) } }
