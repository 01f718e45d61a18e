import Primitives

/// First messages of all leaves of a crowded Bluetooth room to all others, all sent at once: each pair needs a
/// handshake of several round trips, and its leaves are connected only in turns.
public struct Crowd {
  public let leaves: Int
  /// The connections of each radio.
  public let slots: Int
  /// The number of messages sent, delivered and failed.
  public let sent: Int
  public let delivered: Int
  public let failed: Int
  /// The milliseconds until half and nine tenths of the messages were delivered, nil if they were not, and until the
  /// last message was delivered or failed.
  public let half: UInt64?
  public let nineTenths: UInt64?
  public let all: UInt64
  /// The first violation, or nil.
  public let violation: String?

  /// The possible numbers of leaves. In a network of more than 16 machines not all pairs have a channel.
  public static let leavesRange = 2...15
  /// The possible numbers of connections. With fewer, leaves are not parked.
  public static let slotsRange = 3...15
  private static let timeMax = TimeSpan.seconds(200)

  /// Measures one box with `leaves` leaves. The seed decides about ids and delays.
  public init(leaves: Int, slots: Int, seed: UInt64) {
    var plan = NetworkPlan(relays: (0...leaves).map { $0 == 0 }, wires: [])
    plan.addRoom(Array(0...leaves))
    plan.bluetoothSlots = slots
    let simulation = Simulation(plan, seed: seed)
    simulation.run(until: simulation.now + .seconds(60))
    let start = simulation.now
    let sent = simulation.sendToAll()
    let ledger = { simulation.ledger.deliveredCount + simulation.ledger.failedCount }
    var times: [UInt64?] = [nil, nil]
    while simulation.violation == nil, simulation.now < start + Self.timeMax, ledger() < sent {
      simulation.run(until: simulation.now + .milliseconds(100))
      for (index, share) in [50, 90].enumerated()
      where times[index] == nil && simulation.ledger.deliveredCount * 100 >= sent * share {
        times[index] = (simulation.now - start).milliseconds
      }
    }
    self.leaves = leaves
    self.slots = slots
    self.sent = sent
    delivered = simulation.ledger.deliveredCount
    failed = simulation.ledger.failedCount
    (half, nineTenths) = (times[0], times[1])
    all = (simulation.now - start).milliseconds
    violation = simulation.violation
  }

  public var line: String {
    func text(_ time: UInt64?) -> String { time.map { "\($0)" } ?? "-" }
    return "leaves=\(leaves) places=\(slots) sent=\(sent) delivered=\(delivered) failed=\(failed)"
      + " half=\(text(half)) ninetenths=\(text(nineTenths)) all=\(all)"
  }
}
