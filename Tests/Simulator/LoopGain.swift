import Channel
import Primitives

/// Whether the loop of costs that follow load, load that follows routes, and routes that follow costs comes to rest.
///
/// Some machines always have more to send, over saturated wires. The loop gain is the ratio of cost changes between the
/// last and the first of several equal spans. At 1 or more the costs never come to rest.
public struct LoopGain: Sendable {
  public let name: String
  /// The number of cost changes of all machines' links in each of several equal spans.
  public let changes: [Int]
  public let span: TimeSpan
  /// The first violation, or nil.
  public let violation: String?

  /// The changes of the last span in percent of those in the first.
  public var percent: Int { changes[changes.count - 1] * 100 / max(changes[0], 1) }

  public var line: String {
    "\(name): \(changes.map(String.init).joined(separator: ", ")) changes of costs in each \(span.milliseconds / 1000) s, "
      + "loop gain \(percent) %"
  }

  /// Two paths of two wires each. Waiting data is delayed by six times its waiting time.
  public static func ofLoadedDelays() -> LoopGain {
    LoopGain(
      "two ways whose delay grows with load", diamond(.bluetoothLE.delayed(byLoad: 5)), from: [0], spans: 2,
      of: .seconds(60))
  }

  /// The same with wires ten times slower than is usual for their bearer.
  public static func ofSlowWays() -> LoopGain {
    var slow = WireModel.bluetoothLE
    slow.bytesPerSecond = (12_000, 12_000)
    return LoopGain("two ways slower than usual", diamond(slow), from: [0], spans: 3, of: .seconds(600))
  }

  /// A broadcast domain where a third of the machines send much, and where delays grow with load.
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

  /// Each sender sends to the machine with the mirrored number: the first to the last, the second to the last but one.
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
        for (place, ends) in directions.enumerated() {
          guard let cost = simulation.cost(from: ends.0, to: ends.1) else { continue }
          if costs[place] != 0, costs[place] != cost { changes += 1 }
          costs[place] = cost
        }
      }
      return changes
    }
    violation = simulation.violation
  }
}

extension Simulation {
  /// Sends as much as the node accepts.
  fileprivate func fill(_ sender: Int, _ receiver: Int) {
    while machines[sender].node?.canSend(byteCount: 16_384, to: machines[receiver].key.id, lane: .bulk) == true {
      if !send(sender, receiver, .bulk, 16_000) { return }
    }
  }

  /// The cost that a machine advertises for its link with a neighbour, or nil without a link.
  fileprivate func cost(from one: Int, to other: Int) -> UInt16? {
    machines[one].node?.carrier(to: machines[other].key.id)?.cost
  }
}
