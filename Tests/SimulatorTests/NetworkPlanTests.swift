import Primitives
import Testing

@testable import Simulator

private func plan(_ seed: UInt64) -> NetworkPlan {
  var random = SeededRandom(seed: seed)
  return .random(Options(seed: seed), &random)
}

private let hallSeeds = (0..<400).map { Options.hallsEvery * $0 + Options.hallsEvery - 1 }

@Test func `a node between two halls is a relay`() {
  var between = 0
  for seed in hallSeeds {
    let plan = plan(seed)
    let inside = Set(plan.wires.filter { $0.domain != 0 }.flatMap { [$0.ends.0, $0.ends.1] })
    let links = plan.wires.reduce(into: [Int: Int]()) { counts, wire in
      for end in [wire.ends.0, wire.ends.1] where !inside.contains(end) { counts[end, default: 0] += 1 }
    }
    between += links.count
    #expect(links.allSatisfy { plan.relays[$0.key] || $0.value == 1 }, "seed \(seed)")
  }
  #expect(between > 100)
}

@Test func `a large hall loses half of its machines at once`() {
  let sizes = hallSeeds.map { Options(seed: $0) }.filter { $0.nodeCount > 48 }
  #expect(sizes.count == 400 * Int(Options.hallsEvery) / Int(Options.largeHallsEvery))
  #expect(sizes.allSatisfy { $0.nodeCount <= Options.largestHall && $0.faults.contains(.hallLeaves) })
}
