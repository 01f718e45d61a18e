import Frame
import Primitives

/// The link-state database of one node and the routes computed from it.
///
/// Sans-IO and without cryptography: the owner verifies a signature between `assess` and `install`. After a change of
/// links or advertisements the owner checks `needsRoutes` and calls `computeRoutes` before it asks for routes. It
/// renews its own topology advertisement as `takeTopologyChange` says.
public struct Mesh {
  /// How an advertisement compares to the one that is held.
  public enum Assessment: Equatable, Sendable {
    /// Newer than what is held: verify it, then `install`.
    case new
    /// The same as the one that is held.
    case duplicate
    /// Older than the one that is held, or its lifetime is over.
    case stale
    /// This node's own, current or older.
    case ownEcho
    /// Signed by this node's key but newer than its newest: this node lost its state, or two nodes use its key.
    case ownFromElsewhere
    /// The database is full: the node needs a place (`place(for:isKept:)`).
    case full
    /// Newer than what is held, but the source has renewed it too often: ask for it again later.
    case tooOften
  }

  /// How soon a change of this node's links must be advertised.
  public enum TopologyChange: UInt8, Sendable {
    case none
    /// A cost, another link to a neighbour, a link to a node that has a route: it can wait.
    case routine
    /// The only way to a node.
    case newWay
    case loss
  }

  public static let byteCount = Database.byteCount + ShortestPaths.byteCount
  /// How often a node's advertisement of one kind is renewed here.
  static let renewalRate = TokenRate(perSecond: 1, burst: 4)
  /// A neighbour's copy of an advertisement may be older than the one that is held by this time, from the way that it
  /// took. An older one was held by others for long, or its age is false.
  static let ageDifferenceMax: UInt64 = 30_000
  /// A longer life of an advertisement is passed on from this rest on, whenever it has doubled.
  static let restToldMin = TimeSpan.seconds(10)

  public let local: NodeID
  private(set) var database: Database
  private let paths: ShortestPaths
  private var links = LocalLinks()
  /// Links over which an advertisement may have to be sent, one bit each, and where each continues its search.
  private var linksWithUnsent: UInt64 = 0
  private var linksToFlood: UInt64 = 0
  /// Those of them over which something must be sent that matters to any neighbour: nodes that came, went or restarted,
  /// and what they say of themselves.
  private var linksWithNews: UInt64 = 0
  /// The nodes in reach when this node last advertised its links.
  private var reachTold: UInt64 = 0
  private var cursors = Limits.PerLink<UInt16>(repeating: 0)
  /// True after a change that may affect a route.
  public private(set) var needsRoutes = false
  private var topologyChange = TopologyChange.none

  /// `memory` has `byteCount` bytes, aligned as an `Arena`. No one else may use it. Little of it is touched before
  /// nodes are known.
  public init(local: NodeID, _ memory: UnsafeMutableRawBufferPointer) {
    self.local = local
    var arena = Arena(memory)
    paths = ShortestPaths(in: &arena)
    database = Database(local: local, in: &arena)
  }

  // MARK: Links of this node

  /// A link to `peer` is up. One of several links to a neighbour is in use: see `proveLink`.
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

  /// The link is proven (`Link.isProven`), so it may take over from another one to the same neighbour. A neighbour's
  /// only link is used at once.
  public mutating func proveLink(_ slot: Int) {
    if links[slot].peer == .none || links[slot].isProven { return }
    links.prove(slot)
    choose(links[slot].peer)
  }

  /// False when there was no link in the slot.
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
    // Advertisements in flight on the removed link may be lost.
    if hasCarried, let other = links.carrier(to: peer) { markAllUnsent(other) }
    return true
  }

  /// The slot of the link in use to a neighbour.
  public func link(to peer: NodeID) -> Int? { links.carrier(to: peer) }

  /// The cost that this node advertises for a link; zero when the slot holds none.
  public func cost(of slot: Int) -> UInt16 { links[slot].cost }

  /// Writes the body of this node's topology advertisement: each neighbour once, with its link in use.
  @_lifetime(output: copy output)
  public func writeTopology(flags: TopologyFlags, to output: inout OutputRawSpan) {
    TopologyView.writeHead(flags: flags, count: links.carriers.nonzeroBitCount, to: &output)
    var slots = Slots(links.carriers)
    while let slot = slots.next() { ownEntry(slot).write(to: &output) }
  }

  /// Whether this node's topology advertisement says what `writeTopology` would write.
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

  /// How the output of `writeTopology` has changed since the last call.
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

  /// Compares an advertisement to the one that is held, before its signature is verified. `age` is the age in
  /// milliseconds that the neighbour stated.
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

  /// The age of an advertisement that is newer than the held one: it was made later, so it cannot be older, whatever a
  /// neighbour states. The age is not signed.
  private func bounded(_ age: UInt64, _ held: Stamp, _ now: Instant) -> UInt64 {
    held.isHeld ? min(age, held.age(now: now)) : age
  }

  /// Stores a verified advertisement that `assess` called new, received on link `slot`. It will be sent to all other
  /// neighbours. `payload` are the bytes of `view`. True when it is a topology that differs from the one that was held.
  @discardableResult
  public mutating func install(
    _ source: NodeID, _ view: borrowing AdvertisementView, _ payload: RawSpan, age: UInt64 = 0, from slot: Int,
    now: Instant
  ) -> Bool {
    var held = Stamp()
    if let number = database.find(source) { held = database.records[number][view.kind] }
    let bounded = bounded(age, held, now)
    // A neighbour whose copy would expire much earlier is told as well.
    let knows = isMuchOlder(age, than: bounded) ? 0 : told(by: slot)
    let hasChanged = keep(
      source, view, payload, Self.expiry(view, age: bounded, now), links.carriers & ~knows, from: slot)
    if let number = database.find(source) {
      _ = database.records[number][view.kind].renewals.take(Self.renewalRate, now: now)
    }
    return hasChanged
  }

  /// A node whose signature was verified takes its place in a full database. `install` its advertisement then.
  public mutating func take(_ place: Place, for newcomer: NodeID, from slot: Int) {
    database.replace(place.leaver, by: newcomer, below: place.parent, from: slot)
    needsRoutes = true
  }

  /// Stores an advertisement of this node. It will be sent to all neighbours.
  public mutating func installOwn(_ view: borrowing AdvertisementView, _ payload: RawSpan) {
    _ = keep(local, view, payload, .never, links.carriers, from: FairShare.ownHolder)
  }

  /// The neighbour on link `slot` sent an advertisement. If it equals the one that is held, it need not be sent to that
  /// neighbour, unless the neighbour's is much older. A younger copy of the same bytes lives longer: their signature is
  /// verified already.
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
    // Passed on a few times at most, however often the age changes: the rest doubles each time.
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

  /// To a parked leaf it makes no difference by which way its relay reaches a node. `computeRoutes` sees who comes into
  /// reach; but where this node is the way, others see it by its topology, which may follow later.
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

  /// The link in use to the neighbour on `slot`.
  private func told(by slot: Int) -> UInt64 {
    links.carrier(to: links[slot].peer).map { 1 << UInt64($0) } ?? 0
  }

  // MARK: Advertisements still to send

  /// Links that got something to send since the last call, one bit each.
  public mutating func takeLinksToFlood() -> UInt64 {
    defer { linksToFlood = 0 }
    return linksToFlood
  }

  /// The next advertisement to send over a link; it counts as sent from now on. Its bytes are `advertisement(of:_:)`.
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

  /// Whether a link may have something to send.
  public func mayHaveUnsent(_ slot: Int) -> Bool { linksWithUnsent & 1 << UInt64(slot) != 0 }

  /// Whether a link may have something to send that matters to any neighbour. Renewals do not, and other links of a node
  /// that stays in reach.
  public func mayHaveNews(_ slot: Int) -> Bool { linksWithNews & 1 << UInt64(slot) != 0 }

  /// The neighbour on a link asks for the advertisements of `node` again; `.none`: for all.
  public mutating func tellAgain(_ node: NodeID, on slot: Int) {
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

  /// Whether there is room for another node: a free place, or a node without a route.
  public var hasRoom: Bool { database.hasRoom }

  /// Whether every record is taken: a newcomer then needs a place.
  public var isFull: Bool { database.isFull }

  /// Number of known nodes, without this one.
  public var nodeCount: Int { database.count - 1 }

  /// Upper bound (exclusive) of node indexes. A node keeps its index while it is known.
  public var indexEnd: Int { database.end }

  /// The node at an index; `.none` at a free one.
  public func node(at index: Int) -> NodeID { database.records[index].id }

  public func index(of node: NodeID) -> Int? { database.find(node) }

  /// The epoch in a node's newest advertisement; nil when none is held.
  public func epoch(of node: NodeID) -> UInt64? {
    guard let number = database.find(node) else { return nil }
    let record = database.records[number]
    if !record.topology.isHeld { return record.profile.isHeld ? record.profile.epoch : nil }
    return record.profile.isHeld ? max(record.topology.epoch, record.profile.epoch) : record.topology.epoch
  }

  /// The bytes of the advertisement that is held for a node, from its kind field to its signature.
  @_lifetime(borrow self)
  public func advertisement(of index: Int, _ kind: AdvertisementKind) -> RawSpan? {
    guard let bytes = database.bytes(index, kind) else { return nil }
    return _overrideLifetime(bytes.bytes, borrowing: self)
  }

  /// Epoch and sequence of the advertisement that is held for a node.
  public func stamp(of index: Int, _ kind: AdvertisementKind) -> (epoch: UInt64, sequence: UInt64)? {
    let stamp = database.records[index][kind]
    return stamp.isHeld ? (stamp.epoch, stamp.sequence) : nil
  }

  /// The age of the advertisement that is held for a node, in milliseconds since its origin made it.
  public func age(of index: Int, _ kind: AdvertisementKind, now: Instant) -> UInt64 {
    database.records[index][kind].age(now: now)
  }

  // MARK: Routes

  /// Computes all routes by shortest paths; see `ShortestPaths` for the order of preference.
  public mutating func computeRoutes() {
    needsRoutes = false
    let before = nodesInReach
    paths.compute(database, links, local: local)
    if nodesInReach != before { linksWithNews |= linksWithUnsent }
  }

  /// Equal as long as the same nodes can be reached, but for rare cases.
  private var nodesInReach: UInt64 {
    var sum: UInt64 = 0
    for number in 1..<database.end where database.records[number].route != nil {
      sum &+= database.records[number].id.high | 1
    }
    return sum
  }

  /// This node forwards for others, as it has advertised.
  private var isRelay: Bool { database.records[0].relays }

  // Inlined: a call would get a copy of the whole mesh, 2 KB for each forwarded frame.
  @inline(__always)
  public func route(to node: NodeID) -> Route? {
    guard let number = database.find(node) else { return nil }
    return database.records[number].route
  }

  /// Whether a path to `node` remains when the link in `slot` is gone.
  public func reaches(_ node: NodeID, without slot: Int) -> Bool {
    for other in 0..<Limits.linksMax where other != slot && links[other].peer == node { return true }
    guard let number = database.find(node) else { return false }
    return paths.reaches(number, database, links, without: slot, local: local)
  }

  /// The route to the node at an index.
  public func route(at index: Int) -> Route? { database.records[index].route }
}
