import Frame
import Link
import Node
import Primitives
import TestSupport

/// The attack of a hostile relay. The relay is a member of the mesh with a proven key, and attacks in one way all the
/// time.
public enum Lie: String, CaseIterable, Sendable {
  /// Sends 1,000 advertisements a second with wrong signatures.
  case forgery
  /// Forwards all advertisements with an age close to their expiry.
  case age
  /// Sends 3,000 frames a second from 48 invented sources, each to one destination.
  case flows
  /// Sends 1,000 advertisements a second of 250 invented nodes, with valid signatures.
  case invention
  /// As `invention`, but with 300 invented nodes that the hostile relay's own advertisement makes reachable. A node's
  /// table holds fewer.
  case subtree
  /// Lets 60 invented neighbours begin sealed sessions with the victims all the time. Each handshake stops half way.
  case handshakes
  /// Has 60 nodes behind the hostile relay. Each keeps a channel to every victim in use.
  case channels
  /// Founds a session and sends 15 of its member tables a second, each with 300 new valid signatures.
  case tables
  /// Uses 12 nodes: the hostile relay and 11 nodes behind it. Each of these nodes keeps four invitations of an hour at
  /// one application.
  case invitations

  private static let floods: [Lie] = [.forgery, .age, .flows, .invention, .subtree]
  private static let claims: [Lie] = [.handshakes, .channels, .tables, .invitations]

  /// The attack in a seed's run, or nil. Every tenth seed has a flood, and every twentieth a claim on slots or work.
  static func of(_ seed: UInt64) -> Lie? {
    if seed % 10 == 6 { return floods[Int(seed / 10 % UInt64(floods.count))] }
    return seed % 20 == 12 ? claims[Int(seed / 20 % UInt64(claims.count))] : nil
  }

  /// Whether the attack claims table slots or work of its victims, which are neighbours of the hostile relay or further
  /// away.
  var isClaim: Bool { Self.claims.contains(self) }

  /// The number of nodes that have a link only with the hostile relay.
  var followers: Int {
    switch self {
    case .channels: 60
    case .invitations: 11
    case .forgery, .age, .flows, .invention, .subtree, .handshakes, .tables: 0
    }
  }

  var isOfSessions: Bool { self == .tables || self == .invitations }

  /// Whether the hostile relay's own advertisement lists invented neighbours.
  var listsInvented: Bool { self == .subtree || self == .handshakes }
}

/// The measured effects of a hostile relay on the other machines. Times are in milliseconds.
public struct LiarReport: Sendable {
  public let lie: Lie
  /// The time that is added to each bound for the hops of the network and for decisions of applications.
  public let slack: TimeSpan
  /// The time until a newcomer was a peer of all machines near it. In an attack that claims slots, the newcomer also
  /// needed a slot of the claimed kind. A slot of a claimed kind is an answer over a sealed session, or membership in a
  /// session of applications.
  public var newcomer: UInt64 = 0
  /// The time until the messages that the honest machines sent each other had arrived.
  public var delivery: UInt64 = 0
  /// The time from the departure of the hostile relay until routes and peers were as before the attack. Zero if
  /// Bluetooth leaves first had to wait for another relay, because that wait has another bound.
  public var after: UInt64 = 0
  /// The maximum number of signatures that a machine verified per second of the attack.
  public var verified: UInt64 = 0
}

extension Simulation {
  /// The bounds for `newcomer` and `after` of the report, without `slack`. Each starts when the newcomer starts or the
  /// hostile relay leaves.
  static let newcomerMax = TimeSpan.seconds(5)
  static let liarGoneMax = TimeSpan.seconds(5)
  /// The limit of signatures that a machine verifies per second. For one link 150 signatures are allowed, and a burst
  /// is added to this number; an attack lasts at least four seconds. The rest of the limit is for the signatures of the
  /// newcomer and of renewed advertisements.
  static let verifiedMax: UInt64 = 200
  /// The maximum time in which two applications decide on each other's certificate, in sequence.
  private static let decisionMax = TimeSpan.seconds(4)
  private static let restBefore = TimeSpan.seconds(15)
  static let lieInterval = TimeSpan.milliseconds(10)
  private static let liesAtOnce = 10
  private static let inventedMax = 250
  /// The number of neighbours in the invented subtree, and the number of nodes below each of them.
  static let branches = 60
  private static let leavesOfBranch = 4
  private static let flows: UInt64 = 48
  private static let bytesBelowMax = 200_000

  /// Adds a hostile relay to a complete network, and a newcomer after three seconds. All other machines send messages.
  /// After that, the hostile relay and the newcomer leave.
  func endureLiar(_ lie: Lie) {
    // The wire that failed last may have a dead link that its ends have not detected. This wait keeps its loss apart
    // from the effects of the attack.
    run(until: now + Self.restBefore)
    if violation != nil { return }
    let homes = network.relays.indices.filter { machines[$0].node != nil }
    // A newcomer behind a machine that does not relay would have no route to others.
    guard let first = homes.randomElement(using: &random),
      let host = homes.filter({ network.relays[$0] }).randomElement(using: &random)
    else { return }
    // The hostile relay gets wires to two machines that are peers already, because it must not connect separate parts
    // of the network.
    let second = machines[first].found.sorted().randomElement(using: &random) ?? first
    let before = homes.map { machines[$0].found }
    let nearBefore = near(host)
    let leafLinksBefore = leafLinks
    let guestsFirst = machines.count
    // The victims are the neighbour of the hostile relay and machines behind that neighbour. The relay has one wire, so
    // no other machine's route leads through it.
    let victims = lie.isClaim ? victims(near: host) : []
    let hosts = victims.first.map { [$0] } ?? (first == second ? [first] : [first, second])
    let slack =
      Self.hopTime * UInt64(convergence.diameter + 2) + (options.asksApplications ? Self.decisionMax : .milliseconds(0))
    var report = LiarReport(lie: lie, slack: slack)
    let liar = addGuest(hosts)
    trace.note(now, "hostile relay \(liar) next to \(hosts): \(lie), victims \(victims)")
    let followers = (0..<lie.followers).map { _ in addGuest([liar]) }
    observer.tablesAreFull = lie == .subtree
    claim = Claim(
      machines: liar..<machines.count, victims: victims, invented: lie == .handshakes ? Self.branches : 0)
    for key in claim.keys { numbers[key.id] = liar }
    for guest in [liar] + followers { start(guest) }
    machines[liar].mischief.listsInvented = lie.listsInvented
    run(until: now + .seconds(8))
    if lie.isOfSessions { openSessions(lie, liar) }
    liarAtWork = (liar, lie)
    if lie == .age { machines[liar].mischief.raisesAges = true }
    plan(.lie, after: Self.lieInterval)
    let lying = (since: now, verified: machines.map(\.key.verifyCount))
    run(until: now + .seconds(3))

    let newcomer = addGuest([host])
    trace.note(now, "newcomer \(newcomer) next to \(host)")
    start(newcomer)
    // Some machines may be near only through the hostile relay, whose neighbours close its link on detection of the
    // attack. A newcomer that has one hop more than the host may be too far from others.
    let routes = referenceByStatements(of: machines.indices)
    let expected = near(host).intersection(nearBefore).union([host]).filter { machine in
      if machine == host { return true }
      if let hops = routes.hops(from: machine, to: host), hops >= Int(Limits.hopsMax) { return false }
      return !mayEvict(host, from: machine, by: routes, lie, liar)
    }
    report.newcomer = until(Self.newcomerMax, slack, "the newcomer is not a peer of all nodes during the attack \(lie)")
    { [self] in
      machines[newcomer].found.isSuperset(of: expected)
        && expected.allSatisfy { machines[$0].found.contains(newcomer) } && isServed(newcomer, beside: lie)
    }
    let ways = referenceByStatements(of: machines.indices)
    for (index, home) in homes.enumerated() {
      for other in before[index].subtracting(machines[home].found).sorted() {
        // Without the closed links of the hostile relay, the way may have more hops than a frame can travel.
        if let hops = ways.hops(from: home, to: other), hops > Int(Limits.hopsMax) { continue }
        if mayEvict(other, from: home, by: ways, lie, liar) { continue }
        fail("machine \(home) has lost its peer \(other) during the attack \(lie)")
      }
    }
    if violation != nil { return }
    if lie == .channels {
      // A victim may have evicted an idle channel. Its peer discovers that with the first messages, which then fail.
      _ = sendToAll()
      run(until: now + deliveryMax)
      if violation != nil { return }
    }
    let delivered = ledger.deliveredCount
    let asked = sendToAll()
    report.delivery = until(deliveryMax, slack, "messages do not arrive during the attack \(lie)") { [self] in
      ledger.deliveredCount - delivered >= asked
    }
    if violation != nil { return }
    report.verified = verifiedPerSecond(lying)
    if lie == .tables, report.verified > Self.verifiedMax {
      return fail("a machine verified \(report.verified) signatures per second during the attack \(lie)")
    }
    liarAtWork = nil
    claim = Claim()
    // Bluetooth leaves closed their links with each other when the hostile relay gave them a route. When the hostile
    // relay leaves, the leaves wait for a relay before linking again.
    let search = leafLinksBefore.isSubset(of: leafLinks) ? TimeSpan(nanoseconds: 0) : Self.leafMax + Self.returnMax
    for guest in guestsFirst..<machines.count { crash(guest, nil, isPowerCut: false) }
    let after = until(Self.liarGoneMax, slack + search, "the network has not recovered from the attack \(lie)") {
      [self] in
      whatIsMissing() == nil && homes.map { machines[$0].found } == before
    }
    if search == TimeSpan(nanoseconds: 0) { report.after = after }
    liarReport = report
  }

  /// Whether `home` may evict `other`, and every node behind `other`, during the attack. A full table evicts nodes of
  /// the largest subtree, in this case the subtree of the hostile relay. Honest nodes that `home` reaches through the
  /// relay may be among the evicted nodes.
  private func mayEvict(_ other: Int, from home: Int, by routes: Reference, _ lie: Lie, _ liar: Int) -> Bool {
    lie == .subtree && routes.leads(from: home, to: other, through: liar)
  }

  /// The maximum number of signatures that a machine of the network verified per second of the attack.
  private func verifiedPerSecond(_ lying: (since: Instant, verified: [Int])) -> UInt64 {
    let most = network.relays.indices.map { machines[$0].key.verifyCount - lying.verified[$0] }.max() ?? 0
    return UInt64(most) * 1000 / max((now - lying.since).milliseconds, 1)
  }

  /// The victims of a claim: one machine that a newcomer next to `host` reaches and, if that victim relays, up to three
  /// of its peers.
  private func victims(near host: Int) -> [Int] {
    let choice = near(host).union([host]).filter { network.relays.indices.contains($0) }.sorted()
    guard let first = choice.randomElement(using: &random) else { return [] }
    if !network.relays[first] { return [first] }
    return [first] + choice.filter { $0 != first && machines[first].found.contains($0) }.prefix(3)
  }

  /// Whether the newcomer has the slots that the attack claims. True for attacks that claim no slots.
  private func isServed(_ newcomer: Int, beside lie: Lie) -> Bool {
    switch lie {
    case .handshakes, .channels: hasAnswers(newcomer)
    case .tables, .invitations: isInSession(newcomer, beside: lie)
    case .forgery, .age, .flows, .invention, .subtree: true
    }
  }

  /// Runs until the condition holds, and returns the time in milliseconds. Fails if the time exceeds `most` plus
  /// `slack`.
  private func until(_ most: TimeSpan, _ slack: TimeSpan, _ otherwise: String, _ holds: () -> Bool) -> UInt64 {
    let start = now
    while violation == nil, !holds() {
      if now > start + most + slack { fail("after \((now - start).milliseconds) ms: \(otherwise)") }
      run(until: now + .milliseconds(50))
    }
    return (now - start).milliseconds
  }

  /// The peers of a machine that its neighbours can reach too: their distance leaves one of the `Limits.hopsMax` hops
  /// of a frame.
  private func near(_ host: Int) -> Set<Int> {
    Set((machines[host].node?.peers ?? []).filter { $0.hops < Limits.hopsMax - 1 }.map { number(of: $0.id) })
  }

  /// The Bluetooth wires of the network that carry a link with a leaf.
  private var leafLinks: Set<Int> {
    let carrying = machines.flatMap { machine in machine.streams.compactMap { $0.map { streams[$0].wire } } }
    return Set(
      carrying.filter { wire in
        let ends = [wires[wire].ends.0, wires[wire].ends.1]
        return wires[wire].model.bearer == .bluetoothLE && ends.allSatisfy(network.relays.indices.contains)
          && ends.contains { !network.relays[$0] }
      })
  }

  /// Adds a machine with wires to `hosts`. The added machine has a new key and is off at first.
  private func addGuest(_ hosts: [Int]) -> Int {
    let number = machines.count
    machines.append(
      Machine(
        number, key: keys(options.seed, 500 + number), relays: true, encryption: .optional, options,
        epoch: random.below(1000) << 32, journalMemory: nil))
    numbers[machines[number].key.id] = number
    for host in hosts { wires.append(Wire(ends: (host, number), model: .ethernet, announcesID: true)) }
    return number
  }

  /// Runs the next step of the attack.
  func lieAgain() {
    guard let (liar, lie) = liarAtWork, machines[liar].node != nil else { return }
    plan(.lie, after: Self.lieInterval)
    lieTicks += 1
    switch lie {
    case .forgery, .age, .flows, .invention, .subtree, .handshakes: flood(liar, lie)
    case .channels: if lieTicks % 100 == 1 { keepChannels() }
    case .tables: if lieTicks % 7 == 1 { sendTable(liar) }
    case .invitations: if lieTicks % 100 == 1 { keepInvitations() }
    }
  }

  /// Sends the next frames of the attack over each link of the hostile relay.
  private func flood(_ liar: Int, _ lie: Lie) {
    guard let node = machines[liar].node else { return }
    for (slot, stream) in machines[liar].streams.enumerated() {
      guard let stream, node.link(slot).state == .up else { continue }
      let side = side(of: stream, liar, slot)
      if streams[stream][from: side].bytesBelow > Self.bytesBelowMax { continue }
      inject(lie == .handshakes ? halfHandshakes(of: liar) : lies(lie, of: machines[liar].key.id), stream, side)
    }
  }

  private func lies(_ lie: Lie, of liar: NodeID) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<Self.liesAtOnce {
      lieCount += 1
      switch lie {
      case .age, .handshakes, .channels, .tables, .invitations: break
      case .forgery: bytes += invented(isForged: true)
      case .invention: bytes += invented(isForged: false)
      case .subtree: bytes += nextOfSubtree(below: liar)
      case .flows:
        for pair in 0..<3 as Range<UInt64> {
          let flow = (UInt64(lieCount) * 3 + pair) % Self.flows
          bytes += frame(
            .segment, ttl: 16, priority: .bulk, to: machines[Int(flow) % network.relays.count].key.id,
            from: NodeID(high: flow + 1, low: 1), identifier: UInt64(lieCount) * 3 + pair,
            [UInt8](repeating: 1, count: 1200))
        }
      }
    }
    return bytes
  }

  /// At most `room` invented neighbours, for the advertisement of the hostile relay.
  func branches(room: Int) -> [Neighbour] {
    (0..<min(room, Self.branches)).map { link(to: Self.inventedIdentity($0).id) }
  }

  private func nextOfSubtree(below liar: NodeID) -> [UInt8] {
    let count = Self.branches * (1 + Self.leavesOfBranch)
    let (round, number) = lieCount.quotientAndRemainder(dividingBy: count)
    let neighbours: [NodeID]
    if number < Self.branches {
      let first = Self.branches + number * Self.leavesOfBranch
      neighbours = [liar] + (first..<first + Self.leavesOfBranch).map { Self.inventedIdentity($0).id }
    } else {
      neighbours = [Self.inventedIdentity((number - Self.branches) / Self.leavesOfBranch).id]
    }
    let identity = Self.inventedIdentity(number)
    // The sequence number rises only once in six seconds. Until the table is full, the victims therefore verify new
    // nodes instead of renewals.
    let sequence = UInt64(round / 20 + 1)
    return frame(
      .advertisement, ttl: 16, from: identity.id,
      advertisement(
        of: identity, .topology, sequence: sequence, lifetimeSeconds: 3600,
        body: topologyBody(neighbours.map(link))))
  }

  func link(to node: NodeID) -> Neighbour {
    Neighbour(node: node, cost: 10, payloadBytesMax: 16_640, bearer: .ethernet)
  }

  static func inventedIdentity(_ number: Int) -> Identity { Identity(1 << 40 | UInt64(number)) }

  private func invented(isForged: Bool) -> [UInt8] {
    let identity = Self.inventedIdentity(lieCount % Self.inventedMax)
    var payload = advertisement(
      of: identity, .topology, sequence: UInt64(lieCount / Self.inventedMax + 1), lifetimeSeconds: 3600,
      body: topologyBody([]))
    if isForged { payload[payload.count - 1] ^= 1 }
    return frame(.advertisement, ttl: 16, from: identity.id, payload)
  }
}
