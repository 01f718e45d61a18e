import Frame
import Primitives

/// The advertisements that a node stores, including its own. For each advertisement, the database also stores the links
/// over which that advertisement must still be sent.
///
/// A record keeps its number while its node is known.
///
/// Flooding uses no queue. `Stamp.unsent` has one bit for each link; a set bit means that the advertisement is unsent
/// on that link. A link takes its next unsent advertisement when its stream has room. So nothing can overflow, and no
/// advertisement is lost. A newer advertisement replaces an unsent older advertisement of the same kind.
struct Database {
  static let byteCount =
    Table<NodeRecord, Int>.byteCount(Limits.nodesMax) + NodeIndex.byteCount + AdvertisementStore.byteCount

  let records: Table<NodeRecord, Int>
  private var advertisements: AdvertisementStore
  private let index: NodeIndex
  /// The number after the highest record number ever used. Memory behind the record with the highest number was never
  /// touched.
  private(set) var end = 0
  /// The number of records in use.
  private(set) var count = 0
  /// No advertisement expires before this time.
  private(set) var expiryDeadline = Instant.never

  /// Record 0 is this node's own and is never removed. Allocates `byteCount` bytes from `arena`.
  init(local: NodeID, in arena: inout Arena) {
    records = Table(count: Limits.nodesMax, in: &arena)
    index = NodeIndex(over: records, in: &arena)
    advertisements = AdvertisementStore(in: &arena)
    _ = append(local, from: FairShare.ownHolder)
  }

  func find(_ id: NodeID) -> Int? { index.find(id) }

  /// The links that the node of record `number` advertises, or nil if its topology is not stored.
  @_lifetime(borrow self)
  func topology(of number: Int) -> TopologyView? {
    guard let bytes = bytes(number, .topology) else { return nil }
    return TopologyView(ofHeld: _overrideLifetime(bytes.bytes, borrowing: self))
  }

  /// The entry for the link to `node` in the topology of record `number`. nil if that topology is not stored or does
  /// not list `node`.
  func entry(_ number: Int, of node: NodeID) -> Neighbour? {
    guard let topology = topology(of: number) else { return nil }
    for index in 0..<topology.count where topology.node(index) == node { return try? topology.entry(index) }
    return nil
  }

  /// The bytes of an advertisement, or nil if it is not stored.
  func bytes(_ number: Int, _ kind: AdvertisementKind) -> UnsafeRawBufferPointer? {
    advertisements[advertisementIndex(number, kind)]
  }

  /// Whether the stored advertisement has exactly the bytes of `payload`.
  func holds(_ number: Int, _ kind: AdvertisementKind, _ payload: RawSpan) -> Bool {
    guard let held = bytes(number, kind) else { return false }
    return isEqual(held.bytes, payload)
  }

  /// Whether every record is in use.
  var isFull: Bool { count == Limits.nodesMax }

  /// Whether another node can be stored: in a free record, or in place of a node without a route.
  var hasRoom: Bool {
    if !isFull { return true }
    for number in 1..<end where isUnreachable(number) { return true }
    return false
  }

  /// The difference between an advertisement and its predecessor.
  enum Change {
    /// The content of the advertisement is the same.
    case renewal
    /// The profile or the services changed. Routes do not depend on profiles and services.
    case profile
    /// The node is new or has restarted.
    case node
    /// A known node advertises other links than before, so routes may have changed.
    case ways
  }

  /// Stores an advertisement in place of the previous one of the same node and kind. `unsent` has the links over which
  /// the advertisement must be sent, one bit each. `ingress` is the slot of the link that delivered the advertisement.
  mutating func install(
    _ source: NodeID, _ view: borrowing AdvertisementView, _ payload: RawSpan, expiresAt: Instant, unsent: UInt64,
    from ingress: Int
  ) -> Change {
    let number = index.find(source) ?? append(source, from: ingress)
    let isKnown = records[number][view.kind].isHeld && records[number][view.kind].epoch == view.epoch
    let isSame = isKnown && isSame(number, view)
    keep(number, view, payload, expiresAt: expiresAt, unsent: unsent)
    if isSame { return .renewal }
    switch view.kind {
    case .topology: break
    case .profile, .services: return .profile
    }
    guard let body = try? TopologyView(view.body) else { return .renewal }
    records[number].relays = body.flags.relays
    return isKnown ? .ways : .node
  }

  private mutating func keep(
    _ number: Int, _ view: borrowing AdvertisementView, _ payload: RawSpan, expiresAt: Instant, unsent: UInt64
  ) {
    records[number][view.kind] = Stamp(
      epoch: view.epoch, sequence: view.sequence, expiresAt: expiresAt, lifetimeSeconds: view.lifetimeSeconds,
      isHeld: true, unsent: unsent, toldExpiry: expiresAt,
      renewals: records[number][view.kind].renewals)
    expiryDeadline = min(expiryDeadline, expiresAt)
    advertisements.replace(advertisementIndex(number, view.kind), by: payload)
  }

  /// Removes expired advertisements. Returns true if the removal may have changed routes or the known epoch of a node.
  mutating func expire(now: Instant) -> Bool {
    if expiryDeadline > now { return false }
    var isLess = false
    expiryDeadline = .never
    for number in 1..<end where records[number].id != .none {
      if records[number].topology.isHeld && records[number].topology.expiresAt <= now {
        drop(number, .topology)
        isLess = true
      }
      if records[number].profile.isHeld && records[number].profile.expiresAt <= now {
        drop(number, .profile)
        isLess = true
      }
      if records[number].services.isHeld && records[number].services.expiresAt <= now {
        drop(number, .services)
      }
      if !records[number].topology.isHeld && !records[number].profile.isHeld && !records[number].services.isHeld {
        remove(number)
        continue
      }
      if records[number].topology.isHeld { expiryDeadline = min(expiryDeadline, records[number].topology.expiresAt) }
      if records[number].profile.isHeld { expiryDeadline = min(expiryDeadline, records[number].profile.expiresAt) }
      if records[number].services.isHeld { expiryDeadline = min(expiryDeadline, records[number].services.expiresAt) }
    }
    return isLess
  }

  // MARK: Advertisements still to send

  /// The next advertisement to send over the link whose bit is `link`. The search starts at record `start` and wraps
  /// around. Advertisements of nodes without a route are sent last. Anyone can invent nodes without a route, so their
  /// advertisements must not delay the advertisements of other nodes.
  func nextUnsent(_ link: UInt64, from start: Int) -> (number: Int, kind: AdvertisementKind)? {
    var last: (number: Int, kind: AdvertisementKind)?
    for step in 0..<end {
      let number = start + step < end ? start + step : start + step - end
      let kind: AdvertisementKind
      if records[number].topology.unsent & link != 0 {
        kind = .topology
      } else if records[number].profile.unsent & link != 0 {
        kind = .profile
      } else if records[number].services.unsent & link != 0 {
        kind = .services
      } else {
        continue
      }
      if number == 0 || records[number].route != nil { return (number, kind) }
      if last == nil { last = (number, kind) }
    }
    return last
  }

  /// Marks all advertisements as unsent on the link whose bit is `link`.
  func markAllUnsent(_ link: UInt64) {
    for number in 0..<end { markUnsent(link, of: number) }
  }

  /// Marks the advertisements of record `number` as unsent on the link whose bit is `link`.
  func markUnsent(_ link: UInt64, of number: Int) {
    if records[number].topology.isHeld { records[number].topology.unsent |= link }
    if records[number].profile.isHeld { records[number].profile.unsent |= link }
    if records[number].services.isHeld { records[number].services.unsent |= link }
  }

  /// Moves the unsent marks from the link with bit `old` to the link with bit `new`. If `new` is zero, the marks are
  /// removed.
  func moveUnsent(_ old: UInt64, to new: UInt64) {
    for number in 0..<end {
      if records[number].topology.unsent & old != 0 {
        records[number].topology.unsent = records[number].topology.unsent & ~old | new
      }
      if records[number].profile.unsent & old != 0 {
        records[number].profile.unsent = records[number].profile.unsent & ~old | new
      }
      if records[number].services.unsent & old != 0 {
        records[number].services.unsent = records[number].services.unsent & ~old | new
      }
    }
  }

  // MARK: Records

  /// The table slot of an advertisement in `advertisements`.
  private func advertisementIndex(_ number: Int, _ kind: AdvertisementKind) -> Int {
    number * AdvertisementKind.count + Int(kind.rawValue) - 1
  }

  private mutating func drop(_ number: Int, _ kind: AdvertisementKind) {
    records[number][kind] = Stamp()
    advertisements.remove(advertisementIndex(number, kind))
  }

  /// Whether an advertisement has the same body as the stored one of its kind. Most renewals have the same body as the
  /// stored advertisement.
  private func isSame(_ number: Int, _ view: borrowing AdvertisementView) -> Bool {
    guard let held = bytes(number, view.kind), let old = try? AdvertisementView(held.bytes) else { return false }
    return isEqual(old.body, view.body)
  }

  private func isEqual(_ one: RawSpan, _ other: RawSpan) -> Bool {
    if one.byteCount != other.byteCount { return false }
    for offset in one.byteOffsets where one.octet(offset) != other.octet(offset) { return false }
    return true
  }

  /// The record of the node without a route that is evicted first, or nil if there is no node without a route. The
  /// nodes without a route are grouped by the link that introduced them. The first of these nodes to be evicted is the
  /// earliest to expire in the largest group. A neighbour that invents nodes thus displaces nodes from its own link.
  var unreachable: Int? {
    var counts = FixedArray<65, UInt16>(repeating: 0)
    for number in 1..<end where isUnreachable(number) { counts[Int(records[number].ingress)] += 1 }
    var found: Int?
    for number in 1..<end where isUnreachable(number) {
      if let other = found {
        let (most, count) = (counts[Int(records[other].ingress)], counts[Int(records[number].ingress)])
        if most > count || most == count && expiry(other) <= expiry(number) { continue }
      }
      found = number
    }
    return found
  }

  private func isUnreachable(_ number: Int) -> Bool { records[number].id != .none && !records[number].isInTree }

  private func expiry(_ number: Int) -> Instant {
    min(records[number].topology.expiresAt, records[number].profile.expiresAt)
  }

  /// Evicts the node of record `number`, and creates a record for `node`. The caller stores the advertisement of `node`
  /// next. `parent` is the record of the node that lists `node`.
  mutating func replace(_ number: Int, by node: NodeID, below parent: Int, from ingress: Int) {
    remove(number)
    let number = append(node, from: ingress)
    records[number].parent = UInt16(parent)
    records[number].isProvisional = true
  }

  private mutating func append(_ node: NodeID, from ingress: Int) -> Int {
    precondition(!isFull, "a full table takes a node only in exchange for another one")
    var number = 0
    while number < end, records[number].id != .none { number += 1 }
    if number == end { end += 1 }
    records[number] = NodeRecord()
    records[number].id = node
    records[number].ingress = UInt8(ingress)
    index.insert(number)
    count += 1
    return number
  }

  private mutating func remove(_ number: Int) {
    index.remove(number)
    drop(number, .topology)
    drop(number, .profile)
    drop(number, .services)
    records[number] = NodeRecord()
    count -= 1
  }
}
