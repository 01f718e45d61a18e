import Frame
import Glibc
import Primitives
import TestSupport
import Testing

@testable import Mesh

/// The neighbours of each node in a connected network: a ring with chords, and up to four links for each node.
private func network(_ count: Int) -> [[Int]] {
  var random = SeededRandom(seed: UInt64(count))
  var others = [[Int]](repeating: [], count: count)
  func link(_ one: Int, _ other: Int) {
    if one == other || others[one].contains(other) { return }
    others[one].append(other)
    others[other].append(one)
  }
  for number in 0..<count { link(number, (number + 1) % count) }
  while others.reduce(0, { $0 + $1.count }) < count * 8 && count > 8 {
    link(Int(random.below(UInt64(count))), Int(random.below(UInt64(count))))
  }
  return others
}

private func microseconds(_ body: () -> Void) -> Double {
  var best = Double.infinity
  for _ in 0..<20 {
    var start = timespec()
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &start)
    body()
    clock_gettime(CLOCK_MONOTONIC, &end)
    best = min(best, Double(end.tv_sec - start.tv_sec) * 1e6 + Double(end.tv_nsec - start.tv_nsec) / 1e3)
  }
  return best
}

/// Prints how the time of a route computation and the memory of the tables grow with the number of nodes. The test
/// checks nothing. The printed figures have a meaning in an optimised build only.
@Test(arguments: [16, 32, 64, 128, 256, 512, 1000].filter { $0 <= Limits.nodesMax })
func `every node of a mesh of any size has a route`(count: Int) {
  let bench = Bench()
  let pages = bench.memory.bytes.count / 4096
  bench.memory.bytes.initializeMemory(as: UInt8.self, repeating: 0xA5)
  bench.mesh = Mesh(local: bench.id(0), bench.memory.bytes)
  let others = network(count)
  for (slot, other) in others[0].enumerated() { bench.link(slot, to: other) }
  for number in 1..<count {
    bench.state(number, others[number].map { .init(number: $0) })
    bench.introduce(number)
  }
  let time = microseconds { bench.mesh.computeRoutes() }
  let touched = (0..<pages).count { page in
    (0..<4096).contains { bench.memory.bytes[page * 4096 + $0] != 0xA5 }
  }
  let links = others.reduce(0) { $0 + $1.count } / 2
  print(
    "mesh of \(count) nodes, \(links) links: routes in \(Int(time)) µs, \(touched * 4) KiB of \(pages * 4) KiB of tables touched"
  )
  #expect((1..<count).allSatisfy { bench.mesh.route(to: bench.id($0)) != nil })
}
