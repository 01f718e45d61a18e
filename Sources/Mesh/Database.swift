import Frame
import Primitives

/// The advertisements that a node holds, its own among them, and which neighbours have yet to be told of each.
///
/// A record keeps its number for as long as its node is known. Flooding has no queue of its own: whoever has yet
/// to be told of an advertisement is a bit in its stamp, and a link takes the next one when its stream has room. So
/// nothing overflows, a newer advertisement takes the place of one that still waits, and nothing is lost.
struct Database {
  static let byteCount =
    Table<NodeRecord, Int>.byteCount(Limits.nodesMax) + NodeIndex.byteCount
    + Table<Neighbour, Int>.byteCount(Limits.nodesMax * Limits.neighboursMax)
    + ByteTable<Int>.byteCount(
      Limits.nodesMax * AdvertisementKind.count, recordBytes: Limits.advertisementBytesMax)

  let records: Table<NodeRecord, Int>
  /// What nodes state, `Limits.neighboursMax` places for each record.
  let neighbours: Table<Neighbour, Int>
  private let advertisements: ByteTable<Int>
  private let index: NodeIndex
  /// Records from here on were never used: their memory was never touched.
  private(set) var end = 0
  /// Records that hold a node.
  private(set) var count = 0
  /// No stamp expires before.
  private(set) var expiryDeadline = Instant.never

  /// The first record is this node's own; it never goes. Takes `byteCount` bytes of `arena`.
  init(local: NodeID, in arena: inout Arena) {
    records = Table(count: Limits.nodesMax, in: &arena)
    index = NodeIndex(over: records, in: &arena)
    neighbours = Table(count: Limits.nodesMax * Limits.neighboursMax, in: &arena)
    advertisements = ByteTable(
      count: Limits.nodesMax * AdvertisementKind.count, recordBytes: Limits.advertisementBytesMax, in: &arena)
    _ = append(local)
  }

  func find(_ id: NodeID) -> Int? { index.find(id) }

  /// Where in `neighbours` those stand that record `number` states, in the order stated.
  func neighbourPlaces(of number: Int) -> Range<Int> {
    let first = number * Limits.neighboursMax
    return first..<first + records[number].neighbourCount
  }

  /// What the node of record `number` states of its link to `node`.
  func entry(_ number: Int, of node: NodeID) -> Neighbour? {
    for place in neighbourPlaces(of: number) where neighbours[place].node == node { return neighbours[place] }
    return nil
  }

  /// The bytes of an advertisement, nil when none is held.
  func bytes(_ number: Int, _ kind: AdvertisementKind) -> UnsafeRawBufferPointer? {
    let byteCount = Int(records[number][kind].byteCount)
    return byteCount == 0 ? nil : UnsafeRawBufferPointer(rebasing: slab(number, kind)[..<byteCount])
  }

  /// Whether one more node finds a place; one that nobody can reach gives way.
  var hasRoom: Bool { count < Limits.nodesMax || unreachable != nil }

  /// Keep an advertisement in the place of the one before. True when routes, or the life of the node that they lead
  /// to, are others now.
  mutating func install(
    _ source: NodeID, _ view: borrowing AdvertisementView, _ payload: RawSpan, expiresAt: Instant, owed: UInt64
  ) -> Bool {
    let number = index.find(source) ?? append(source)
    let isSame = records[number][view.kind].epoch == view.epoch && isSame(number, view)
    records[number][view.kind] = Stamp(
      epoch: view.epoch, sequence: view.sequence, expiresAt: expiresAt, lifetimeSeconds: view.lifetimeSeconds,
      byteCount: UInt16(payload.byteCount), owed: owed)
    expiryDeadline = min(expiryDeadline, expiresAt)
    payload.withUnsafeBytes { slab(number, view.kind).copyMemory(from: $0) }
    if view.kind == .profile || isSame { return false }
    guard let body = try? TopologyView(view.body) else { return false }
    records[number].relays = body.flags.relays
    records[number].neighbourCount = body.count
    let first = number * Limits.neighboursMax
    for entry in 0..<body.count {
      guard let neighbour = try? body.entry(entry) else { return true }
      neighbours[first + entry] = neighbour
    }
    return true
  }

  /// Drop what has aged out. True when that may have moved routes, or the epoch under which a node is known.
  mutating func expire(now: Instant) -> Bool {
    if expiryDeadline > now { return false }
    var isLess = false
    expiryDeadline = .never
    for number in 1..<end where records[number].id != .none {
      if records[number].topology.isHeld && records[number].topology.expiresAt <= now {
        records[number].topology = Stamp()
        records[number].neighbourCount = 0
        isLess = true
      }
      if records[number].profile.isHeld && records[number].profile.expiresAt <= now {
        records[number].profile = Stamp()
        isLess = true
      }
      if !records[number].topology.isHeld && !records[number].profile.isHeld {
        remove(number)
        continue
      }
      if records[number].topology.isHeld { expiryDeadline = min(expiryDeadline, records[number].topology.expiresAt) }
      if records[number].profile.isHeld { expiryDeadline = min(expiryDeadline, records[number].profile.expiresAt) }
    }
    return isLess
  }

  // MARK: Who has yet to be told

  /// The next advertisement that the neighbour on a link has yet to be told, looking from record `start` on.
  func nextOwed(_ link: UInt64, from start: Int) -> (number: Int, kind: AdvertisementKind)? {
    for step in 0..<end {
      let number = start + step < end ? start + step : start + step - end
      if records[number].topology.owed & link != 0 { return (number, .topology) }
      if records[number].profile.owed & link != 0 { return (number, .profile) }
    }
    return nil
  }

  /// The neighbour on a link is to be told of everything.
  func oweAll(_ link: UInt64) {
    for number in 0..<end {
      if records[number].topology.isHeld { records[number].topology.owed |= link }
      if records[number].profile.isHeld { records[number].profile.owed |= link }
    }
  }

  /// What was owed on the link `old` is owed on `new`; nothing on any when that is zero.
  func moveOwed(_ old: UInt64, to new: UInt64) {
    for number in 0..<end {
      if records[number].topology.owed & old != 0 {
        records[number].topology.owed = records[number].topology.owed & ~old | new
      }
      if records[number].profile.owed & old != 0 {
        records[number].profile.owed = records[number].profile.owed & ~old | new
      }
    }
  }

  // MARK: Records

  private func slab(_ number: Int, _ kind: AdvertisementKind) -> UnsafeMutableRawBufferPointer {
    advertisements[number * AdvertisementKind.count + Int(kind.rawValue) - 1]
  }

  /// A renewed advertisement usually states what the one before did.
  private func isSame(_ number: Int, _ view: borrowing AdvertisementView) -> Bool {
    guard let held = bytes(number, view.kind), let old = try? AdvertisementView(held.bytes),
      old.body.byteCount == view.body.byteCount
    else { return false }
    for offset in old.body.byteOffsets {
      let byte = old.body.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
      if byte != view.body.unsafeLoad(fromByteOffset: offset, as: UInt8.self) { return false }
    }
    return true
  }

  /// Of the nodes without a route the one whose advertisement ages out first.
  private var unreachable: Int? {
    var found: Int?
    for number in 1..<end where records[number].id != .none && records[number].route == nil {
      if let other = found, expiry(other) <= expiry(number) { continue }
      found = number
    }
    return found
  }

  private func expiry(_ number: Int) -> Instant {
    min(records[number].topology.expiresAt, records[number].profile.expiresAt)
  }

  private mutating func append(_ node: NodeID) -> Int {
    if count == Limits.nodesMax, let victim = unreachable { remove(victim) }
    var number = 0
    while number < end, records[number].id != .none { number += 1 }
    if number == end { end += 1 }
    records[number] = NodeRecord()
    records[number].id = node
    index.insert(number)
    count += 1
    return number
  }

  private mutating func remove(_ number: Int) {
    index.remove(number)
    records[number] = NodeRecord()
    count -= 1
  }
}
