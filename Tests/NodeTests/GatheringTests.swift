import Primitives
import TestSupport
import Testing

@testable import Node

/// A node in a broadcast domain of 30 nodes, three seconds after finding all other nodes. `dialled` has the four nodes
/// dialled by this node.
private func hall() -> (bench: Bench, dialled: [Int]) {
  let bench = Bench(20)
  for person in 0..<30 where person != 20 {
    bench.handle(
      .candidateFound(FoundCandidate(UInt32(person), .ethernet, domain: 3, hint: bench.id(person).high)))
  }
  bench.pass(.seconds(3))
  let dialled = bench.takeCommands().compactMap { if case .dial(let handle) = $0 { Int(handle) } else { nil } }
  return (bench, dialled)
}

@Test func `in a large hall links that come up together are advertised together`() {
  let (bench, dialled) = hall()
  let before = bench.signCount
  for person in dialled {
    #expect(bench.signCount == before)
    _ = bench.neighbour(person, dialled: UInt32(person))
    bench.pass(.milliseconds(300))
  }
  #expect(dialled.count == 4 && bench.signCount == before + 1)
}

@Test func `in a large hall a new route waits three seconds for others`() {
  let (bench, dialled) = hall()
  let before = bench.signCount
  _ = bench.neighbour(dialled[0], dialled: UInt32(dialled[0]))
  bench.pass(.milliseconds(2_900))
  #expect(bench.signCount == before)
  bench.pass(.milliseconds(100))
  #expect(bench.signCount == before + 1)
}

@Test func `in a large hall a new route does not wait for a failed dial`() {
  let (bench, dialled) = hall()
  let before = bench.signCount
  for person in dialled.dropFirst() { bench.handle(.dialFailed(UInt32(person))) }
  _ = bench.neighbour(dialled[0], dialled: UInt32(dialled[0]))
  bench.pass(.milliseconds(100))
  #expect(bench.signCount == before + 1)
}

@Test func `in a large hall new routes are advertised every three seconds`() {
  let (bench, dialled) = hall()
  for person in dialled { _ = bench.neighbour(person, dialled: UInt32(person)) }
  bench.pass(.milliseconds(500))
  let before = bench.signCount
  for person in 30..<34 {
    _ = bench.neighbour(person)
    bench.pass(.milliseconds(500))
  }
  #expect(bench.signCount == before)
  bench.pass(.milliseconds(500))
  #expect(bench.signCount == before + 1)
}

@Test func `in a large hall a loss is advertised at once`() {
  let (bench, dialled) = hall()
  let slots = dialled.map { bench.neighbour($0, dialled: UInt32($0)) }
  bench.pass(.seconds(5))
  let before = bench.signCount
  bench.handle(.linkClosed(slots[0]))
  bench.pass(.milliseconds(100))
  #expect(bench.signCount == before + 1)
}
