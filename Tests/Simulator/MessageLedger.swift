import Channel
import Primitives

/// Records every message of a run: what was sent, what was read, and how each send completed. Machines are identified
/// by the number of the machine that owns their key. Incarnations are numbered over all machines.
struct MessageLedger {
  struct Route: Hashable {
    var from: Int
    var life: Int
    var to: Int
    var lane: Lane
  }
  private struct Send: Hashable {
    var from: Int
    var life: Int
    var to: Int
    var id: MessageID
  }
  private struct Name: Hashable {
    var route: Route
    var number: UInt32
  }
  private struct Reading: Hashable {
    var route: Route
    var readerLife: Int
  }

  private var taken: [Route: UInt32] = [:]
  private var pending: [Send: (name: Name, readerLife: Int)] = [:]
  private var received: Set<Name> = []
  /// The messages whose sends have completed, as delivered or failed.
  private var ended: Set<Name> = []
  private var lastRead: [Reading: UInt32] = [:]
  /// The messages that completed as delivered before being read, each with the incarnation of the receiver at that
  /// time.
  private var acknowledged: [(name: Name, readerLife: Int)] = []
  private(set) var deliveredCount = 0
  private(set) var failedCount = 0

  /// The number of unreliable messages sent on each route, and the unreliable messages that arrived.
  private var unreliable: [Route: UInt32] = [:]
  private var receivedUnreliably: Set<Name> = []
  private(set) var unreliableCount = 0

  /// The bytes at the beginning of every 256 bytes of filler in a message. If these bytes appear on a wire, the content
  /// is not encrypted.
  static let canary = [UInt8]("canary at noon !".utf8)

  /// The number of bytes before the filler.
  static let headBytes = 17

  /// The next message on a route, which `sent` must confirm. The message names its route and number, and all filler
  /// bytes are computed from these.
  mutating func next(on route: Route, fillerBytes: Int) -> [UInt8] {
    let number = taken[route, default: 0]
    return Self.message(Name(route: route, number: number), fillerBytes)
  }

  /// Records that the sender's node accepted the message from `next`. `readerLife` is the current incarnation of the
  /// receiver.
  mutating func sent(on route: Route, _ id: MessageID, readerLife: Int) -> String? {
    let number = taken[route, default: 0]
    taken[route] = number + 1
    let send = Send(from: route.from, life: route.life, to: route.to, id: id)
    return pending.updateValue((Name(route: route, number: number), readerLife), forKey: send) == nil
      ? nil : "uses one id for two sends"
  }

  /// The next unreliable message on a route. Unreliable messages have their own sequence of numbers.
  mutating func nextUnreliable(from: Int, life: Int, to: Int, fillerBytes: Int) -> [UInt8] {
    let route = Route(from: from, life: life, to: to, lane: .interactive)
    let number = unreliable[route, default: 0]
    unreliable[route] = number + 1
    return Self.message(Name(route: route, number: number), fillerBytes)
  }

  mutating func readUnreliable(by machine: Int, from sender: Int, _ bytes: [UInt8]) -> String? {
    guard let name = Self.name(bytes, .interactive) else { return "receives a truncated unreliable message" }
    if name.route.from != sender || name.route.to != machine || name.number >= unreliable[name.route, default: 0] {
      return "receives a misdirected unreliable message"
    }
    if bytes != Self.message(name, bytes.count - Self.headBytes) {
      return "receives an altered unreliable message"
    }
    unreliableCount += 1
    return receivedUnreliably.insert(name).inserted ? nil : "receives an unreliable message twice"
  }

  /// The number of sends of an incarnation that are not yet complete.
  func pendingCount(life: Int) -> Int { pending.keys.count { $0.life == life } }

  mutating func completed(
    by machine: Int, life: Int, peer: Int, _ completion: Completion, readerLife: Int, readerIsSlow: Bool
  ) -> String? {
    let send = Send(from: machine, life: life, to: peer, id: completion.message)
    guard let (name, readerLifeBefore) = pending.removeValue(forKey: send) else {
      return "completes a send twice, or an unknown one"
    }
    ended.insert(name)
    switch completion.outcome {
    case .failed: failedCount += 1
    case .delivered:
      deliveredCount += 1
      if received.contains(name) { return nil }
      if !readerIsSlow { return "reports message \(name.number) as delivered, but it did not arrive" }
      // If the incarnations differ, a former incarnation of the receiver may have read the message, and its
      // acknowledgement was in flight.
      if readerLife == readerLifeBefore { acknowledged.append((name, readerLife)) }
    }
    return nil
  }

  mutating func read(by machine: Int, life: Int, from sender: Int, lane: Lane, _ bytes: [UInt8]) -> String? {
    guard let name = Self.name(bytes, lane) else { return "receives a truncated message" }
    let route = name.route
    if route.from != sender || route.to != machine || bytes[16] != lane.rawValue {
      return "receives a misdirected message"
    }
    let expected = Self.message(name, bytes.count - Self.headBytes)
    if let offset = bytes.indices.first(where: { bytes[$0] != expected[$0] }) {
      return "receives message \(name.number) of \(bytes.count) bytes altered from byte \(offset) on"
    }
    if !received.insert(name).inserted { return "receives message \(name.number) twice" }
    let reading = Reading(route: route, readerLife: life)
    if let last = lastRead[reading], last >= name.number { return "receives message \(name.number) after \(last)" }
    for skipped in (lastRead[reading].map { $0 + 1 } ?? 0)..<name.number {
      let before = Name(route: route, number: skipped)
      if !ended.contains(before), !received.contains(before) {
        return "receives message \(name.number) before message \(skipped) has arrived or failed"
      }
    }
    lastRead[reading] = name.number
    return nil
  }

  /// The first message that completed as delivered and was never read, or nil. Use this method at the end of a run,
  /// when all messages have been read. `lifeOf` returns the current incarnation of a machine.
  func unpaid(_ lifeOf: (Int) -> Int) -> String? {
    let name = acknowledged.first { !received.contains($0.name) && lifeOf($0.name.route.to) == $0.readerLife }?.name
    return name.map { "message \($0.number) of \($0.route.from) to \($0.route.to) in lane \($0.route.lane)" }
  }

  /// Parses the first `headBytes` bytes of a message.
  private static func name(_ bytes: [UInt8], _ lane: Lane) -> Name? {
    guard bytes.count >= headBytes else { return nil }
    func word(_ offset: Int) -> UInt32 { (0..<4).reduce(0) { $0 << 8 | UInt32(bytes[offset + $1]) } }
    let route = Route(from: Int(word(0)), life: Int(word(4)), to: Int(word(8)), lane: lane)
    return Name(route: route, number: word(12))
  }

  private static func message(_ name: Name, _ fillerBytes: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for word in [UInt32(name.route.from), UInt32(name.route.life), UInt32(name.route.to), name.number] {
      for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    bytes.append(name.route.lane.rawValue)
    let start = name.number &* 31 &+ UInt32(name.route.from)
    bytes.reserveCapacity(headBytes + fillerBytes)
    for offset in 0..<fillerBytes {
      let isOfCanary = offset & 255 < canary.count
      bytes.append(isOfCanary ? canary[offset & 255] : UInt8(truncatingIfNeeded: start &+ UInt32(offset)))
    }
    return bytes
  }
}
