import Channel
import Node
import Primitives
import Testing

@testable import Simulator

/// The simulation of boxes and leaves that all discover each other over Bluetooth LE. Each radio has seven slots for
/// connections.
private func room(boxes: Int, leaves: Int) -> Simulation {
  var plan = NetworkPlan(relays: (0..<boxes + leaves).map { $0 < boxes }, wires: [])
  plan.addRoom(Array(0..<boxes + leaves))
  plan.bluetoothSlots = 7
  return Simulation(plan)
}

extension Simulation {
  /// The number of parked links of a machine. A parked link keeps its slot, but has no connection.
  fileprivate func parked(at machine: Int) -> Int {
    (0..<Limits.linksMax).count { machines[machine].node?.link($0).state == .parked }
  }

  /// Sends a short message from one machine to another. Returns the time until the message is delivered, or nil.
  fileprivate func timeOfLine(from: Int, to: Int) -> TimeSpan? {
    let before = ledger.deliveredCount
    guard send(from, to, .interactive, 40) else { return nil }
    let start = now
    while ledger.deliveredCount == before {
      if violation != nil || now - start > .seconds(60) { return nil }
      run(until: now + .milliseconds(10))
    }
    return now - start
  }

  fileprivate func changes(during span: TimeSpan) -> Int {
    let before = machines.map(\.key.signCount).reduce(0, +)
    run(until: now + span)
    return machines.map(\.key.signCount).reduce(0, +) - before
  }
}

@Test(arguments: [(1, 16), (2, 15)])
func `sixteen leaves around a box with seven slots exchange messages`(_ boxes: Int, _ leaves: Int) throws {
  let simulation = room(boxes: boxes, leaves: leaves)
  let all = Array(0..<boxes + leaves)
  let whole = try #require(simulation.time(until: .seconds(30)) { simulation.isWhole(all) })
  simulation.run(until: simulation.now + .seconds(10))
  #expect(simulation.isWhole(all))
  // Leaves link only with boxes, and so occupy no Bluetooth slots of other leaves.
  #expect(all.dropFirst(boxes).allSatisfy { leaf in simulation.neighbours(of: leaf).allSatisfy { $0 < boxes } })
  #expect(all.prefix(boxes).allSatisfy { simulation.neighbours(of: $0).count <= 7 })
  var slowest = TimeSpan(nanoseconds: 0)
  for from in all.dropFirst(boxes) {
    for to in all.dropFirst(boxes) where to != from {
      let time = try #require(simulation.timeOfLine(from: from, to: to), "\(from) to \(to)")
      slowest = max(slowest, time)
    }
  }
  #expect(slowest <= .seconds(3))
  print("\(leaves) leaves, \(boxes) boxes: whole after \(whole.milliseconds) ms, a line in \(slowest.milliseconds) ms")
  #expect(simulation.slotsTaken <= 7 && simulation.violation == nil)
}

@Test func `a room at rest stays connected and sends only renewals`() {
  let simulation = room(boxes: 1, leaves: 16)
  simulation.run(until: simulation.now + .seconds(60))
  let found = simulation.machines.map(\.found)
  // All 17 nodes renew their two advertisements once in 200 s.
  #expect(simulation.changes(during: .seconds(200)) <= 2 * 17)
  #expect(simulation.isWhole(Array(0..<17)) && simulation.machines.map(\.found) == found)
  #expect(simulation.parked(at: 0) == 11 && simulation.violation == nil)
}

@Test func `no leaf starves while all leaves send`() throws {
  let simulation = room(boxes: 1, leaves: 16)
  simulation.run(until: simulation.now + .seconds(30))
  // Each leaf sends one message a second to the next leaf.
  var read = [Int](repeating: 0, count: 17)
  var longest = [TimeSpan](repeating: TimeSpan(nanoseconds: 0), count: 17)
  var last = [Instant](repeating: simulation.now, count: 17)
  for tick in 0..<600 {
    for leaf in 1...16 where tick % 10 == leaf % 10 { _ = simulation.send(leaf, leaf % 16 + 1, .interactive, 40) }
    simulation.run(until: simulation.now + .milliseconds(100))
    for leaf in 1...16 where simulation.machines[leaf].bytesRead > read[leaf] {
      longest[leaf] = max(longest[leaf], simulation.now - last[leaf])
      (read[leaf], last[leaf]) = (simulation.machines[leaf].bytesRead, simulation.now)
    }
  }
  let waited = longest.max().map { $0.milliseconds } ?? 0
  print("16 leaves talk all the time at seven slots: the longest silence \(waited) ms")
  #expect(waited <= 30_000 && simulation.violation == nil)
  simulation.run(until: simulation.now + .seconds(30))
  #expect(simulation.isWhole(Array(0..<17)) && simulation.ledger.failedCount == 0)
}

@Test func `a parked leaf that crashes is lost as a peer, and returns`() throws {
  let simulation = room(boxes: 1, leaves: 16)
  simulation.run(until: simulation.now + .seconds(60))
  let leaf = try #require(
    (1..<17).first { simulation.neighbours(of: $0).isEmpty })
  simulation.crash(leaf, nil)
  let others = Array(0..<17).filter { $0 != leaf }
  let missed = try #require(
    simulation.time(until: .seconds(160)) { others.allSatisfy { !simulation.machines[$0].found.contains(leaf) } })
  simulation.start(leaf)
  let back = try #require(simulation.time(until: .seconds(30)) { simulation.isWhole(Array(0..<17)) })
  print("a parked leaf left: missed after \(missed.milliseconds) ms, back after \(back.milliseconds) ms")
  #expect(simulation.violation == nil)
}

@Test func `a parked leaf that restarts becomes a peer again`() throws {
  let simulation = room(boxes: 1, leaves: 16)
  simulation.run(until: simulation.now + .seconds(60))
  let leaf = try #require((1..<17).first { simulation.neighbours(of: $0).isEmpty })
  simulation.crash(leaf, nil)
  simulation.start(leaf)
  let back = try #require(simulation.time(until: .seconds(30)) { simulation.isWhole(Array(0..<17)) })
  #expect(simulation.timeOfLine(from: leaf, to: leaf % 16 + 1) ?? .seconds(60) <= .seconds(5))
  print("a parked leaf restarted: whole after \(back.milliseconds) ms")
  #expect(simulation.violation == nil)
}

@Test func `leaves of a box that is gone find the other box`() throws {
  let simulation = room(boxes: 2, leaves: 10)
  simulation.run(until: simulation.now + .seconds(60))
  simulation.crash(1, nil)
  let left = [0] + Array(2..<12)
  let whole = try #require(
    simulation.time(until: .seconds(160)) {
      simulation.isWhole(left) && left.allSatisfy { !simulation.machines[$0].found.contains(1) }
    })
  print("one of two boxes gone: whole after \(whole.milliseconds) ms")
  #expect(simulation.violation == nil)
}

@Test func `leaves without a box link with each other`() {
  let simulation = room(boxes: 0, leaves: 7)
  simulation.run(until: simulation.now + .seconds(20))
  #expect((0..<7).allSatisfy { simulation.neighbours(of: $0).count == 6 })
}

@Test func `leaves give up their links to each other when a box appears`() throws {
  let simulation = room(boxes: 1, leaves: 6)
  simulation.machines[0].isOut = true
  simulation.run(until: simulation.now + .seconds(20))
  #expect((1..<7).allSatisfy { simulation.neighbours(of: $0).count == 5 })
  simulation.machines[0].isOut = false
  simulation.start(0)
  _ = try #require(
    simulation.time(until: .seconds(90)) { (1..<7).allSatisfy { simulation.neighbours(of: $0) == [0] } })
  #expect(simulation.isWhole(Array(0..<7)) && simulation.violation == nil)
}
