import Glibc
import Mesh
import Primitives
import Testing

@testable import Simulator

/// A ring with chords: four links a node.
private func network(_ count: Int) -> NetworkPlan {
  var random = SeededRandom(seed: UInt64(count))
  var plan = NetworkPlan(relays: [Bool](repeating: true, count: count), wires: [])
  var known: Set<[Int]> = []
  func wire(_ one: Int, _ other: Int) {
    if one == other || !known.insert([min(one, other), max(one, other)]).inserted { return }
    plan.wires.append(.init(one, other, .ethernet))
  }
  for number in 0..<count { wire(number, (number + 1) % count) }
  while plan.wires.count < count * 4 && count > 8 {
    wire(Int(random.below(UInt64(count))), Int(random.below(UInt64(count))))
  }
  return plan
}

/// How many nodes: CAUSEWAY_SCALE, else 16. Where the build is optimised, 128 take a quarter of a minute, 256 two.
private var size: Int { getenv("CAUSEWAY_SCALE").flatMap { Int(String(cString: $0)) } ?? 16 }

/// Printed, not checked: control traffic of an idle mesh, and its convergence time.
@Test func whatAMeshSaysAtRest() { printRest("mesh", network(size)) }

/// The same for a hall, where everybody could reach everybody.
@Test func whatAHallSaysAtRest() {
  printRest("hall", .hall(relays: [Bool](repeating: true, count: min(size, Limits.linksMax))))
}

private func printRest(_ name: String, _ plan: NetworkPlan) {
  let count = plan.relays.count
  let simulation = Simulation(plan)
  let start = simulation.now
  func isWhole() -> Bool {
    simulation.machines.allSatisfy { $0.found.count == count - 1 }
  }
  while !isWhole() && simulation.violation == nil && simulation.now < start + .seconds(120) {
    simulation.run(until: simulation.now + .milliseconds(100))
  }
  let together = (simulation.now - start).milliseconds
  func links() -> [Int] {
    simulation.machines.map { machine in
      (0..<Limits.linksMax).count { machine.node?.link($0).state == .up }
    }
  }
  func sent() -> UInt64 {
    simulation.machines.reduce(0) { sum, machine in
      (0..<Limits.linksMax).reduce(sum) { $0 + (machine.node?.link($1).bytesOut ?? 0) }
    }
  }
  simulation.run(until: simulation.now + .seconds(90))
  let before = sent()
  // The time in which every node renews all its advertisements once.
  simulation.run(until: simulation.now + .seconds(200))
  let bytes = (sent() - before) * 60 / 200 / UInt64(count)
  let ends = links()
  print(
    "\(name) of \(count) nodes: \(ends.reduce(0, +) / 2) links, \(ends.min() ?? 0) to \(ends.max() ?? 0) a node, "
      + "whole after \(together) ms, \(bytes) bytes of control a node a minute, "
      + "of these \(bytes * UInt64(count) / UInt64(max(ends.reduce(0, +), 1))) on each link's direction"
  )
  #expect(isWhole() && simulation.violation == nil)
}
