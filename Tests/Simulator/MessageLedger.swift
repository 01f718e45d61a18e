import Channel
import Primitives

/// Every message of a run: what was sent, what arrived, how each send ended.
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
  private var pending: [Send: Name] = [:]
  private var received: Set<Name> = []
  private var lastRead: [Reading: UInt32] = [:]
  /// Completed as delivered to a reader who had not taken them yet, and the reader's life.
  private var owed: [(name: Name, readerLife: Int)] = []
  private(set) var deliveredCount = 0
  private(set) var failedCount = 0

  /// Bytes before the filler.
  static let headBytes = 17

  /// The next message on a route: it says where it belongs, and every filler byte follows from that.
  mutating func next(on route: Route, fillerBytes: Int) -> [UInt8] {
    let number = taken[route, default: 0]
    return Self.message(Name(route: route, number: number), fillerBytes)
  }

  /// The node took the message that `next` gave.
  mutating func sent(on route: Route, _ id: MessageID) -> String? {
    let number = taken[route, default: 0]
    taken[route] = number + 1
    let send = Send(from: route.from, life: route.life, to: route.to, id: id)
    return pending.updateValue(Name(route: route, number: number), forKey: send) == nil
      ? nil : "gives one id to two sends"
  }

  /// How many sends of a machine's life have not ended.
  func pendingCount(from machine: Int, life: Int) -> Int {
    pending.keys.count { $0.from == machine && $0.life == life }
  }

  mutating func completed(
    by machine: Int, life: Int, peer: Int, _ completion: Completion, readerLife: Int, readerIsSlow: Bool
  ) -> String? {
    let send = Send(from: machine, life: life, to: peer, id: completion.message)
    guard let name = pending.removeValue(forKey: send) else { return "completes a send twice, or one that never was" }
    switch completion.outcome {
    case .failed: failedCount += 1
    case .delivered:
      deliveredCount += 1
      if received.contains(name) { return nil }
      if !readerIsSlow { return "completes message \(name.number) as delivered, which did not arrive" }
      owed.append((name, readerLife))
    }
    return nil
  }

  mutating func read(by machine: Int, life: Int, from sender: Int, lane: Lane, _ bytes: [UInt8]) -> String? {
    guard bytes.count >= Self.headBytes else { return "reads a message that is cut" }
    func word(_ place: Int) -> UInt32 { (0..<4).reduce(0) { $0 << 8 | UInt32(bytes[place + $1]) } }
    let route = Route(from: Int(word(0)), life: Int(word(4)), to: Int(word(8)), lane: lane)
    let name = Name(route: route, number: word(12))
    if route.from != sender || route.to != machine || bytes[16] != lane.rawValue {
      return "reads a message of somebody else"
    }
    if Self.message(name, bytes.count - Self.headBytes) != bytes { return "reads a message that was changed" }
    if !received.insert(name).inserted { return "reads message \(name.number) twice" }
    let reading = Reading(route: route, readerLife: life)
    if let last = lastRead[reading], last >= name.number { return "reads message \(name.number) after \(last)" }
    lastRead[reading] = name.number
    return nil
  }

  /// At the end, when everybody has read everything. `lifeOf` gives a machine's present life.
  func unpaid(_ lifeOf: (Int) -> Int) -> Int {
    owed.count { !received.contains($0.name) && lifeOf($0.name.route.to) == $0.readerLife }
  }

  private static func message(_ name: Name, _ fillerBytes: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for word in [UInt32(name.route.from), UInt32(name.route.life), UInt32(name.route.to), name.number] {
      for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    bytes.append(name.route.lane.rawValue)
    let start = name.number &* 31 &+ UInt32(name.route.from)
    bytes.append(contentsOf: (0..<fillerBytes).map { UInt8(truncatingIfNeeded: start &+ UInt32($0)) })
    return bytes
  }
}
