import Primitives
import Testing

@testable import Mesh

@Test func `a neighbour is reachable without its link through another neighbour`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.link(1, to: 2)
  bench.state(1, [.init(number: 0), .init(number: 2)])
  bench.state(2, [.init(number: 0), .init(number: 1)])
  #expect(bench.mesh.reaches(bench.id(1), without: 0) && bench.mesh.reaches(bench.id(2), without: 1))
  #expect(bench.route(to: 1)?.hops == 1, "the routes stay as they are")
}

@Test func `a path that avoids a link may be long`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.link(1, to: 4)
  for number in 1...4 { bench.state(number, [.init(number: number - 1), .init(number: (number + 1) % 5)]) }
  #expect(bench.mesh.reaches(bench.id(1), without: 0))
}

@Test func `a neighbour with one link and no other path is unreachable without it`() {
  let bench = Bench()
  bench.link(0, to: 1)
  bench.state(1, [.init(number: 0), .init(number: 2)])
  bench.state(2, [.init(number: 1)])
  #expect(!bench.mesh.reaches(bench.id(1), without: 0))
}

@Test func `a path that avoids a link uses no leaf and no link that one end denies`() {
  for (relays, lists) in [(false, true), (true, false)] {
    let bench = Bench()
    bench.link(0, to: 1)
    bench.link(1, to: 2)
    bench.state(1, [.init(number: 0)] + (lists ? [.init(number: 2)] : []))
    bench.state(2, relays: relays, [.init(number: 0), .init(number: 1)])
    #expect(!bench.mesh.reaches(bench.id(1), without: 0))
  }
}

@Test func `a neighbour is reachable without one link over a second one`() {
  let bench = Bench()
  bench.link(0, to: 1, .ethernet)
  bench.link(1, to: 1, .bluetoothLE)
  bench.state(1, [.init(number: 0)])
  #expect(bench.mesh.reaches(bench.id(1), without: 0) && bench.mesh.reaches(bench.id(1), without: 1))
}
