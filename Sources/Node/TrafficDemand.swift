import Mesh
import Primitives

/// The peers of a broadcast domain with which a direct link is worth its cost: much passes to and from them over relays.
///
/// Bytes are counted in windows. A peer with more than `bytesMin` in one has a place, and keeps it until there was no
/// such window for `keepTime`. When all places are taken no other peer gets one.
struct TrafficDemand {
  static let placesMax = 8
  static let window = TimeSpan.seconds(10)
  /// Bytes of payloads in both directions.
  static let bytesMin = 262_144
  static let keepTime = TimeSpan.seconds(60)

  private struct Place {
    /// 0 in a free place.
    var hint: UInt64 = 0
    var busyAt = Instant.zero
  }

  private var places = FixedArray<8, Place>(repeating: Place())
  /// When the window ends; `.never` while none is open.
  private(set) var windowEnd = Instant.never

  func contains(_ hint: UInt64) -> Bool {
    for index in places.indices where places[index].hint == hint { return hint != 0 }
    return false
  }

  /// Bytes are counted from now on.
  mutating func openWindow(now: Instant) {
    if windowEnd == .never { windowEnd = now + Self.window }
  }

  /// Much passed in this window. True when the peer got a place.
  mutating func add(_ hint: UInt64, now: Instant) -> Bool {
    var free: Int?
    for index in places.indices {
      if places[index].hint == hint {
        places[index].busyAt = now
        return false
      }
      if places[index].hint == 0 { free = free ?? index }
    }
    guard let free else { return false }
    places[free] = Place(hint: hint, busyAt: now)
    return true
  }

  /// Ends a window; another one follows while there is anybody whose time may end. True when a peer lost its place.
  mutating func closeWindow(now: Instant) -> Bool {
    var (isEmpty, hasChanged) = (true, false)
    for index in places.indices where places[index].hint != 0 {
      if now - places[index].busyAt > Self.keepTime {
        places[index] = Place()
        hasChanged = true
      } else {
        isEmpty = false
      }
    }
    windowEnd = isEmpty ? .never : now + Self.window
    return hasChanged
  }
}

/// Direct links with the peers to which this node says much.
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
      connector.addDemand(association.peer.high, now: now)
    }
  }

  func closeTrafficWindow(_ now: Instant) {
    if connector.demand.windowEnd > now { return }
    for association in associations.all { association.windowByteCount = 0 }
    connector.closeTrafficWindow(now: now)
  }
}
