import Primitives

/// The traffic and work of a network that forms and then rests, without faults and messages.
public struct Rest: Sendable {
  public let nodes: Int
  /// The milliseconds until every node was a peer of every other node, or nil if that took more than `wholeMax`.
  public let wholeAfter: UInt64?
  public let links: Int
  /// The lowest and the highest number of links of a node at rest.
  public let linksPerNode: (least: Int, most: Int)
  /// The number of links on the longest route.
  public let longestWay: Int
  /// The mean number of bytes that a node sends per minute at rest. This number is measured while every node renews
  /// each advertisement once.
  public let bytesPerNodeAndMinute: UInt64
  /// The signatures that all nodes verified until the network was complete (`verifiedAtFirst`), and per minute at rest.
  public let verifiedAtFirst: Int
  public let verifiedPerMinute: Int
  /// The first violation, or nil.
  public let violation: String?

  /// A ring of nodes. With more than eight nodes, random links cross the ring, so that nodes have eight links on
  /// average.
  public static func ofMesh(_ count: Int) -> Rest {
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
    return Rest(plan)
  }

  /// A broadcast domain of relays, where every node can link with every other node.
  public static func ofHall(_ count: Int) -> Rest { Rest(.hall(relays: [Bool](repeating: true, count: count))) }

  private static let wholeMax = TimeSpan.seconds(300)
  /// The time in which nodes close surplus links after the network is complete.
  private static let settling = TimeSpan.seconds(90)
  /// The time in which every node renews each of its advertisements once.
  private static let renewal = TimeSpan.seconds(200)

  private init(_ plan: NetworkPlan) {
    let count = plan.relays.count
    let simulation = Simulation(plan)
    let start = simulation.now
    func isWhole() -> Bool { simulation.machines.allSatisfy { $0.found.count == count - 1 } }
    while !isWhole() && simulation.violation == nil && simulation.now < start + Self.wholeMax {
      simulation.run(until: simulation.now + .milliseconds(100))
    }
    nodes = count
    wholeAfter = isWhole() ? (simulation.now - start).milliseconds : nil
    verifiedAtFirst = simulation.verifyCount / count
    simulation.run(until: simulation.now + Self.settling)
    let before = (bytes: simulation.bytesOut, verified: simulation.verifyCount)
    simulation.run(until: simulation.now + Self.renewal)
    let seconds = Self.renewal.milliseconds / 1000 * UInt64(count)
    bytesPerNodeAndMinute = (simulation.bytesOut - before.bytes) * 60 / seconds
    verifiedPerMinute = (simulation.verifyCount - before.verified) * 60 / Int(seconds)
    let ends = simulation.machines.indices.map(simulation.linkCount)
    links = ends.reduce(0, +) / 2
    linksPerNode = (ends.min() ?? 0, ends.max() ?? 0)
    longestWay = simulation.longestWay
    violation = simulation.violation ?? (isWhole() ? nil : "some nodes are not peers of each other")
  }

  public var line: String {
    "\(nodes) nodes: complete after \(wholeAfter.map { "\($0) ms" } ?? "-"), \(links) links, \(linksPerNode.least) to "
      + "\(linksPerNode.most) per node, longest route \(longestWay); a node verified \(verifiedAtFirst) signatures until then; "
      + "at rest it sends \(bytesPerNodeAndMinute) bytes per minute and verifies \(verifiedPerMinute) signatures, "
      + "\(bytesPerNodeAndMinute * UInt64(nodes) / UInt64(max(2 * links, 1))) bytes per direction of a link"
  }
}

extension Simulation {
  fileprivate var verifyCount: Int { machines.reduce(0) { $0 + $1.key.verifyCount } }

  /// The number of bytes that all current links have sent.
  fileprivate var bytesOut: UInt64 {
    machines.reduce(0) { sum, machine in
      machine.streams.indices.reduce(sum) { $0 + (machine.node?.link($1).bytesOut ?? 0) }
    }
  }

  fileprivate func linkCount(of machine: Int) -> Int {
    machines[machine].streams.indices.count { machines[machine].node?.link($0).state == .up }
  }

  fileprivate var longestWay: Int {
    var longest = 0
    for machine in machines {
      for other in machines { longest = max(longest, Int(machine.node?.route(to: other.key.id)?.hops ?? 0)) }
    }
    return longest
  }
}
