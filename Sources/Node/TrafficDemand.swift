import Mesh
import Primitives

/// The peers of a broadcast domain whose traffic over relays is worth a direct link.
///
/// Bytes are counted in windows of time. A peer with more than `bytesMin` bytes in one window gets a table slot. A peer
/// keeps its slot until `keepTime` has passed without a window with that many bytes.
///
/// A slot is charged to the link that delivers the peer's frames. In a full table, the link with the most slots loses a
/// slot, if that link has more than the newcomer's link would have. The peer of that link whose traffic ended longest
/// ago loses its slot.
struct TrafficDemand {
  static let entriesMax = 8
  static let window = TimeSpan.seconds(10)
  /// The payload bytes of one window, in both directions together, above which a peer gets a slot.
  static let bytesMin = 262_144
  static let keepTime = TimeSpan.seconds(60)

  private struct Entry {
    /// The first 8 bytes of the peer's id, or 0 if the slot is free.
    var hint: UInt64 = 0
    var busyAt = Instant.zero
    var holder = FairShare.ownHolder
  }

  private var entries = FixedArray<8, Entry>(repeating: Entry())
  /// The time when the window of measurement ends, or `.never` if none is open.
  private(set) var windowEnd = Instant.never

  func contains(_ hint: UInt64) -> Bool {
    for index in entries.indices where entries[index].hint == hint { return hint != 0 }
    return false
  }

  /// Opens a window, unless a window is already open.
  mutating func openWindow(now: Instant) {
    if windowEnd == .never { windowEnd = now + Self.window }
  }

  /// Records heavy traffic in this window with a peer whose frames arrive over the link in slot `holder`. Returns true
  /// if the peer got a new table slot.
  mutating func add(_ hint: UInt64, from holder: Int, now: Instant) -> Bool {
    var free: Int?
    for index in entries.indices {
      if entries[index].hint == hint {
        entries[index].busyAt = now
        entries[index].holder = holder
        return false
      }
      if entries[index].hint == 0 { free = free ?? index }
    }
    guard let index = free ?? leaver(for: holder) else { return false }
    entries[index] = Entry(hint: hint, busyAt: now, holder: holder)
    return true
  }

  /// The table slot to free for a new peer of the link `holder`. nil if no other link has more slots than `holder`
  /// would have.
  private func leaver(for holder: Int) -> Int? {
    var share = FairShare(capacity: Self.entriesMax)
    for index in entries.indices { share.take(1, by: entries[index].holder) }
    var found: Int?
    var most = share.held(by: holder) + 1
    for index in entries.indices {
      let held = share.held(by: entries[index].holder)
      if held > most || held == most && found.map({ entries[index].busyAt < entries[$0].busyAt }) ?? false {
        (found, most) = (index, held)
      }
    }
    return found
  }

  /// Ends a window. Another window follows while any peer has a slot. Returns true if a peer lost its slot.
  mutating func closeWindow(now: Instant) -> Bool {
    var (isEmpty, hasChanged) = (true, false)
    for index in entries.indices where entries[index].hint != 0 {
      if now - entries[index].busyAt > Self.keepTime {
        entries[index] = Entry()
        hasChanged = true
      } else {
        isEmpty = false
      }
    }
    windowEnd = isEmpty ? .never : now + Self.window
    return hasChanged
  }
}

/// Direct links with the peers of heavy traffic.
extension Node {
  /// Counts the bytes of a payload to or from a peer.
  func countTraffic(_ byteCount: Int, with association: Association, _ now: Instant) {
    guard connector.hasDomains else { return }
    connector.openTrafficWindow(now: now)
    let before = association.windowByteCount
    association.windowByteCount += byteCount
    guard before <= TrafficDemand.bytesMin, association.windowByteCount > TrafficDemand.bytesMin,
      let route = association.route
    else { return }
    if route.hops > 1 || connector.demand.contains(association.peer.high) {
      connector.addDemand(association.peer.high, from: association.holder, now: now)
    }
  }

  func closeTrafficWindow(_ now: Instant) {
    if connector.demand.windowEnd > now { return }
    for association in associations.all { association.windowByteCount = 0 }
    connector.closeTrafficWindow(now: now)
  }
}
