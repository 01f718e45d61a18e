import Primitives
import SecureTransport

/// A key came under a name that is another's, or looks like it.
public struct TrustAlarm: Equatable, Sendable {
  /// The name as it is pinned.
  public let name: [UInt8]
  public let pinned: NodeID
  public let offered: NodeID
  /// The name under which it came.
  public let offeredName: [UInt8]
  /// How often.
  public internal(set) var count: UInt64
}

/// The alarms that nobody has dealt with: at most `TrustLimits.alarmsMax`, and for one pin `TrustLimits.alarmsOfPinMax`, so
/// that who makes many keys washes out no alarm about another pin. Not kept over a restart: who comes again raises it again.
public struct TrustAlarms {
  public private(set) var all: [TrustAlarm] = []
  /// Alarms that found no place.
  public private(set) var missedCount: UInt64 = 0
  private var fresh: [TrustAlarm] = []
  /// Keys of which the operator said that they are not the pinned peer: (pinned, offered).
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
      // The first ones stay, and the newest.
      all[last] = alarm
      missedCount &+= 1
    } else if all.count >= TrustLimits.alarmsMax {
      missedCount &+= 1
    } else {
      all.append(alarm)
      fresh.append(alarm)
    }
  }

  /// The alarms that are new since the last call.
  mutating func takeFresh() -> [TrustAlarm] {
    defer { fresh = [] }
    return fresh
  }

  /// Take alarms off the list; the next try raises them again. Gives how many there were.
  @discardableResult mutating func remove(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    let before = all.count
    all.removeAll { isMeant($0) }
    if all.isEmpty { missedCount = 0 }
    return before - all.count
  }

  /// Take alarms off the list; the same keys raise none again before a restart.
  mutating func settle(_ isMeant: (TrustAlarm) -> Bool) -> Int {
    for alarm in all where isMeant(alarm) {
      if settled.count >= Self.settledMax { settled.removeFirst() }
      settled.append((alarm.pinned, alarm.offered))
    }
    return remove(isMeant)
  }
}

extension TrustKeeper {
  /// The alarms that are new since the last call, for the log.
  public func takeFreshAlarms() -> [TrustAlarm] { alarms.takeFresh() }

  /// The pinned key is right and stays; the alarms of a key, pinned or offered, end (`.none`: all of them), and the keys that
  /// came raise none again before a restart. They stay refused. Gives how many alarms there were.
  public func keep(_ key: NodeID) throws(TrustError) -> Int {
    let count = alarms.settle { key == .none || $0.pinned == key || $0.offered == key }
    if count == 0 { throw .noAlarm }
    return count
  }

  /// The alarms of a key, pinned or offered, were seen (`.none`: all of them); the next try raises them again.
  public func dismiss(_ key: NodeID) throws(TrustError) -> Int {
    let count = alarms.remove { key == .none || $0.pinned == key || $0.offered == key }
    if count == 0 { throw .noAlarm }
    return count
  }
}

/// Somebody who was not let in, or not listened to.
public struct RefusedStranger: Equatable, Sendable {
  public let id: NodeID
  /// Empty where the key was refused before it gave a name.
  public internal(set) var name: [UInt8]
  public internal(set) var reason: PeerRefusal
  /// How often.
  public internal(set) var count: UInt64
}

/// The last strangers that were refused, so that the operator can name the key of one that should have been let in. At
/// most `TrustLimits.strangersMax`, the latest last.
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
