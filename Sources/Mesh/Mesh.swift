import Frame
import Primitives

/// The link-state database of one node, the routes computed from it, and the duplicate cache.
///
/// Sans-IO and without cryptography: the owner verifies a signature between `assess` and `install`.
/// After any change of links or advertisements the owner calls `computeRoutes` before it asks for routes.
public struct Mesh {
  /// How an advertisement stands to what is held.
  public enum Assessment: Equatable, Sendable {
    /// Newer than what is held: verify it, then `install`.
    case new
    /// The very one that is held.
    case duplicate
    /// Older than what is held.
    case stale
    /// Of this node itself, newer than it could have made: its state was lost, or its key is used twice.
    case ownFromElsewhere
    /// The database is full.
    case full
  }

  public static let byteCount =
    Limits.nodesMax
    * (MemoryLayout<NodeRecord>.stride + AdvertisementKind.count * Limits.advertisementBytesMax
      + Limits.neighboursMax * MemoryLayout<Neighbour>.stride) + DuplicateCache.byteCount

  public let local: NodeID
  private let records: UnsafeMutablePointer<NodeRecord>
  private let neighbours: UnsafeMutablePointer<Neighbour>
  private let advertisements: UnsafeMutablePointer<UInt8>
  private let duplicates: DuplicateCache
  private var links = InlineArray<64, LocalLink>(repeating: LocalLink())
  private var count = 0
  /// True after a change that may move a route.
  public private(set) var needsRoutes = false

  /// `memory` has `byteCount` bytes, aligned to 16, and is the mesh's alone.
  public init(local: NodeID, _ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Self.byteCount)
    self.local = local
    var next = memory.baseAddress!
    records = next.bindMemory(to: NodeRecord.self, capacity: Limits.nodesMax)
    next += Limits.nodesMax * MemoryLayout<NodeRecord>.stride
    neighbours = next.bindMemory(to: Neighbour.self, capacity: Limits.nodesMax * Limits.neighboursMax)
    next += Limits.nodesMax * Limits.neighboursMax * MemoryLayout<Neighbour>.stride
    duplicates = DuplicateCache(UnsafeMutableRawBufferPointer(start: next, count: DuplicateCache.byteCount))
    next += DuplicateCache.byteCount
    advertisements = next.bindMemory(
      to: UInt8.self, capacity: Limits.nodesMax * AdvertisementKind.count * Limits.advertisementBytesMax)
    records.initialize(repeating: NodeRecord(), count: Limits.nodesMax)
  }

  // MARK: Links of this node

  /// A link to `peer` is up. Several links may lead to one peer: the cheapest carries.
  public mutating func setLink(_ slot: Int, peer: NodeID, bearer: BearerKind, cost: UInt16, payloadBytesMax: Int) {
    links[slot] = LocalLink(peer: peer, bearer: bearer, cost: max(cost, 1), payloadBytesMax: UInt16(payloadBytesMax))
    needsRoutes = true
  }

  /// False when the slot held no link that is up.
  public mutating func removeLink(_ slot: Int) -> Bool {
    if links[slot].peer == .none { return false }
    links[slot] = LocalLink()
    needsRoutes = true
    return true
  }

  /// The slot of the cheapest link to a neighbour; of equals the lowest slot.
  public func link(to peer: NodeID) -> Int? {
    var best: Int?
    for slot in links.indices where links[slot].peer == peer {
      if let found = best, links[found].cost <= links[slot].cost { continue }
      best = slot
    }
    return best
  }

  /// Write the body of this node's topology advertisement: each neighbour once, over its cheapest link.
  @_lifetime(output: copy output)
  public func writeTopology(relays: Bool, to output: inout OutputRawSpan) {
    var count = 0
    for slot in links.indices where isBest(slot) { count += 1 }
    TopologyView.writeHead(flags: relays ? TopologyView.relays : 0, count: count, to: &output)
    for slot in links.indices where isBest(slot) {
      let link = links[slot]
      Neighbour(node: link.peer, cost: link.cost, payloadBytesMax: link.payloadBytesMax, bearer: link.bearer)
        .write(to: &output)
    }
  }

  private func isBest(_ slot: Int) -> Bool { links[slot].peer != .none && link(to: links[slot].peer) == slot }

  // MARK: Advertisements

  /// Say how an advertisement stands, before its signature is worth verifying.
  public func assess(_ source: NodeID, _ view: borrowing AdvertisementView) -> Assessment {
    if source == local { return .ownFromElsewhere }
    guard let index = index(of: source) else { return count < Limits.nodesMax ? .new : .full }
    let stamp = stamp(index, view.kind)
    if !stamp.isHeld { return .new }
    if stamp.epoch == view.epoch && stamp.sequence == view.sequence { return .duplicate }
    return stamp.isOlder(thanEpoch: view.epoch, view.sequence) ? .new : .stale
  }

  /// Keep a verified advertisement that `assess` called new. `payload` is what `view` looks at.
  public mutating func install(_ source: NodeID, _ view: borrowing AdvertisementView, _ payload: RawSpan, now: Instant)
  {
    let index = index(of: source) ?? append(source)
    let stamp = Stamp(
      epoch: view.epoch, sequence: view.sequence, expiresAt: now + .seconds(UInt64(view.lifetimeSeconds)),
      byteCount: payload.byteCount)
    payload.withUnsafeBytes { bytes in
      slab(index, view.kind).copyMemory(from: bytes)
    }
    switch view.kind {
    case .topology:
      records[index].topology = stamp
      guard let body = try? TopologyView(view.body) else { return }
      records[index].relays = body.flags & TopologyView.relays != 0
      records[index].neighbourCount = body.count
      for entry in 0..<body.count {
        guard let neighbour = try? body.entry(entry) else { return }
        neighbours[index * Limits.neighboursMax + entry] = neighbour
      }
      needsRoutes = true
    case .profile:
      records[index].profile = stamp
    }
  }

  /// Drop what has aged out.
  public mutating func expire(now: Instant) {
    var index = 0
    while index < count {
      if records[index].topology.isHeld && records[index].topology.expiresAt <= now {
        records[index].topology = Stamp()
        records[index].neighbourCount = 0
        needsRoutes = true
      }
      if records[index].profile.isHeld && records[index].profile.expiresAt <= now { records[index].profile = Stamp() }
      if records[index].topology.isHeld || records[index].profile.isHeld {
        index += 1
      } else {
        remove(index)
      }
    }
  }

  /// When the next advertisement ages out.
  public var expiryDeadline: Instant {
    var earliest = Instant.never
    for index in 0..<count {
      if records[index].topology.isHeld { earliest = min(earliest, records[index].topology.expiresAt) }
      if records[index].profile.isHeld { earliest = min(earliest, records[index].profile.expiresAt) }
    }
    return earliest
  }

  /// How many nodes are known, this one not among them.
  public var nodeCount: Int { count }

  /// The node at `index`, 0 … `nodeCount` − 1. Indexes hold until the next `install` or `expire`.
  public func node(at index: Int) -> NodeID { records[index].id }

  /// The epoch that a node's newest advertisement states, nil for one without any.
  public func epoch(of node: NodeID) -> UInt64? {
    guard let index = index(of: node) else { return nil }
    let record = records[index]
    if !record.topology.isHeld { return record.profile.isHeld ? record.profile.epoch : nil }
    return record.profile.isHeld ? max(record.topology.epoch, record.profile.epoch) : record.topology.epoch
  }

  /// The bytes of the advertisement held for a node, from its kind field to its signature.
  @_lifetime(borrow self)
  public func advertisement(of index: Int, _ kind: AdvertisementKind) -> RawSpan? {
    let stamp = stamp(index, kind)
    if !stamp.isHeld { return nil }
    let bytes = UnsafeRawBufferPointer(rebasing: slab(index, kind)[..<stamp.byteCount])
    return _overrideLifetime(bytes.bytes, borrowing: self)
  }

  public func index(of node: NodeID) -> Int? {
    for index in 0..<count where records[index].id == node { return index }
    return nil
  }

  // MARK: Routes

  public func route(to node: NodeID) -> Route? {
    guard let index = index(of: node) else { return nil }
    return records[index].route
  }

  /// True when the frame was not seen before; it is remembered.
  public func isFirstSight(_ source: NodeID, _ identifier: UInt64) -> Bool { duplicates.insert(source, identifier) }

  /// Shortest paths from this node over links that both ends state (Dijkstra, 1959: the plain O(n²) form,
  /// which for `Limits.nodesMax` nodes needs no heap).
  public mutating func computeRoutes() {
    needsRoutes = false
    for index in 0..<count {
      records[index].route = nil
      records[index].isSettled = false
    }
    for slot in links.indices where isBest(slot) {
      let link = links[slot]
      guard let index = index(of: link.peer), lists(index, local) != nil else { continue }
      records[index].route = Route(
        link: UInt8(slot), firstHop: link.peer, hops: 1, cost: UInt32(link.cost),
        payloadBytesMax: Int(link.payloadBytesMax))
    }
    while let index = nearestUnsettled() {
      records[index].isSettled = true
      if records[index].relays { extend(from: index) }
    }
  }

  private func nearestUnsettled() -> Int? {
    var nearest: Int?
    for index in 0..<count where !records[index].isSettled {
      guard let route = records[index].route else { continue }
      if let found = nearest, let best = records[found].route, !route.isBetter(than: best) { continue }
      nearest = index
    }
    return nearest
  }

  private func extend(from index: Int) {
    guard let base = records[index].route, base.hops < Limits.hopsMax else { return }
    for entry in 0..<records[index].neighbourCount {
      let neighbour = neighbours[index * Limits.neighboursMax + entry]
      guard let next = self.index(of: neighbour.node), !records[next].isSettled,
        let back = lists(next, records[index].id)
      else { continue }
      let route = Route(
        link: base.link, firstHop: base.firstHop, hops: base.hops + 1, cost: base.cost + UInt32(neighbour.cost),
        payloadBytesMax: min(base.payloadBytesMax, Int(min(neighbour.payloadBytesMax, back.payloadBytesMax))))
      if let known = records[next].route, !route.isBetter(than: known) { continue }
      records[next].route = route
    }
  }

  /// The entry of `node` in what the node at `index` states.
  private func lists(_ index: Int, _ node: NodeID) -> Neighbour? {
    for entry in 0..<records[index].neighbourCount {
      let neighbour = neighbours[index * Limits.neighboursMax + entry]
      if neighbour.node == node { return neighbour }
    }
    return nil
  }

  // MARK: Memory

  private func stamp(_ index: Int, _ kind: AdvertisementKind) -> Stamp {
    switch kind {
    case .topology: records[index].topology
    case .profile: records[index].profile
    }
  }

  private func slab(_ index: Int, _ kind: AdvertisementKind) -> UnsafeMutableRawBufferPointer {
    let place = (index * AdvertisementKind.count + Int(kind.rawValue) - 1) * Limits.advertisementBytesMax
    return UnsafeMutableRawBufferPointer(start: advertisements + place, count: Limits.advertisementBytesMax)
  }

  private mutating func append(_ node: NodeID) -> Int {
    records[count] = NodeRecord()
    records[count].id = node
    count += 1
    return count - 1
  }

  /// The last record takes the place of the one that goes.
  private mutating func remove(_ index: Int) {
    count -= 1
    if index != count {
      records[index] = records[count]
      (neighbours + index * Limits.neighboursMax)
        .update(from: neighbours + count * Limits.neighboursMax, count: Limits.neighboursMax)
      slab(index, .topology).copyMemory(from: UnsafeRawBufferPointer(slab(count, .topology)))
      slab(index, .profile).copyMemory(from: UnsafeRawBufferPointer(slab(count, .profile)))
    }
    needsRoutes = true
  }
}
