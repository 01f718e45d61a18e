import Node
import Primitives
import Session
import SessionStories
import Testing

@testable import Simulator

/// A line of machines, each with one application on one endpoint.
private final class Line {
  let simulation: Simulation
  var sessions: [SessionHandle] = []

  init(_ models: [WireModel]) throws {
    simulation = Simulation(.line(models))
    // The machines start at different times, and all run after ten seconds.
    simulation.run(until: simulation.now + .seconds(10))
    for machine in simulation.machines.indices {
      let node = try #require(simulation.machines[machine].node)
      try node.advertise(Service(endpoint: 1, type: Array("chat".utf8)), now: simulation.now)
      sessions.append(try node.sessions.open(1, SessionRules(onlySealed: false), now: simulation.now))
    }
  }

  func address(_ machine: Int) -> MemberAddress {
    MemberAddress(node: simulation.machines[machine].key.id, endpoint: 1)
  }

  /// Runs the simulation for `span`. The application of every machine accepts all invitations.
  func run(_ span: TimeSpan) {
    let end = simulation.now + span
    while simulation.now < end, simulation.violation == nil {
      simulation.run(until: simulation.now + .milliseconds(10))
      for (machine, _, event) in simulation.sessionEvents {
        guard case .invited(let invitation) = event, let node = simulation.machines[machine].node else { continue }
        try? node.sessions.accept(invitation.handle, into: sessions[machine], now: simulation.now)
        simulation.touched(machine)
      }
      simulation.sessionEvents.removeAll { if case .invited = $0.event { true } else { false } }
    }
  }

  func invite(_ to: Int, by machine: Int) throws {
    let node = try #require(simulation.machines[machine].node)
    _ = try node.sessions.invite(address(to), into: sessions[machine], now: simulation.now)
    simulation.touched(machine)
  }

  func connected(_ machine: Int) -> Int {
    simulation.machines[machine].node?.sessions.members(of: sessions[machine]).filter { $0.state == .connected }.count
      ?? 0
  }
}

@Suite struct SessionsInNetworksTests {
  @Test func `sessions in random networks agree on their members after the faults`() {
    var connected = 0
    for seed in 1...24 as ClosedRange<UInt64> {
      guard let story = SessionStory(Options(seed: seed)) else { continue }
      #expect(story.play() == nil, "seed \(seed)")
      connected += story.connectedCount
    }
    #expect(connected > 50)
  }

  @Test(arguments: StoryRegression.networks)
  func `networks in which a session once failed do not fail again`(_ regression: StoryRegression) throws {
    let story = try #require(SessionStory(Options(seed: regression.seed)))
    #expect(story.play() == nil, "\(regression.name), seed \(regression.seed)")
  }

  @Test(arguments: StoryRegression.steps)
  func `scenarios in which a session once failed do not fail again`(_ regression: StoryRegression) {
    let story = Story(regression.seed)
    #expect(story.play() == nil, "\(regression.name), seed \(regression.seed)\n\(story.report())")
  }

  @Test func `services and sessions work over relays and all bearers`() throws {
    let line = try Line([.ethernet, .wifi, .bluetoothLE])
    line.run(.seconds(20))
    let seen = line.simulation.sessionEvents.filter { if case .serviceFound = $0.event { true } else { false } }
    #expect(seen.count == 12)
    try line.invite(3, by: 0)
    line.run(.seconds(3))
    try line.invite(1, by: 3)
    try line.invite(2, by: 0)
    line.run(.seconds(5))
    for machine in 0..<4 { #expect(line.connected(machine) == 3) }
    let node = try #require(line.simulation.machines[0].node)
    _ = try node.sendInSession([1, 2, 3], line.sessions[0], now: line.simulation.now)
    line.simulation.touched(0)
    line.run(.seconds(2))
    for machine in 1..<4 {
      #expect(
        line.simulation.sessionEvents.contains {
          $0.machine == machine && $0.event == .message(line.sessions[machine], from: line.address(0), [1, 2, 3])
        })
    }
    #expect(line.simulation.violation == nil)
  }

  @Test func `a member that restarts is away at once, and returns when it is invited`() throws {
    let line = try Line([.ethernet, .ethernet])
    line.run(.seconds(10))
    try line.invite(2, by: 0)
    line.run(.seconds(2))
    #expect(line.connected(0) == 1)
    line.simulation.crash(2, nil)
    line.simulation.start(2)
    line.run(.seconds(8))
    #expect(line.connected(0) == 0)
    let node = try #require(line.simulation.machines[2].node)
    try node.advertise(Service(endpoint: 1, type: Array("chat".utf8)), now: line.simulation.now)
    line.sessions[2] = try node.sessions.open(1, SessionRules(onlySealed: false), now: line.simulation.now)
    try line.invite(2, by: 0)
    line.run(.seconds(3))
    #expect(line.connected(0) == 1 && line.connected(2) == 1)
    #expect(line.simulation.violation == nil)
  }
}
