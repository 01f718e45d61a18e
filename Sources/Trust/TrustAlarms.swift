import Primitives
import SecureTransport

/// A key was offered under a name that belongs to another key, or under a similar one.
public struct TrustAlarm: Equatable, Sendable {
  /// The pinned name.
  public let name: [UInt8]
  public let pinned: NodeID
  public let offered: NodeID
  /// The offered name.
  public let offeredName: [UInt8]
  /// Number of attempts.
  public internal(set) var count: UInt64
}

/// The open alarms. Each pin has a place for its newest alarm, whatever happens under other names; further alarms, up to
/// `TrustLimits.alarmsOfPinMax` for one pin, share `TrustLimits.alarmsSharedMax` places. Not persistent: another attempt
/// raises them again.
public struct TrustAlarms {
  /// The keys that came under the name of one pin. There is one for each pin at most: it ends with its pin.
  private struct OfPin {
    var pin: Pin
    /// The first ones, and the newest.
    var alarms: [TrustAlarm] = []
    /// Keys that the operator declared not to be the pinned peer; the newest ones.
    var settled: [NodeID] = []
    var missedCount: UInt64 = 0
    /// When its next alarm is logged; nil when none has been.
    var logsAt: Instant?
  }

  /// Both names of an alarm, and the keys that were settled, are arrays.
  static let bytesMax =
    TrustLimits.pinsMax
    * (MemoryLayout<OfPin>.stride + 2 * arrayHead + TrustLimits.settledOfPinMax * MemoryLayout<NodeID>.stride)
    + (TrustLimits.pinsMax + TrustLimits.alarmsSharedMax)
    * (MemoryLayout<TrustAlarm>.stride + 2 * (arrayHead + Limits.displayNameBytesMax))
  private static let arrayHead = 32

  private var pins: [OfPin] = []
  private var fresh: [(alarm: TrustAlarm, isFirst: Bool)] = []

  /// The alarms about pins of the operator first, then those that began first.
  public var all: [TrustAlarm] {
    pins.flatMap { $0.pin.isByOperator ? $0.alarms : [] } + pins.flatMap { $0.pin.isByOperator ? [] : $0.alarms }
  }

  public var isEmpty: Bool { pins.allSatisfy { $0.alarms.isEmpty } }

  /// Alarms that were replaced by newer ones of the same pin.
  public var missedCount: UInt64 { pins.reduce(0) { $0 &+ $1.missedCount } }

  mutating func raise(_ pin: Pin, offered: NodeID, under name: [UInt8], at now: Instant) {
    let place = place(of: pin)
    if pins[place].settled.contains(offered) { return }
    if let index = pins[place].alarms.firstIndex(where: { $0.offered == offered }) {
      pins[place].alarms[index].count &+= 1
      return
    }
    let alarm = TrustAlarm(name: pin.name, pinned: pin.node, offered: offered, offeredName: name, count: 1)
    let count = pins[place].alarms.count
    if count == 0 || count < TrustLimits.alarmsOfPinMax && sharedCount < TrustLimits.alarmsSharedMax {
      pins[place].alarms.append(alarm)
    } else {
      pins[place].alarms[count - 1] = alarm
      pins[place].missedCount &+= 1
    }
    let logsAt = pins[place].logsAt
    if let logsAt, now < logsAt { return }
    pins[place].logsAt = now + TrustLimits.alarmLogInterval
    fresh.append((alarm, logsAt == nil))
  }

  /// The alarms since the last call that are to be logged: of each pin one in `TrustLimits.alarmLogInterval`. `isFirst`: no
  /// other one of its pin was logged before.
  mutating func takeFresh() -> [(alarm: TrustAlarm, isFirst: Bool)] {
    defer { fresh = [] }
    return fresh
  }

  /// Removes alarms; the next attempt raises them again. Returns their number.
  @discardableResult mutating func remove(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    var count = 0
    for place in pins.indices {
      let before = pins[place].alarms.count
      pins[place].alarms.removeAll { isMeant($0) }
      count += before - pins[place].alarms.count
      if pins[place].alarms.isEmpty { pins[place].missedCount = 0 }
    }
    return count
  }

  /// Removes alarms; the same keys raise none until a restart.
  mutating func settle(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    for place in pins.indices {
      let keys = pins[place].alarms.filter { isMeant($0) }.map { $0.offered }
      pins[place].settled = Array((pins[place].settled + keys).suffix(TrustLimits.settledOfPinMax))
    }
    return remove(isMeant)
  }

  /// A key has taken another name. The alarm under the former one is gone; a name that changes gets no more log lines.
  mutating func rename(_ pin: Pin, to new: Pin) {
    guard let place = pins.firstIndex(where: { $0.pin.node == pin.node && $0.pin.name == pin.name }) else { return }
    pins[place] = OfPin(pin: new, logsAt: pins[place].logsAt)
  }

  /// A pin is gone: so is all about it.
  mutating func forget(_ pin: Pin) { pins.removeAll { $0.pin.node == pin.node && $0.pin.name == pin.name } }

  /// Places beyond the first one of each pin.
  private var sharedCount: Int { pins.reduce(0) { $0 + max($1.alarms.count - 1, 0) } }

  private mutating func place(of pin: Pin) -> Int {
    if let place = pins.firstIndex(where: { $0.pin.node == pin.node && $0.pin.name == pin.name }) { return place }
    pins.append(OfPin(pin: pin))
    return pins.count - 1
  }
}

extension TrustKeeper {
  /// The alarms since the last call that are to be logged. `isFirst`: no other one of its pin was logged before.
  public func takeFreshAlarms() -> [(alarm: TrustAlarm, isFirst: Bool)] { alarms.takeFresh() }

  /// Confirms the pinned key: removes the alarms of a key, pinned or offered (`.none`: all alarms). The offered keys
  /// stay refused, and raise no alarm until a restart. Returns the number of alarms.
  public func keep(_ key: NodeID) throws(TrustError) -> Int {
    let count = alarms.settle { key == .none || $0.pinned == key || $0.offered == key }
    if count == 0 { throw .noAlarm }
    return count
  }

  /// Removes the alarms of a key, pinned or offered (`.none`: all alarms); the next attempt raises them again.
  public func dismiss(_ key: NodeID) throws(TrustError) -> Int {
    let count = alarms.remove { key == .none || $0.pinned == key || $0.offered == key }
    if count == 0 { throw .noAlarm }
    return count
  }
}

/// A node whose link, session or advertisement was refused.
public struct RefusedStranger: Equatable, Sendable {
  public let id: NodeID
  /// Empty if the key was refused before a name was known.
  public internal(set) var name: [UInt8]
  public internal(set) var reason: PeerRefusal
  /// Number of refusals.
  public internal(set) var count: UInt64
}

/// The nodes refused last, so that the operator can find the key of one that should be accepted. At most
/// `TrustLimits.strangersMax`, the latest last: one address with many keys leaves the others their places.
public struct RefusedStrangers {
  public private(set) var all: [RefusedStranger] = []
  /// The address from which each of them came last; 0 for none.
  private var sources: [UInt64] = []

  mutating func note(_ id: NodeID, _ name: [UInt8], _ reason: PeerRefusal, from source: UInt64) {
    var stranger = RefusedStranger(id: id, name: name, reason: reason, count: 1)
    if let index = all.firstIndex(where: { $0.id == id }) {
      let known = remove(at: index)
      stranger.count = known.count &+ 1
      if name.isEmpty { stranger.name = known.name }
    } else if all.count >= TrustLimits.strangersMax {
      _ = remove(at: oldestOfLargest(newcomer: source))
    }
    all.append(stranger)
    sources.append(source)
  }

  mutating func forget(_ id: NodeID) {
    if let index = all.firstIndex(where: { $0.id == id }) { _ = remove(at: index) }
  }

  /// The oldest one of the address that has most, with the newcomer.
  private func oldestOfLargest(newcomer: UInt64) -> Int {
    var (largest, most) = (0, 0)
    for index in sources.indices {
      let count = sources.count { $0 == sources[index] } + (sources[index] == newcomer ? 1 : 0)
      if count > most { (largest, most) = (index, count) }
    }
    return largest
  }

  private mutating func remove(at index: Int) -> RefusedStranger {
    sources.remove(at: index)
    return all.remove(at: index)
  }
}
