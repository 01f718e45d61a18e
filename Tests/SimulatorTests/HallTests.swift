import Channel
import Mesh
import Primitives
import Testing

@testable import Simulator

extension Simulation {
  /// The neighbours with which a machine has a link that is up.
  func neighbours(of machine: Int) -> [Int] {
    machines[machine].streams.indices.compactMap { slot -> Int? in
      guard machines[machine].streams[slot] != nil, let link = machines[machine].node?.link(slot), link.state == .up
      else { return nil }
      return number(of: link.peer)
    }.sorted()
  }

  /// Whether each machine of a group is a peer of all others.
  func isWhole(_ group: [Int]) -> Bool {
    group.allSatisfy { one in group.allSatisfy { $0 == one || machines[one].found.contains($0) } }
  }

  func hops(from one: Int, to other: Int) -> Int {
    Int(machines[one].node?.route(to: machines[other].key.id)?.hops ?? .max)
  }

  var longestWay: Int {
    machines.indices.flatMap { one in
      machines.indices.filter { $0 != one }.map { hops(from: one, to: $0) }
    }.max() ?? 0
  }

  /// The time until the condition holds, or nil if `limit` passes or a violation occurs first.
  func time(until limit: TimeSpan, _ condition: () -> Bool) -> TimeSpan? {
    let start = now
    while !condition() {
      if violation != nil || now - start > limit { return nil }
      run(until: now + .milliseconds(100))
    }
    return now - start
  }
}

/// A time in which nodes close all surplus links.
private let rest = TimeSpan.seconds(60)

private func expectRest(_ simulation: Simulation, of count: Int) {
  let links = (0..<count).map { simulation.neighbours(of: $0).count }
  #expect(simulation.isWhole(Array(0..<count)))
  #expect(links.allSatisfy { (2...8).contains($0) }, "\(links)")
  #expect(simulation.longestWay <= 8)
  #expect(simulation.violation == nil)
}

@Test func `thirty-two relays in one hall have few links, also after half of them left and returned`() throws {
  let simulation = Simulation(.hall(relays: [Bool](repeating: true, count: 32)))
  let whole = try #require(simulation.time(until: .seconds(30)) { simulation.isWhole(Array(0..<32)) })
  simulation.run(until: simulation.now + rest)
  expectRest(simulation, of: 32)
  print("32 relays in a hall: whole after \(whole.milliseconds) ms, longest way \(simulation.longestWay) hops")
  let before = (0..<32).map(simulation.neighbours)
  for machine in 0..<16 { simulation.crash(machine, nil) }
  let stayed = Array(16..<32)
  let alone = try #require(
    simulation.time(until: .seconds(60)) {
      simulation.isWhole(stayed) && stayed.allSatisfy { simulation.machines[$0].found.isDisjoint(with: 0..<16) }
    })
  for machine in 0..<16 { simulation.start(machine) }
  let back = try #require(simulation.time(until: .seconds(60)) { simulation.isWhole(Array(0..<32)) })
  simulation.run(until: simulation.now + rest)
  expectRest(simulation, of: 32)
  #expect((0..<32).map(simulation.neighbours) == before)
  print("half of 32 left: the others whole after \(alone.milliseconds) ms; came back: \(back.milliseconds) ms")
}

@Test func `each leaf of a hall has two links and reaches all nodes`() {
  let simulation = Simulation(.hall(relays: (0..<28).map { $0 < 4 }))
  simulation.run(until: simulation.now + .seconds(10) + rest)
  #expect(simulation.isWhole(Array(0..<28)) && simulation.violation == nil)
  let links = (0..<28).map(simulation.neighbours)
  #expect((4..<28).allSatisfy { links[$0].count == 2 && links[$0].allSatisfy { $0 < 4 } })
  #expect((0..<4).allSatisfy { links[$0].count { $0 < 4 } == 3 })
}

@Test func `leaves in a hall without relays all link with each other`() {
  let simulation = Simulation(.hall(relays: [Bool](repeating: false, count: 8)))
  simulation.run(until: simulation.now + .seconds(10) + rest)
  #expect((0..<8).allSatisfy { simulation.neighbours(of: $0).count == 7 })
}

@Test func `a leaf whose relays are gone finds others, and returns later`() throws {
  let simulation = Simulation(.hall(relays: (0..<12).map { $0 < 6 }))
  simulation.run(until: simulation.now + .seconds(30))
  let relays = simulation.neighbours(of: 11)
  for relay in relays { simulation.crash(relay, nil) }
  let left = Array(0..<12).filter { !relays.contains($0) }
  let found = try #require(
    simulation.time(until: .seconds(40)) {
      let links = simulation.neighbours(of: 11)
      return links.count == 2 && !links.contains(where: relays.contains) && simulation.isWhole(left)
    })
  print("a leaf lost both relays: others after \(found.milliseconds) ms")
  for relay in relays { simulation.start(relay) }
  simulation.run(until: simulation.now + rest)
  #expect(simulation.neighbours(of: 11) == relays && simulation.isWhole(Array(0..<12)))
}

@Test func `two nodes with much traffic get a direct link, and give it up afterwards`() throws {
  let simulation = Simulation(.hall(relays: [Bool](repeating: true, count: 16)))
  simulation.run(until: simulation.now + rest)
  let other = try #require((1..<16).first { simulation.hops(from: 0, to: $0) > 1 })
  let receiver = simulation.machines[other].key.id
  var sent = 0
  let end = simulation.now + .seconds(15)
  while simulation.now < end {
    if simulation.machines[0].node?.canSend(byteCount: 16_384, to: receiver, lane: .bulk) == true, sent < 100 {
      if simulation.send(0, other, .bulk, 16_000) { sent += 1 }
    }
    simulation.run(until: simulation.now + .milliseconds(50))
  }
  #expect(simulation.neighbours(of: 0).contains(other) && simulation.hops(from: 0, to: other) == 1)
  simulation.run(until: simulation.now + .seconds(100))
  #expect(!simulation.neighbours(of: 0).contains(other))
  #expect(simulation.bytesRead(by: other) > sent * 16_000 && simulation.violation == nil)
}
