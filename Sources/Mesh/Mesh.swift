import Frame
import Primitives

/// The link-state database of one node, and the routes computed from that database.
///
/// The mesh is sans-IO and without cryptography: the owner verifies a signature between `assess` and `install`. After
/// links or advertisements have changed, the owner checks `needsRoutes`. If `needsRoutes` is true, the owner calls
/// `computeRoutes` before using routes. `takeTopologyChange` reports when the owner must advertise this node's links
/// again.
public struct Mesh {
  /// The result of comparing an advertisement to the stored one.
  public enum Assessment: Equatable, Sendable {
    /// The advertisement is newer than the stored one. Verify the signature, then call `install`.
    case new
    /// The stored advertisement has the same epoch and sequence.
    case duplicate
    /// The advertisement is older than the stored one, or expired.
    case stale
    /// This node's own advertisement, current or older.
    case ownEcho
    /// An advertisement under this node's key that is newer than this node's newest. The cause is that this node lost
    /// its stored epoch, or that another node uses the key.
    case ownFromElsewhere
    /// The source is unknown and the database is full. Another node must be evicted for the source
    /// (`replacement(for:isKept:)`).
    case full
    /// The advertisement is newer than the stored one, but its source sends renewals more often than `renewalRate`
    /// allows. Request the advertisement again later.
    case tooOften
  }

  /// How urgently a change of this node's links must be advertised.
  public enum TopologyChange: UInt8, Sendable {
    case none
    /// A cost changed, another link to a neighbour came into use, or a node with a route became a neighbour. The
    /// advertisement can wait.
    case routine
    /// A node without a route became a neighbour.
    case newWay
    /// A neighbour's link in use went down.
    case loss
  }

  public static let byteCount = Database.byteCount + ShortestPaths.byteCount
  /// The rate at which this node accepts renewals of one kind of advertisement from one node.
  static let renewalRate = TokenRate(perSecond: 1, burst: 4)
  /// A neighbour's copy may be older than the stored advertisement by this many milliseconds, because paths differ. If
  /// the difference is larger, other nodes have delayed the copy, or its age is false.
  static let ageDifferenceMax: UInt64 = 30_000
  /// An extended lifetime of a stored advertisement is flooded only if at least this much time remains. The remaining
  /// time must also be at least twice the time until the expiry that was flooded last.
  static let restToldMin = TimeSpan.seconds(10)

  public let local: NodeID
  private(set) var database: Database
  let paths: ShortestPaths
  private var links = LocalLinks()
  /// The links that may have unsent advertisements, one bit each. `cursors` has the record at which each link continues
  /// its search.
  private var linksWithUnsent: UInt64 = 0
  private var linksToFlood: UInt64 = 0
  /// The links with unsent updates that even a parked neighbour must get soon, one bit each. A parked neighbour is one
  /// whose link is kept without a connection. The urgent updates are nodes that appeared, vanished or restarted, and
  /// changed profiles and services.
  private var linksWithNews: UInt64 = 0
  /// The value of `nodesInReach` when this node last advertised its links.
  private var reachTold: UInt64 = 0
  private var cursors = Limits.PerLink<UInt16>(repeating: 0)
  /// Whether a change since the last `computeRoutes` may have affected a route.
  public private(set) var needsRoutes = false
  private var topologyChange = TopologyChange.none

  /// `memory` has `byteCount` bytes, is aligned as an `Arena`, and must be used by nothing else. Most of `memory` is
  /// not touched until nodes are known.
  public init(local: NodeID, _ memory: UnsafeMutableRawBufferPointer) {
    self.local = local
    var arena = Arena(memory)
    paths = ShortestPaths(in: &arena)
    database = Database(local: local, in: &arena)
  }

  // MARK: Links of this node

  /// Adds a link to `peer` that is up. If there are several links to the neighbour, only one of them is in use: see
  /// `proveLink`.
  public mutating func setLink(_ slot: Int, peer: NodeID, bearer: BearerKind, cost: UInt16, payloadBytesMax: Int) {
    links.set(
      slot, LocalLink(peer: peer, bearer: bearer, cost: max(cost, 1), payloadBytesMax: UInt16(payloadBytesMax)))
    choose(peer)
  }

  /// Sets the cost that this node advertises for a link.
  public mutating func setCost(_ slot: Int, _ cost: UInt16) {
    if links[slot].peer == .none || links[slot].cost == max(cost, 1) { return }
    links.setCost(slot, max(cost, 1))
    if links[slot].carries { linksChanged(.routine) }
    choose(links[slot].peer)
  }

  /// Marks a link as proven (`Link.isProven`). Only a proven link can replace the link in use to the same neighbour. A
  /// neighbour's only link is used immediately.
  public mutating func proveLink(_ slot: Int) {
    if links[slot].peer == .none || links[slot].isProven { return }
    links.prove(slot)
    choose(links[slot].peer)
  }

  /// Removes the link in a slot. Returns false if the slot has no link.
  @discardableResult
  public mutating func removeLink(_ slot: Int) -> Bool {
    let peer = links[slot].peer
    if peer == .none { return false }
    let hasCarried = links[slot].hasCarried
    if links[slot].carries { linksChanged(.loss) }
    links.remove(slot)
    database.moveUnsent(1 << UInt64(slot), to: 0)
    linksWithUnsent &= ~(1 << UInt64(slot))
    linksWithNews &= ~(1 << UInt64(slot))
    linksToFlood &= ~(1 << UInt64(slot))
    choose(peer)
    // Advertisements in flight on the removed link may be lost, so the remaining link sends all of them.
    if hasCarried, let other = links.carrier(to: peer) { markAllUnsent(other) }
    return true
  }

  /// The slot of the link in use to a neighbour, or nil without a link.
  public func link(to peer: NodeID) -> Int? { links.carrier(to: peer) }

  /// The cost that this node advertises for a link, or zero if the slot has none.
  public func cost(of slot: Int) -> UInt16 { links[slot].cost }

  /// Writes the body of this node's topology advertisement. The body lists each neighbour once, with the link in use.
  @_lifetime(output: copy output)
  public func writeTopology(flags: TopologyFlags, to output: inout OutputRawSpan) {
    TopologyView.writeHead(flags: flags, count: links.carriers.nonzeroBitCount, to: &output)
    var slots = Slots(links.carriers)
    while let slot = slots.next() { ownEntry(slot).write(to: &output) }
  }

  /// Whether this node's stored topology advertisement equals what `writeTopology` would write.
  public func hasTold(flags: TopologyFlags, epoch: UInt64) -> Bool {
    guard let payload = advertisement(of: 0, .topology), let view = try? AdvertisementView(payload),
      view.epoch == epoch, let told = try? TopologyView(view.body), told.flags == flags,
      told.count == links.carriers.nonzeroBitCount
    else { return false }
    var slots = Slots(links.carriers)
    while let slot = slots.next() {
      if database.entry(0, of: links[slot].peer) != ownEntry(slot) { return false }
    }
    return true
  }

  func ownEntry(_ slot: Int) -> Neighbour {
    let link = links[slot]
    return Neighbour(node: link.peer, cost: link.cost, payloadBytesMax: link.payloadBytesMax, bearer: link.bearer)
  }

  /// Returns how urgently this node must advertise its links again, and clears that value. The value covers the changes
  /// to the output of `writeTopology` since the last call.
  public mutating func takeTopologyChange() -> TopologyChange {
    defer { topologyChange = .none }
    return topologyChange
  }

  private mutating func choose(_ peer: NodeID) {
    let (before, after) = links.choose(peer)
    if before == after { return }
    linksChanged(before == nil && route(to: peer) == nil ? .newWay : .routine)
    guard let after else { return }
    guard let before else { return markAllUnsent(after) }
    database.moveUnsent(1 << UInt64(before), to: 1 << UInt64(after))
    if linksWithUnsent & 1 << UInt64(before) != 0 { markUnsent(1 << UInt64(after)) }
    if linksWithNews & 1 << UInt64(before) != 0 { linksWithNews |= 1 << UInt64(after) }
  }

  private mutating func linksChanged(_ change: TopologyChange) {
    needsRoutes = true
    if change.rawValue > topologyChange.rawValue { topologyChange = change }
  }

  // MARK: Advertisements

  /// Compares a received advertisement to the stored one of its source and kind, before its signature is verified.
  /// `age` is the age in milliseconds that the neighbour sent with the advertisement.
  public func assess(_ source: NodeID, _ view: borrowing AdvertisementView, age: UInt64 = 0, now: Instant) -> Assessment
  {
    guard let number = database.find(source) else {
      if age >= UInt64(view.lifetimeSeconds) * 1000 { return .stale }
      return database.isFull ? .full : .new
    }
    let stamp = database.records[number][view.kind]
    let isNewer = !stamp.isHeld || stamp.isOlder(thanEpoch: view.epoch, view.sequence)
    if source == local { return isNewer ? .ownFromElsewhere : .ownEcho }
    if stamp.isHeld && stamp.epoch == view.epoch && stamp.sequence == view.sequence { return .duplicate }
    if !isNewer || bounded(age, stamp, now) >= UInt64(view.lifetimeSeconds) * 1000 { return .stale }
    return stamp.renewals.hasToken(Self.renewalRate, now: now) ? .new : .tooOften
  }

  /// Bounds the age that a neighbour sent with an advertisement newer than the stored one (`held`). The newer
  /// advertisement was made later, so it is at most as old as `held`. The age is not signed and may be false.
  private func bounded(_ age: UInt64, _ held: Stamp, _ now: Instant) -> UInt64 {
    held.isHeld ? min(age, held.age(now: now)) : age
  }

  /// Stores a verified advertisement that `assess` found `.new` and link `slot` delivered. The advertisement will be
  /// sent to all other neighbours. `payload` has the bytes of `view`. Returns true for a topology that differs from the
  /// stored one or is the first of its epoch.
  @discardableResult
  public mutating func install(
    _ source: NodeID, _ view: borrowing AdvertisementView, _ payload: RawSpan, age: UInt64 = 0, from slot: Int,
    now: Instant
  ) -> Bool {
    var held = Stamp()
    if let number = database.find(source) { held = database.records[number][view.kind] }
    let bounded = bounded(age, held, now)
    // If the copy of the neighbour that sent the advertisement would expire much earlier, the stored copy is sent back
    // to that neighbour.
    let knows = isMuchOlder(age, than: bounded) ? 0 : told(by: slot)
    let hasChanged = keep(
      source, view, payload, Self.expiry(view, age: bounded, now), links.carriers & ~knows, from: slot)
    if let number = database.find(source) {
      _ = database.records[number][view.kind].renewals.take(Self.renewalRate, now: now)
    }
    return hasChanged
  }

  /// Evicts a node from a full database, and creates a record for `newcomer`, whose signature was verified. Call
  /// `install` with the newcomer's advertisement next. Returns the slot of the link that led to the evicted node, or
  /// that introduced it.
  @discardableResult
  public mutating func take(_ replacement: Replacement, for newcomer: NodeID, from slot: Int) -> Int {
    let leaver = database.records[replacement.leaver]
    let link = leaver.route.map { Int($0.link) } ?? Int(leaver.ingress)
    database.replace(replacement.leaver, by: newcomer, below: replacement.parent, from: slot)
    needsRoutes = true
    return link
  }

  /// Stores an advertisement of this node, which will be sent to all neighbours.
  public mutating func installOwn(_ view: borrowing AdvertisementView, _ payload: RawSpan) {
    _ = keep(local, view, payload, .never, links.carriers, from: FairShare.ownHolder)
  }

  /// Records that the neighbour on link `slot` sent an advertisement. If the same advertisement is stored, the stored
  /// copy need not be sent to that neighbour, unless the neighbour's copy is much older. If the neighbour's copy is
  /// younger and has the same bytes, the stored lifetime is extended. The signature of these bytes was verified
  /// already.
  public mutating func neighbour(
    on slot: Int, holds view: borrowing AdvertisementView, _ payload: RawSpan, of source: NodeID, age: UInt64 = 0,
    now: Instant
  ) {
    guard let number = database.find(source) else { return }
    let stamp = database.records[number][view.kind]
    if stamp.epoch != view.epoch || stamp.sequence != view.sequence { return }
    let held = stamp.age(now: now)
    if !isMuchOlder(age, than: held) { database.records[number][view.kind].unsent &= ~told(by: slot) }
    if source == local || age >= held || !database.holds(number, view.kind, payload) { return }
    let expiry = Self.expiry(view, age: age, now)
    database.records[number][view.kind].expiresAt = expiry
    // The remaining lifetime must double each time. So the advertisement is flooded only a few times, even if the
    // received age changes constantly.
    guard expiry - now >= max(Self.restToldMin, (stamp.toldExpiry - now) * 2) else { return }
    database.records[number][view.kind].toldExpiry = expiry
    let others = links.carriers & ~told(by: slot)
    database.records[number][view.kind].unsent |= others
    markUnsent(others)
  }

  private func isMuchOlder(_ age: UInt64, than held: UInt64) -> Bool { age > held + Self.ageDifferenceMax }

  private static func expiry(_ view: borrowing AdvertisementView, age: UInt64, _ now: Instant) -> Instant {
    let lifetime = TimeSpan.seconds(UInt64(view.lifetimeSeconds)).milliseconds
    return now + .milliseconds(lifetime - min(age, lifetime))
  }

  /// Removes expired advertisements.
  public mutating func expire(now: Instant) {
    if database.expire(now: now) { needsRoutes = true }
  }

  /// No advertisement expires before this time.
  public var expiryDeadline: Instant { database.expiryDeadline }

  private mutating func keep(
    _ source: NodeID, _ view: borrowing AdvertisementView, _ payload: RawSpan, _ expiresAt: Instant, _ unsent: UInt64,
    from ingress: Int
  ) -> Bool {
    markUnsent(unsent)
    let change = database.install(
      source, view, payload, expiresAt: expiresAt, unsent: unsent, from: ingress)
    let isTopology = change == .node || change == .ways
    if isTopology && source != local { needsRoutes = true }
    if isNews(change, isOwn: source == local) { linksWithNews |= unsent }
    return isTopology
  }

  /// Whether a change must be sent soon even to a parked neighbour. A parked leaf (a node that does not forward for
  /// others) need not know by which route its relay reaches a node. So other links of a known node are not urgent.
  /// `computeRoutes` detects nodes that become reachable. Other links of this node itself are urgent only if the set of
  /// reachable nodes has changed, or if this node does not relay.
  private mutating func isNews(_ change: Database.Change, isOwn: Bool) -> Bool {
    switch change {
    case .renewal: return false
    case .profile, .node: return true
    case .ways:
      guard isOwn else { return false }
      let before = reachTold
      reachTold = nodesInReach
      return reachTold != before || !isRelay
    }
  }

  /// The bit of the link in use to the neighbour on `slot`, or 0 without such a link.
  private func told(by slot: Int) -> UInt64 {
    links.carrier(to: links[slot].peer).map { 1 << UInt64($0) } ?? 0
  }

  // MARK: Advertisements still to send

  /// Returns the links that got unsent advertisements since the last call, one bit each.
  public mutating func takeLinksToFlood() -> UInt64 {
    defer { linksToFlood = 0 }
    return linksToFlood
  }

  /// Returns the next unsent advertisement of a link, and marks it as sent. `advertisement(of:_:)` returns its bytes.
  public mutating func nextUnsent(_ slot: Int) -> (index: Int, kind: AdvertisementKind)? {
    let link: UInt64 = 1 << UInt64(slot)
    if linksWithUnsent & link == 0 { return nil }
    guard let (number, kind) = database.nextUnsent(link, from: Int(cursors[slot])) else {
      linksWithUnsent &= ~link
      linksWithNews &= ~link
      return nil
    }
    database.records[number][kind].unsent &= ~link
    cursors[slot] = UInt16(number)
    return (number, kind)
  }

  /// Whether a link may have unsent advertisements.
  public func mayHaveUnsent(_ slot: Int) -> Bool { linksWithUnsent & 1 << UInt64(slot) != 0 }

  /// Whether a link may have unsent updates that even a parked neighbour must get soon. Updates that a parked neighbour
  /// must get soon are neither renewals nor changed links of a node that stays reachable.
  public func mayHaveNews(_ slot: Int) -> Bool { linksWithNews & 1 << UInt64(slot) != 0 }

  /// Marks the advertisements of `node` to be sent again on a link, because its neighbour requested them or may have
  /// lost them. `.none` stands for all nodes.
  public mutating func markUnsentAgain(_ node: NodeID, on slot: Int) {
    guard let carrier = links.carrier(to: links[slot].peer) else { return }
    if node == .none { return markAllUnsent(carrier) }
    guard let number = database.find(node) else { return }
    database.markUnsent(1 << UInt64(carrier), of: number)
    markUnsent(1 << UInt64(carrier))
  }

  private mutating func markAllUnsent(_ slot: Int) {
    database.markAllUnsent(1 << UInt64(slot))
    markUnsent(1 << UInt64(slot))
    linksWithNews |= 1 << UInt64(slot)
  }

  private mutating func markUnsent(_ links: UInt64) {
    linksWithUnsent |= links
    linksToFlood |= links
  }

  // MARK: Nodes

  /// Whether another node can be stored: in a free record, or in place of a node without a route.
  public var hasRoom: Bool { database.hasRoom }

  /// Whether every record is in use. If every record is in use, a new node is stored only if another node is evicted
  /// (`replacement(for:isKept:)`).
  public var isFull: Bool { database.isFull }

  /// The number of known nodes, not counting this node.
  public var nodeCount: Int { database.count - 1 }

  /// The exclusive upper bound of node indices. A node keeps its index while it is known.
  public var indexEnd: Int { database.end }

  /// The node at an index, or `.none` if the record is free.
  public func node(at index: Int) -> NodeID { database.records[index].id }

  public func index(of node: NodeID) -> Int? { database.find(node) }

  /// The higher epoch of a node's stored topology and profile, or nil if neither is stored.
  public func epoch(of node: NodeID) -> UInt64? {
    guard let number = database.find(node) else { return nil }
    let record = database.records[number]
    if !record.topology.isHeld { return record.profile.isHeld ? record.profile.epoch : nil }
    return record.profile.isHeld ? max(record.topology.epoch, record.profile.epoch) : record.topology.epoch
  }

  /// The bytes of a node's stored advertisement, from its kind field to its signature. The result is nil if the
  /// advertisement is not stored.
  @_lifetime(borrow self)
  public func advertisement(of index: Int, _ kind: AdvertisementKind) -> RawSpan? {
    guard let bytes = database.bytes(index, kind) else { return nil }
    return _overrideLifetime(bytes.bytes, borrowing: self)
  }

  /// The epoch and sequence of a node's stored advertisement, or nil if it is not stored.
  public func stamp(of index: Int, _ kind: AdvertisementKind) -> (epoch: UInt64, sequence: UInt64)? {
    let stamp = database.records[index][kind]
    return stamp.isHeld ? (stamp.epoch, stamp.sequence) : nil
  }

  /// The age of a node's stored advertisement, in milliseconds since its source made it.
  public func age(of index: Int, _ kind: AdvertisementKind, now: Instant) -> UInt64 {
    database.records[index][kind].age(now: now)
  }

  /// Whether a stored advertisement may still be sent: it expires in a millisecond at the earliest.
  public func maySend(_ index: Int, _ kind: AdvertisementKind, now: Instant) -> Bool {
    database.records[index][kind].expiresAt - now >= .milliseconds(1)
  }

  // MARK: Routes

  /// Computes all routes as shortest paths. See `ShortestPaths` for the choice of paths. Returns the number of steps:
  /// examined entries of topologies, and 128 examined nodes each.
  @discardableResult
  public mutating func computeRoutes() -> Int {
    needsRoutes = false
    let before = nodesInReach
    let steps = paths.compute(database, links, local: local)
    if nodesInReach != before { linksWithNews |= linksWithUnsent }
    return steps
  }

  /// A checksum of the ids of all reachable nodes. Except for rare collisions, the checksum changes when the set of
  /// reachable nodes changes.
  private var nodesInReach: UInt64 {
    var sum: UInt64 = 0
    for number in 1..<database.end where database.records[number].route != nil {
      sum &+= database.records[number].id.high | 1
    }
    return sum
  }

  /// Whether this node forwards for others, as it has advertised.
  private var isRelay: Bool { database.records[0].relays }

  // Inlined: a call would copy the complete mesh, 2 KB for each forwarded frame.
  @inline(__always)
  public func route(to node: NodeID) -> Route? {
    guard let number = database.find(node) else { return nil }
    return database.records[number].route
  }

  /// The slot of the link for a frame to `node` that may still travel over `hops` links. The result is nil if `node` is
  /// farther away.
  @inline(__always)
  public func link(to node: NodeID, within hops: UInt8) -> Int? {
    guard let number = database.find(node), let route = database.records[number].route else { return nil }
    return route.hops <= hops ? Int(route.link) : paths.firstLink(toward: number, within: hops)
  }

  /// Whether a path to `node` remains without the link in `slot`.
  public func reaches(_ node: NodeID, without slot: Int) -> Bool {
    for other in 0..<Limits.linksMax where other != slot && links[other].peer == node { return true }
    guard let number = database.find(node) else { return false }
    return paths.reaches(number, database, links, without: slot, local: local)
  }

  /// The route to the node at an index.
  public func route(at index: Int) -> Route? { database.records[index].route }
}
