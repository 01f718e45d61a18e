import Frame
import Primitives

/// The advertisements that a node holds, its own among them, and which neighbours have yet to be told of each.
///
/// A record keeps its number for as long as its node is known. Flooding has no queue of its own: whoever has yet
/// to be told of an advertisement is a bit in its stamp, and a link takes the next one when its stream has room. So
/// nothing overflows, a newer advertisement takes the place of one that still waits, and nothing is lost.
struct Database {
  static let byteCount =
    Limits.nodesMax
    * (MemoryLayout<NodeRecord>.stride + AdvertisementKind.count * Limits.advertisementBytesMax
      + Limits.neighboursMax * MemoryLayout<Neighbour>.stride) + NodeIndex.byteCount

  let records: UnsafeMutablePointer<NodeRecord>
  private let neighbours: UnsafeMutablePointer<Neighbour>
  private let advertisements: UnsafeMutableRawPointer
  private let index: NodeIndex
  /// Records from here on were never used: their memory was never touched.
  private(set) var end = 0
  /// Records that hold a node.
  private(set) var count = 0
  /// No stamp expires before.
  private(set) var expiryDeadline = Instant.never

  /// The first record is this node's own; it never goes. `memory` has `byteCount` bytes, aligned to 16, and is the
  /// database's alone.
  init(local: NodeID, _ memory: UnsafeMutableRawPointer) {
    records = memory.bindMemory(to: NodeRecord.self, capacity: Limits.nodesMax)
    var next = memory + Limits.nodesMax * MemoryLayout<NodeRecord>.stride
    index = NodeIndex(next, over: records)
    next += NodeIndex.byteCount
    neighbours = next.bindMemory(to: Neighbour.self, capacity: Limits.nodesMax * Limits.neighboursMax)
    advertisements = next + Limits.nodesMax * Limits.neighboursMax * MemoryLayout<Neighbour>.stride
    _ = append(local)
  }

  func find(_ id: NodeID) -> Int? { index.find(id) }

  /// The neighbours that record `number` states, in the order stated.
  func neighbours(of number: Int) -> UnsafeMutableBufferPointer<Neighbour> {
    UnsafeMutableBufferPointer(
      start: neighbours + number * Limits.neighboursMax, count: records[number].neighbourCount)
  }

  /// What the node of record `number` states of its link to `node`.
  func entry(_ number: Int, of node: NodeID) -> Neighbour? {
    for neighbour in neighbours(of: number) where neighbour.node == node { return neighbour }
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
    let row = neighbours(of: number)
    for entry in 0..<body.count {
      guard let neighbour = try? body.entry(entry) else { return true }
      (row.baseAddress! + entry).initialize(to: neighbour)
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
    let place = (number * AdvertisementKind.count + Int(kind.rawValue) - 1) * Limits.advertisementBytesMax
    return UnsafeMutableRawBufferPointer(start: advertisements + place, count: Limits.advertisementBytesMax)
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
    (records + number).initialize(to: NodeRecord())
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
