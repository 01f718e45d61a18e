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

/// How often any node changed the cost of a link, in each of `spans`, while the first machine always has more for the last.
private func costChanges(_ plan: NetworkPlan, spans: [TimeSpan]) -> [Int] {
  let simulation = Simulation(plan)
  simulation.run(until: simulation.now + .seconds(10))
  let last = plan.relays.count - 1
  let receiver = simulation.machines[last].key.id
  var costs: [UInt16] = []
  return spans.map { span in
    var changes = 0
    let end = simulation.now + span
    while simulation.now < end {
      while simulation.machines[0].node?.canSend(byteCount: 16_384, to: receiver, lane: .bulk) == true {
        if !simulation.send(0, last, .bulk, 16_000) { break }
      }
      simulation.run(until: simulation.now + .milliseconds(200))
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

@Test func costsDoNotFollowADelayThatGrowsWithLoad() {
  let changes = costChanges(diamond(.bluetoothLE.delayed(byLoad: 5)), spans: [.seconds(60), .seconds(60)])
  print("two ways whose delay is six times that of their load: cost changes by minute \(changes)")
  #expect(changes == [0, 0])
}

/// The loop gain: how many changes of costs follow for each change of the ten minutes before. At 1 or more the costs
/// never rest.
@Test func costsOfTwoSlowWaysComeToRest() {
  var slow = WireModel.bluetoothLE
  slow.bytesPerSecond = (12_000, 12_000)
  let changes = costChanges(diamond(slow), spans: [.seconds(600), .seconds(600), .seconds(600)])
  let gain = changes[2] * 100 / max(changes[0], 1)
  print("two ways ten times slower than usual: cost changes in ten minutes \(changes), loop gain \(gain) %")
  #expect(changes[0] > 0 && gain < 100)
}
