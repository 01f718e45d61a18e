import Frame
import Primitives
import Testing

@testable import Mesh

/// This node (0) has two neighbours: an attacker (1) that invents nodes, and an honest relay (2). Behind the relay are
/// 30 nodes (3–32). Behind the attacker are 223 nodes on two levels (33–255), so the database is full.
private struct Crowd {
  static let newcomer = 290
  static let honest = 3...32
  static let branches = 33...92
  static let leaves = 93...255
  let bench = Bench()

  init() {
    bench.link(0, to: 1)
    bench.link(1, to: 2)
    bench.state(1, ([0] + Self.branches).map { .init(number: $0) })
    stateRelay()
    for number in Self.honest { bench.state(number, [.init(number: 2)]) }
    for number in Self.branches {
      bench.state(number, ([1] + below(number)).map { .init(number: $0) })
      for leaf in below(number) { bench.state(leaf, [.init(number: number)]) }
    }
    bench.mesh.computeRoutes()
  }

  func stateRelay(listing newcomers: [Int] = [], sequence: UInt64 = 1) {
    bench.state(2, ([0] + Self.honest + newcomers).map { .init(number: $0) }, sequence: sequence)
  }

  func below(_ branch: Int) -> [Int] { Array(stride(from: branch + 60, through: Self.leaves.upperBound, by: 60)) }

  func replacement(_ newcomer: Int, keeping kept: [Int] = []) -> Mesh.Replacement? {
    let kept = kept.map { bench.id($0) }
    return bench.mesh.replacement(for: bench.id(newcomer)) { kept.contains($0) }
  }

  func take(_ replacement: Mesh.Replacement, for newcomer: Int, behind parent: Int) {
    bench.mesh.take(replacement, for: bench.id(newcomer), from: 1)
    bench.state(newcomer, [.init(number: parent)], from: 1)
  }

  /// The node that gives its record to a newcomer.
  func leaver(_ replacement: Mesh.Replacement) -> Int? {
    Bench.identities.firstIndex { $0.id == bench.mesh.node(at: replacement.leaver) }
  }
  func hasRoute(_ number: Int) -> Bool { bench.mesh.route(to: bench.id(number)) != nil }
}

@Test func `a newcomer evicts a node of the largest branch from a full database`() throws {
  let crowd = Crowd()
  crowd.stateRelay(listing: [Crowd.newcomer], sequence: 2)
  let replacement = try #require(crowd.replacement(Crowd.newcomer))
  #expect(Crowd.leaves.contains(try #require(crowd.leaver(replacement))))
  crowd.take(replacement, for: Crowd.newcomer, behind: 2)
  crowd.bench.mesh.computeRoutes()
  #expect(crowd.hasRoute(Crowd.newcomer) && Crowd.honest.allSatisfy(crowd.hasRoute))
  #expect(crowd.bench.mesh.nodeCount == Limits.nodesMax - 1)
}

@Test func `a newcomer that no node lists gets no slot`() {
  #expect(Crowd().replacement(Crowd.newcomer) == nil)
}

@Test func `a newcomer in the largest branch gets no slot while all branches are equal`() {
  let crowd = Crowd()
  // Branch 33 already has three leaves, and now also lists the newcomer.
  crowd.bench.state(33, ([1] + crowd.below(33) + [Crowd.newcomer]).map { .init(number: $0) }, sequence: 2)
  #expect(crowd.replacement(Crowd.newcomer) == nil)
}

@Test func `a newcomer that makes its branch as large as the largest gets no slot`() {
  let crowd = Crowd()
  // Branch 80 has two leaves. The largest branches have three.
  crowd.bench.state(80, ([1] + crowd.below(80) + [Crowd.newcomer]).map { .init(number: $0) }, sequence: 2)
  #expect(crowd.replacement(Crowd.newcomer) == nil)
}

@Test func `invented nodes that are advertised again and again soon change nothing`() {
  let crowd = Crowd()
  // The attacker invents thirty more nodes, each behind one branch. In each round the attacker advertises again the
  // nodes that were evicted.
  let more = Array(256...285)
  for branch in Crowd.branches {
    let below = [1] + crowd.below(branch) + more.filter { $0 % 60 == branch % 60 }
    crowd.bench.state(branch, below.map { .init(number: $0) }, sequence: 2)
  }
  var taken: [Int] = []
  for _ in 0..<5 {
    var count = 0
    for node in Array(Crowd.leaves) + more where crowd.bench.mesh.index(of: crowd.bench.id(node)) == nil {
      guard let replacement = crowd.replacement(node) else { continue }
      crowd.take(replacement, for: node, behind: Crowd.branches.first { $0 % 60 == node % 60 } ?? 0)
      crowd.bench.mesh.computeRoutes()
      count += 1
    }
    taken.append(count)
  }
  #expect(taken.last == 0, "\(taken)")
  #expect(Crowd.honest.allSatisfy(crowd.hasRoute))
}

@Test func `a new neighbour always gets a slot`() {
  let crowd = Crowd()
  crowd.bench.link(2, to: Crowd.newcomer)
  #expect(crowd.replacement(Crowd.newcomer).flatMap(crowd.leaver).map(Crowd.leaves.contains) == true)
}

@Test func `kept nodes and the nodes on the paths to them are not evicted`() {
  let crowd = Crowd()
  crowd.stateRelay(listing: [Crowd.newcomer], sequence: 2)
  let others = Crowd.honest.map { $0 } + Crowd.leaves.dropLast(2)
  #expect(crowd.replacement(Crowd.newcomer, keeping: others).flatMap(crowd.leaver).map { $0 >= 254 } == true)
  // Each branch leads to a leaf that is kept, so no node may be evicted.
  #expect(crowd.replacement(Crowd.newcomer, keeping: Crowd.honest.map { $0 } + Crowd.leaves) == nil)
}

@Test func `slots taken at the same instant are counted before routes are computed`() throws {
  let crowd = Crowd()
  let newcomers = Array(256...299)
  crowd.stateRelay(listing: Array(newcomers.prefix(33)), sequence: 2)
  for newcomer in newcomers.prefix(33) {
    crowd.take(try #require(crowd.replacement(newcomer)), for: newcomer, behind: 2)
  }
  crowd.bench.mesh.computeRoutes()
  #expect(newcomers.prefix(33).allSatisfy(crowd.hasRoute) && Crowd.honest.allSatisfy(crowd.hasRoute))
}

@Test func `a neighbour is never evicted`() {
  let crowd = Crowd()
  crowd.stateRelay(listing: [Crowd.newcomer], sequence: 2)
  for (slot, leaf) in [(2, 254), (3, 255)] { crowd.bench.link(slot, to: leaf) }
  let others = Crowd.honest.map { $0 } + Crowd.leaves.dropLast(2)
  #expect(crowd.replacement(Crowd.newcomer, keeping: others) == nil)
}
