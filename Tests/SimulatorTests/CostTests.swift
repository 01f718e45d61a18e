import Channel
import Primitives
import Testing

@testable import Simulator

/// Two ways of two wires each, from the first machine to the last.
private func diamond(_ model: WireModel) -> NetworkPlan {
  NetworkPlan(
    relays: [true, true, true, true],
    wires: [.init(0, 1, model), .init(0, 2, model), .init(1, 3, model), .init(2, 3, model)])
}

/// How often any node changed the cost of a link, in each of `minutes`, while the first machine always has more for the
/// last, and the last for the first.
private func costChanges(_ plan: NetworkPlan, minutes: Int) -> [Int] {
  let simulation = Simulation(plan)
  simulation.run(until: simulation.now + .seconds(10))
  let last = plan.relays.count - 1
  let ends = [(0, last), (last, 0)]
  var costs: [UInt16] = []
  return (0..<minutes).map { _ in
    var changes = 0
    for _ in 0..<6_000 {
      for (from, to) in ends {
        let receiver = simulation.machines[to].key.id
        while simulation.machines[from].node?.canSend(byteCount: 16_384, to: receiver, lane: .bulk) == true {
          if !simulation.send(from, to, .bulk, 16_000) { break }
        }
      }
      simulation.run(until: simulation.now + .milliseconds(10))
      let now = plan.wires.flatMap { wire in
        [wire.ends, (wire.ends.1, wire.ends.0)].map { one, other in
          simulation.machines[one].node?.carrier(to: simulation.machines[other].key.id)?.cost ?? 0
        }
      }
      changes += zip(costs, now).count { $0 != $1 }
      costs = now
    }
    #expect(simulation.violation == nil)
    return changes
  }
}

/// The loop gain: how many changes of costs follow from those of the minute before. At 1 or more the costs never rest.
@Test func costsDoNotFollowADelayThatGrowsWithLoad() {
  let changes = costChanges(diamond(.wifi.delayed(byLoad: 50)), minutes: 2)
  print("two ways, delay 50 times the load's: cost changes by minute \(changes), loop gain 0.00")
  #expect(changes == [0, 0])
}

@Test func costsOfTwoSlowWaysComeToRest() {
  var slow = WireModel.wifi.delayed(byLoad: 4)
  slow.bytesPerSecond = (500_000, 500_000)
  let changes = costChanges(diamond(slow), minutes: 4)
  let first = max(changes[0] + changes[1], 1), then = changes[2] + changes[3]
  print(
    "two ways, both twenty times slower than usual: cost changes by minute \(changes), "
      + "loop gain \(then / first).\(then * 10 / first % 10)")
  #expect(then < first)
}
