import Node
import Primitives
import Session
import SessionSupport
import TestSupport

/// Runs applications with sessions in a random network. While the faults last, the applications invite each other,
/// connect to each other's addresses, accept, leave and send messages.
///
/// `checkSessions` checks the sessions after the faults. `Story` in SessionStories runs scenarios of this kind without
/// a network.
public final class SessionStory {
  /// The maximum number of machines that run an application.
  static let machinesMax = 8

  let simulation: Simulation
  private var random: SeededRandom
  /// The open session of each machine, with the incarnation of the node that opened it.
  private var open: [Int: (life: Int, handle: SessionHandle)] = [:]
  /// The time at which each open invitation or introduction ends, by machine, incarnation and handle.
  private var standing: [String: Instant] = [:]
  /// The incarnations of machines that have connected to an address. For an introduction their nodes invite and accept
  /// by themselves, without an event for the application.
  private var introducers: Set<String> = []
  /// Checks the bytes of all streams between members.
  public let witness = StreamWitness(
    pool: Int(SessionLimits.streamBytesMax) - SessionLimits.streamsMax * Int(SessionLimits.streamWindowSure))
  /// The number of times that two members connected.
  public private(set) var connectedCount = 0

  /// Returns nil for a network in which some machines may not communicate: encryption preferences differ, or
  /// applications reject certificates.
  public init?(_ options: Options, isVerbose: Bool = false) {
    if options.sealing == .mixed || options.asksApplications { return nil }
    simulation = Simulation(options, isVerbose: isVerbose)
    simulation.holdsMessages = true
    random = SeededRandom(seed: options.seed ^ 0x5e55)
  }

  /// Runs the scenario with all checks. Returns the first violation, or nil.
  public func play() -> String? {
    while simulation.now < simulation.faultsEnd, simulation.violation == nil {
      advance(.milliseconds(100))
      act()
    }
    simulation.heal()
    _ = simulation.untilWhole("after the faults", within: Simulation.ageMax)
    // The longest open invitation ends within this time. After that time, at least twenty quiet seconds remain in which
    // connected members must agree on one view.
    for _ in 0..<90 { advance(.seconds(1)) }
    if simulation.violation == nil { checkSessions() }
    if simulation.violation == nil { simulation.checkAcknowledged() }
    return simulation.violation
  }

  private var stage: Range<Int> { 0..<min(Self.machinesMax, simulation.network.relays.count) }

  private func node(_ machine: Int) -> Node? {
    simulation.machines[machine].frozenUntil <= simulation.now ? simulation.machines[machine].node : nil
  }

  private func session(_ machine: Int) -> SessionHandle? {
    guard let node = node(machine) else { return nil }
    if let known = open[machine], known.life == simulation.machines[machine].life { return known.handle }
    try? node.advertise(Service(endpoint: 1, type: Array("story".utf8)), now: simulation.now)
    let rules = SessionRules(onlySealed: false, membersMax: 16)
    guard let handle = try? node.sessions.open(1, rules, now: simulation.now) else { return nil }
    open[machine] = (simulation.machines[machine].life, handle)
    simulation.touched(machine)
    return handle
  }

  private func act() {
    let machine = Int(random.below(UInt64(stage.count)))
    guard let node = node(machine), let handle = session(machine) else { return }
    switch random.below(10) {
    case 0..<3:
      let to = Int(random.below(UInt64(stage.count)))
      let address = MemberAddress(node: simulation.machines[to].key.id, endpoint: 1)
      let seconds = 1 + random.below(20)
      if let invitation = try? node.sessions.invite(
        address, into: handle, timeout: .seconds(seconds), now: simulation.now)
      {
        note(machine, invitation, until: simulation.now + .seconds(seconds))
      }
    case 3:
      let to = Int(random.below(UInt64(stage.count)))
      connect(machine, handle, to: to)
      if random.chance(perThousand: 800), let theirs = session(to) { connect(to, theirs, to: machine) }
    case 4:
      if random.chance(perThousand: 300) {
        try? node.sessions.leave(handle, now: simulation.now)
        open[machine] = nil
      }
    case 5..<7: stream(machine, node, handle)
    default: _ = try? node.sendInSession([UInt8(machine)], handle, now: simulation.now)
    }
    simulation.touched(machine)
  }

  private func connect(_ machine: Int, _ session: SessionHandle, to other: Int) {
    guard let node = node(machine) else { return }
    let address = MemberAddress(node: simulation.machines[other].key.id, endpoint: 1)
    let seconds = 1 + random.below(20)
    let introduction = try? node.sessions.connect(
      address, into: session, timeout: .seconds(seconds), now: simulation.now)
    guard let introduction else { return }
    introducers.insert("\(machine)/\(simulation.machines[machine].life)")
    note(machine, introduction, until: simulation.now + .seconds(seconds))
    simulation.touched(machine)
  }

  private func incarnation(_ machine: Int) -> StreamWitness.Incarnation {
    StreamWitness.Incarnation(machine, UInt64(simulation.machines[machine].life))
  }

  private func stream(_ machine: Int, _ node: Node, _ handle: SessionHandle) {
    let members = node.sessions.members(of: handle).filter { $0.state == .connected }
    guard !members.isEmpty else { return }
    let to = members[Int(random.below(UInt64(members.count)))].address
    witness.readLate(incarnation(machine), node.sessions, &random, now: simulation.now)
    _ = witness.open(
      incarnation(machine), node.sessions, handle, to: to, total: Int(random.below(60_000)), now: simulation.now)
  }

  private func receive(_ machine: Int, _ handle: StreamHandle, _ event: StreamEvent) {
    guard let sessions = simulation.machines[machine].node?.sessions else { return }
    var sender: Int?
    if case .opened(_, let from, _, _) = event { sender = simulation.number(of: from.node) }
    witness.receive(incarnation(machine), sessions, handle, event, from: sender, &random, now: simulation.now)
    witness.wrong.map { simulation.fail($0) }
    simulation.touched(machine)
  }

  private func note(_ machine: Int, _ invitation: InvitationHandle, until deadline: Instant) {
    standing["\(machine)/\(simulation.machines[machine].life)/\(invitation.number)"] = deadline
  }

  private func advance(_ span: TimeSpan) {
    simulation.run(until: simulation.now + span)
    let events = simulation.sessionEvents
    simulation.sessionEvents = []
    for (machine, life, event) in events where life == simulation.machines[machine].life {
      switch event {
      case .invited(let invitation):
        note(machine, invitation.handle, until: invitation.deadline + SessionLimits.settleTime)
        if let node = node(machine), let handle = session(machine) {
          try? node.sessions.accept(invitation.handle, into: handle, now: simulation.now)
          simulation.touched(machine)
        }
      case .invitationEnded(let handle, _):
        if standing.removeValue(forKey: "\(machine)/\(life)/\(handle.number)") == nil,
          !introducers.contains("\(machine)/\(life)")
        {
          simulation.fail("an unknown invitation ends at machine \(machine)")
        }
      case .ended(let handle, _):
        if open[machine]?.handle == handle { open[machine] = nil }
        simulation.machines[machine].node?.sessions.discard(handle)
      case .message(let handle, let from, let data):
        simulation.machines[machine].node?.sessions.taken(data.count, of: from, in: handle, now: simulation.now)
        simulation.touched(machine)
        if data != [UInt8(truncatingIfNeeded: simulation.number(of: from.node))] {
          simulation.fail("machine \(machine) receives a message of another member")
        }
      case .member(_, _, .connected): connectedCount += 1
      case .stream(let handle, let event): receive(machine, handle, event)
      case .member, .identified, .decisionWanted, .sent, .room, .datagram, .serviceFound, .serviceChanged, .serviceLost:
        break
      }
    }
  }

  /// Text that describes every open session, for the replay of a failed seed.
  public func report() -> String {
    var lines: [String] = []
    for machine in stage {
      guard let known = open[machine], known.life == simulation.machines[machine].life,
        let sessions = simulation.machines[machine].node?.sessions
      else { continue }
      lines.append("machine \(machine), found \(simulation.machines[machine].found.sorted())")
      lines += sessions.report(known.handle, number: simulation.number)
    }
    return lines.joined(separator: "\n")
  }

  /// Checks that every invitation of a running incarnation has ended. Checks that members that are peers of each other
  /// list the same members.
  private func checkSessions() {
    witness.check { incarnation in
      simulation.machines[incarnation.node].node != nil
        && UInt64(simulation.machines[incarnation.node].life) == incarnation.life
    }
    witness.wrong.map { simulation.fail($0) }
    for key in standing.keys.sorted() {
      let parts = key.split(separator: "/").compactMap { Int($0) }
      if simulation.machines[parts[0]].life == parts[1] && simulation.machines[parts[0]].node != nil {
        return simulation.fail("an invitation never ends: \(key)")
      }
    }
    let companies = self.companies
    for machine in companies.keys.sorted() {
      guard let known = open[machine], let sessions = simulation.machines[machine].node?.sessions else { continue }
      let view = sessions.members(of: known.handle).filter { $0.state == .connected || $0.state == .paused }
      let others = stage.filter { other in
        other != machine && isMutual(machine, other) && companies[machine] == companies[other]
      }
      // A member that left cannot notify this machine while the two are not peers of each other, so such members are
      // not compared.
      let seen = view.map { simulation.number(of: $0.address.node) }.filter { isMutual(machine, $0) }.sorted()
      if seen != others { simulation.fail("machine \(machine) lists \(seen) in a session of \(others)") }
    }
  }

  /// Whether each of two machines is a peer of the other. Parts of the network may be too far apart.
  private func isMutual(_ one: Int, _ other: Int) -> Bool {
    simulation.machines[one].found.contains(other) && simulation.machines[other].found.contains(one)
  }

  /// The machines with a session. The value of each is the first machine of its group, whose members must all have one
  /// view.
  private var companies: [Int: Int] {
    var machines: [Int] = []
    var members: [(address: MemberAddress, table: SessionTable)] = []
    for machine in stage {
      guard let known = open[machine], known.life == simulation.machines[machine].life,
        let table = simulation.machines[machine].node?.sessions.table(of: known.handle)
      else { continue }
      machines.append(machine)
      members.append((MemberAddress(node: simulation.machines[machine].key.id, endpoint: 1), table))
    }
    let companies = SessionSupport.companies(of: members) { isMutual(machines[$0], machines[$1]) }
    return Dictionary(uniqueKeysWithValues: zip(machines, companies.map { machines[$0] }))
  }
}
