import Channel
import Primitives

/// Measures whether link costs come to rest under load. Costs follow load, load follows routes, and routes follow
/// costs, so these quantities form a loop.
///
/// Some machines always have more to send, over saturated wires. The loop gain is the number of cost changes in the
/// last of several equal spans, divided by the number in the first span. At a gain of 1 or more the costs never come to
/// rest.
public struct LoopGain: Sendable {
  public let name: String
  /// The number of cost changes in each span, over the links of all machines.
  public let changes: [Int]
  public let span: TimeSpan
  /// The first violation, or nil.
  public let violation: String?

  /// The number of cost changes in the last span, in percent of those in the first span.
  public var percent: Int { changes[changes.count - 1] * 100 / max(changes[0], 1) }

  public var line: String {
    "\(name): \(changes.map(String.init).joined(separator: ", ")) cost changes in each \(span.milliseconds / 1000) s, "
      + "loop gain \(percent) %"
  }

  /// Two parallel paths of two wires each. Data that waits for a wire is delayed by five times its waiting time in
  /// addition.
  public static func ofLoadedDelays() -> LoopGain {
    LoopGain(
      "two routes whose delay grows with load", diamond(.bluetoothLE.delayed(byLoad: 5)), from: [0], spans: 2,
      of: .seconds(60))
  }

  /// The same network with wires that are ten times slower than usual for their bearer.
  public static func ofSlowWays() -> LoopGain {
    var slow = WireModel.bluetoothLE
    slow.bytesPerSecond = (12_000, 12_000)
    return LoopGain("two routes slower than usual", diamond(slow), from: [0], spans: 3, of: .seconds(600))
  }

  /// A broadcast domain in which a third of the machines always send, and where delays grow with load.
  public static func ofHall() -> LoopGain {
    var slow = WireModel.wifi
    slow.bytesPerSecond = (50_000, 50_000)
    return LoopGain(
      "a hall of 16 whose delays grow with load",
      .hall(relays: [Bool](repeating: true, count: 16), slow.delayed(byLoad: 5)), from: Array(0..<5), spans: 3,
      of: .seconds(600))
  }

  private static func diamond(_ model: WireModel) -> NetworkPlan {
    NetworkPlan(
      relays: [true, true, true, true],
      wires: [.init(0, 1, model), .init(0, 2, model), .init(1, 3, model), .init(2, 3, model)])
  }

  /// Sends from each machine of `senders` to the machine with the mirrored number: from the first to the last, from the
  /// second to the last but one.
  private init(_ name: String, _ plan: NetworkPlan, from senders: [Int], spans: Int, of span: TimeSpan) {
    self.name = name
    self.span = span
    let simulation = Simulation(plan)
    simulation.run(until: simulation.now + .seconds(10))
    let directions = plan.wires.flatMap { [$0.ends, ($0.ends.1, $0.ends.0)] }
    var costs = [UInt16](repeating: 0, count: directions.count)
    changes = (0..<spans).map { _ in
      var changes = 0
      let end = simulation.now + span
      while simulation.now < end, simulation.violation == nil {
        for sender in senders { simulation.fill(sender, plan.relays.count - 1 - sender) }
        simulation.run(until: simulation.now + .milliseconds(200))
        for (index, ends) in directions.enumerated() {
          guard let cost = simulation.cost(from: ends.0, to: ends.1) else { continue }
          if costs[index] != 0, costs[index] != cost { changes += 1 }
          costs[index] = cost
        }
      }
      return changes
    }
    violation = simulation.violation
  }
}

extension Simulation {
  /// Sends messages until the sender's node accepts no more.
  fileprivate func fill(_ sender: Int, _ receiver: Int) {
    while machines[sender].node?.canSend(byteCount: 16_384, to: machines[receiver].key.id, lane: .bulk) == true {
      if !send(sender, receiver, .bulk, 16_000) { return }
    }
  }

  /// The cost that a machine advertises for its link with a neighbour, or nil if it has no such link.
  fileprivate func cost(from one: Int, to other: Int) -> UInt16? {
    machines[one].node?.carrier(to: machines[other].key.id)?.cost
  }
}
