import Primitives
import SecureTransport

/// An alarm: a peer offered a key under a name that is pinned to another key, or under a similar name.
public struct TrustAlarm: Equatable, Sendable {
  /// The pinned name.
  public let name: [UInt8]
  public let pinned: NodeID
  public let offered: NodeID
  /// The offered name.
  public let offeredName: [UInt8]
  /// The number of times that the key was offered under the name.
  public internal(set) var count: UInt64
}

/// The open alarms. Each pin has one slot for an alarm, which alarms of other pins cannot occupy. Further alarms, up to
/// `TrustLimits.alarmsOfPinMax` for each pin, share `TrustLimits.alarmsSharedMax` slots. Alarms are not saved: after a
/// restart, the next attempt raises an alarm again.
public struct TrustAlarms {
  /// The alarms about one pin: the keys that were offered under the name of the pin. Each pin has at most one entry for
  /// its alarms, which is removed when the pin is removed.
  private struct OfPin {
    var pin: Pin
    /// The stored alarms in the order of their beginning. When there is no free slot, a new alarm replaces the last
    /// one.
    var alarms: [TrustAlarm] = []
    /// The newest keys that the operator declared not to be the pinned peer.
    var settled: [NodeID] = []
    var missedCount: UInt64 = 0
    /// The earliest time at which the next alarm of this pin is logged, or nil if no alarm has been logged.
    var logsAt: Instant?
  }

  /// The maximum memory of all alarms, in bytes. The two names of an alarm and the settled keys are arrays, which have
  /// their own memory.
  static let bytesMax =
    TrustLimits.pinsMax
    * (MemoryLayout<OfPin>.stride + 2 * arrayHead + TrustLimits.settledOfPinMax * MemoryLayout<NodeID>.stride)
    + (TrustLimits.pinsMax + TrustLimits.alarmsSharedMax)
    * (MemoryLayout<TrustAlarm>.stride + 2 * (arrayHead + Limits.displayNameBytesMax))
  private static let arrayHead = 32

  private var pins: [OfPin] = []
  private var fresh: [(alarm: TrustAlarm, isFirst: Bool)] = []

  /// All alarms: first those about pins that the operator set, then those about pins of first use. Each group is sorted
  /// by pin.
  public var all: [TrustAlarm] {
    pins.flatMap { $0.pin.isByOperator ? $0.alarms : [] } + pins.flatMap { $0.pin.isByOperator ? [] : $0.alarms }
  }

  public var isEmpty: Bool { pins.allSatisfy { $0.alarms.isEmpty } }

  /// The number of alarms that were replaced by newer alarms of the same pin.
  public var missedCount: UInt64 { pins.reduce(0) { $0 &+ $1.missedCount } }

  mutating func raise(_ pin: Pin, offered: NodeID, under name: [UInt8], at now: Instant) {
    let pinIndex = index(of: pin)
    if pins[pinIndex].settled.contains(offered) { return }
    if let index = pins[pinIndex].alarms.firstIndex(where: { $0.offered == offered }) {
      pins[pinIndex].alarms[index].count &+= 1
      return
    }
    let alarm = TrustAlarm(name: pin.name, pinned: pin.node, offered: offered, offeredName: name, count: 1)
    let count = pins[pinIndex].alarms.count
    if count == 0 || count < TrustLimits.alarmsOfPinMax && sharedCount < TrustLimits.alarmsSharedMax {
      pins[pinIndex].alarms.append(alarm)
    } else {
      pins[pinIndex].alarms[count - 1] = alarm
      pins[pinIndex].missedCount &+= 1
    }
    let logsAt = pins[pinIndex].logsAt
    if let logsAt, now < logsAt { return }
    pins[pinIndex].logsAt = now + TrustLimits.alarmLogInterval
    fresh.append((alarm, logsAt == nil))
  }

  /// The alarms that must be logged and that no earlier call returned. There is at most one for each pin in
  /// `TrustLimits.alarmLogInterval`. `isFirst` means that no alarm of the pin was logged before.
  mutating func takeFresh() -> [(alarm: TrustAlarm, isFirst: Bool)] {
    defer { fresh = [] }
    return fresh
  }

  /// Removes the alarms for which `isMeant` returns true, and returns their number. The next attempt with the same key
  /// raises an alarm again.
  @discardableResult mutating func remove(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    var count = 0
    for pinIndex in pins.indices {
      let before = pins[pinIndex].alarms.count
      pins[pinIndex].alarms.removeAll { isMeant($0) }
      count += before - pins[pinIndex].alarms.count
      if pins[pinIndex].alarms.isEmpty { pins[pinIndex].missedCount = 0 }
    }
    return count
  }

  /// Removes the alarms for which `isMeant` returns true, and returns their number. The offered keys of these alarms
  /// raise no alarm until a restart.
  mutating func settle(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    for pinIndex in pins.indices {
      let keys = pins[pinIndex].alarms.filter { isMeant($0) }.map { $0.offered }
      pins[pinIndex].settled = Array((pins[pinIndex].settled + keys).suffix(TrustLimits.settledOfPinMax))
    }
    return remove(isMeant)
  }

  /// Handles a peer that changed its name. Alarms under the former name are removed. The log interval of the pin
  /// continues, so changes of the name cause no extra log lines.
  mutating func rename(_ pin: Pin, to new: Pin) {
    guard let pinIndex = pins.firstIndex(where: { $0.pin.node == pin.node && $0.pin.name == pin.name }) else { return }
    pins[pinIndex] = OfPin(pin: new, logsAt: pins[pinIndex].logsAt)
  }

  /// Removes the entry of a pin that no longer exists.
  mutating func forget(_ pin: Pin) { pins.removeAll { $0.pin.node == pin.node && $0.pin.name == pin.name } }

  /// The number of occupied shared slots: those of all alarms except the first of each pin.
  private var sharedCount: Int { pins.reduce(0) { $0 + max($1.alarms.count - 1, 0) } }

  private mutating func index(of pin: Pin) -> Int {
    if let index = pins.firstIndex(where: { $0.pin.node == pin.node && $0.pin.name == pin.name }) { return index }
    pins.append(OfPin(pin: pin))
    return pins.count - 1
  }
}

extension TrustKeeper {
  /// The alarms that must be logged and that no earlier call returned. `isFirst` means that no alarm of the pin was
  /// logged before.
  public func takeFreshAlarms() -> [(alarm: TrustAlarm, isFirst: Bool)] { alarms.takeFresh() }

  /// Confirms the pinned keys, and removes the alarms in which `key` is the pinned or the offered key. `.none` removes
  /// all alarms. The offered keys remain refused under these names and raise no alarm until a restart. Returns the
  /// number of removed alarms.
  public func keep(_ key: NodeID) throws(TrustError) -> Int {
    let count = alarms.settle { key == .none || $0.pinned == key || $0.offered == key }
    if count == 0 { throw .noAlarm }
    return count
  }

  /// Removes the alarms in which `key` is the pinned or the offered key, and returns their number. `.none` removes all
  /// alarms. The next attempt with an offered key raises an alarm again.
  public func dismiss(_ key: NodeID) throws(TrustError) -> Int {
    let count = alarms.remove { key == .none || $0.pinned == key || $0.offered == key }
    if count == 0 { throw .noAlarm }
    return count
  }
}

/// A node whose link, end-to-end session or advertisement was refused.
public struct RefusedStranger: Equatable, Sendable {
  public let id: NodeID
  /// The name that the node claimed, or empty if the node was refused before its name was known.
  public internal(set) var name: [UInt8]
  public internal(set) var reason: PeerRefusal
  /// The number of times that the node was refused.
  public internal(set) var count: UInt64
}

/// The nodes that were refused most recently, so that the operator can find the key of a node that should be accepted.
/// There are at most `TrustLimits.strangersMax` entries, and the latest is last. An address with many keys cannot evict
/// the entries of addresses with fewer.
public struct RefusedStrangers {
  public private(set) var all: [RefusedStranger] = []
  /// The address from which each node was last refused, or 0 if the address is unknown.
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

  /// The index of the oldest entry of the address with the most entries. The new entry, whose address is `newcomer`, is
  /// included in the count.
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
