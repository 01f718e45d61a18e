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

/// The open alarms: at most `TrustLimits.alarmsMax`, and per pin `TrustLimits.alarmsOfPinMax`, so that an attacker with
/// many keys cannot displace alarms about other pins. Not persistent: another attempt raises them again.
public struct TrustAlarms {
  public private(set) var all: [TrustAlarm] = []
  /// Alarms that were not stored because a limit was reached.
  public private(set) var missedCount: UInt64 = 0
  private var fresh: [TrustAlarm] = []
  /// Keys that the operator declared not to be the pinned peer: (pinned, offered).
  private var settled: [(NodeID, NodeID)] = []
  private static let settledMax = 64

  mutating func raise(_ pin: Pin, offered: NodeID, under name: [UInt8]) {
    if settled.contains(where: { $0 == pin.node && $1 == offered }) { return }
    if let index = all.firstIndex(where: { $0.pinned == pin.node && $0.name == pin.name && $0.offered == offered }) {
      all[index].count &+= 1
      return
    }
    let alarm = TrustAlarm(name: pin.name, pinned: pin.node, offered: offered, offeredName: name, count: 1)
    let ofPin = all.indices.filter { all[$0].pinned == pin.node }
    if ofPin.count >= TrustLimits.alarmsOfPinMax, let last = ofPin.last {
      // The first ones and the newest stay.
      all[last] = alarm
      missedCount &+= 1
    } else if all.count >= TrustLimits.alarmsMax {
      missedCount &+= 1
    } else {
      all.append(alarm)
      fresh.append(alarm)
    }
  }

  /// The new alarms since the last call.
  mutating func takeFresh() -> [TrustAlarm] {
    defer { fresh = [] }
    return fresh
  }

  /// Removes alarms; the next attempt raises them again. Returns their number.
  @discardableResult mutating func remove(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    let before = all.count
    all.removeAll { isMeant($0) }
    if all.isEmpty { missedCount = 0 }
    return before - all.count
  }

  /// Removes alarms; the same keys raise none until a restart.
  mutating func settle(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    for alarm in all where isMeant(alarm) {
      if settled.count >= Self.settledMax { settled.removeFirst() }
      settled.append((alarm.pinned, alarm.offered))
    }
    return remove(isMeant)
  }
}

extension TrustKeeper {
  /// The new alarms since the last call, for the log.
  public func takeFreshAlarms() -> [TrustAlarm] { alarms.takeFresh() }

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
/// `TrustLimits.strangersMax`, the latest last.
public struct RefusedStrangers {
  public private(set) var all: [RefusedStranger] = []

  mutating func note(_ id: NodeID, _ name: [UInt8], _ reason: PeerRefusal) {
    var stranger = RefusedStranger(id: id, name: name, reason: reason, count: 1)
    if let index = all.firstIndex(where: { $0.id == id }) {
      let known = all.remove(at: index)
      stranger.count = known.count &+ 1
      if name.isEmpty { stranger.name = known.name }
    } else if all.count >= TrustLimits.strangersMax {
      all.removeFirst()
    }
    all.append(stranger)
  }

  mutating func forget(_ id: NodeID) { all.removeAll { $0.id == id } }
}
