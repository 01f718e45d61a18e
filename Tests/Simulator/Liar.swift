import Frame
import Link
import Node
import Primitives
import TestSupport

/// A hostile member of the mesh: a relay with a proven key that tells its neighbours one kind of lie, all the time.
public enum Lie: String, CaseIterable, Sendable {
  /// 1,000 advertisements a second with wrong signatures.
  case forgery
  /// All advertisements nearly expired.
  case age
  /// 3,000 frames a second of 48 invented pairs of source and destination.
  case flows
  /// 1,000 advertisements a second of 250 invented nodes, rightly signed.
  case invention
  /// The same of 300 invented nodes that the liar's own advertisement makes reachable: more than a table holds.
  case subtree
  /// 60 invented neighbours of the liar begin sealed sessions all the time, and stop half way.
  case handshakes
  /// 60 nodes behind the liar, each of which keeps a channel to every victim in use.
  case channels
  /// 15 session tables a second of a session that the liar founded, each with 300 new signatures, all of them right.
  case tables
  /// 12 nodes, the liar among them, keep four invitations of an hour each at one application.
  case invitations

  private static let floods: [Lie] = [.forgery, .age, .flows, .invention, .subtree]
  private static let claims: [Lie] = [.handshakes, .channels, .tables, .invitations]

  /// The lie of a seed: a flood in every tenth one, and in every twentieth a claim on places and on work.
  static func of(_ seed: UInt64) -> Lie? {
    if seed % 10 == 6 { return floods[Int(seed / 10 % UInt64(floods.count))] }
    return seed % 20 == 12 ? claims[Int(seed / 20 % UInt64(claims.count))] : nil
  }

  /// It claims places, or work, of machines that are its neighbours or further away.
  var isClaim: Bool { Self.claims.contains(self) }

  /// Nodes of the liar that are linked with it alone.
  var followers: Int {
    switch self {
    case .channels: 60
    case .invitations: 11
    case .forgery, .age, .flows, .invention, .subtree, .handshakes, .tables: 0
    }
  }

  var isOfSessions: Bool { self == .tables || self == .invitations }

  /// Its own advertisement lists invented neighbours.
  var listsInvented: Bool { self == .subtree || self == .handshakes }
}

/// What the others noticed of a liar, in milliseconds.
public struct LiarReport: Sendable {
  public let lie: Lie
  /// What hops add to each bound.
  public let slack: TimeSpan
  /// Until a newcomer was everybody's peer and, beside a claim, had what the liar claims for itself: an answer over a
  /// sealed session, or a place in a session of applications.
  public var newcomer: UInt64 = 0
  /// Until the others' messages had arrived.
  public var delivery: UInt64 = 0
  /// Until all was as before, after the liar had left. Leaves that first wait for another relay are not counted.
  public var after: UInt64 = 0
  /// Signatures that a machine verified in each second of the lie, at most.
  public var verified: UInt64 = 0
}

extension Simulation {
  /// Bounds without the time that hops take, in both cases from the start of a process.
  static let newcomerMax = TimeSpan.seconds(5)
  static let liarGoneMax = TimeSpan.seconds(5)
  /// Signatures that a machine may verify in a second: 150 for one link, and what it may do at once beside them, over the
  /// four seconds that a lie lasts at least; those of the newcomer; and those that others renew meanwhile.
  static let verifiedMax: UInt64 = 200
  /// How long the applications of both ends take at most to decide on a certificate, one after the other.
  private static let decisionMax = TimeSpan.seconds(4)
  private static let restBefore = TimeSpan.seconds(15)
  static let lieInterval = TimeSpan.milliseconds(10)
  private static let liesAtOnce = 10
  private static let inventedMax = 250
  /// Nodes in the subtree of a liar that are its neighbours, and those below each of them.
  static let branches = 60
  private static let leavesOfBranch = 4
  private static let flows: UInt64 = 48
  private static let bytesBelowMax = 200_000

  /// A liar comes to a whole network, then a newcomer; the others send messages; both leave.
  func endureLiar(_ lie: Lie) {
    // A link over the wire that failed last may be dead, and that not noticed yet: it is not the liar's doing.
    run(until: now + Self.restBefore)
    if violation != nil { return }
    let homes = network.relays.indices.filter { machines[$0].node != nil }
    // Behind a machine that does not relay a newcomer has no way to others.
    guard let first = homes.randomElement(using: &random),
      let host = homes.filter({ network.relays[$0] }).randomElement(using: &random)
    else { return }
    // It makes no way between parts of the network that had none.
    let second = machines[first].found.sorted().randomElement(using: &random) ?? first
    let before = homes.map { machines[$0].found }
    let nearBefore = near(host)
    let leafLinksBefore = leafLinks
    let guestsFirst = machines.count
    // The liar claims places at its neighbour, and at others behind it. No way of others leads through the liar.
    let victims = lie.isClaim ? victims(near: host) : []
    let hosts = victims.first.map { [$0] } ?? (first == second ? [first] : [first, second])
    let slack =
      Self.hopTime * UInt64(convergence.diameter + 2) + (options.asksApplications ? Self.decisionMax : .milliseconds(0))
    var report = LiarReport(lie: lie, slack: slack)
    let liar = addGuest(hosts)
    trace.note(now, "liar \(liar) next to \(hosts): \(lie), victims \(victims)")
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
    // Some may be near by a way through the liar only, which is cut when it is found out.
    let expected = near(host).intersection(nearBefore).union([host])
    report.newcomer = until(Self.newcomerMax, slack, "the newcomer is not everybody's peer beside \(lie)") { [self] in
      machines[newcomer].found.isSuperset(of: expected)
        && expected.allSatisfy { machines[$0].found.contains(newcomer) } && isServed(newcomer, beside: lie)
    }
    let ways = referenceByStatements(of: machines.indices)
    for (place, home) in homes.enumerated() {
      for other in before[place].subtracting(machines[home].found).sorted() {
        // The way through the liar may be the cheapest, and longer than frames go.
        if let way = ways.way(from: home, to: other), way.hops > Int(Limits.hopsMax) { continue }
        // In a full table it is one of the nodes behind the liar, which are the largest part.
        if lie == .subtree, ways.leads(from: home, to: other, through: liar) { continue }
        fail("machine \(home) has lost its peer \(other) beside \(lie)")
      }
    }
    if violation != nil { return }
    let delivered = ledger.deliveredCount
    let asked = sendToAll()
    report.delivery = until(Self.deliveryMax, slack, "messages do not arrive beside \(lie)") { [self] in
      ledger.deliveredCount - delivered >= asked
    }
    if violation != nil { return }
    report.verified = verifiedPerSecond(lying)
    if lie == .tables, report.verified > Self.verifiedMax {
      return fail("a machine verified \(report.verified) signatures a second beside \(lie)")
    }
    liarAtWork = nil
    claim = Claim()
    // Leaves that linked with each other over Bluetooth have given that up for the liar, a relay, and wait for one again.
    let search = leafLinksBefore.isSubset(of: leafLinks) ? TimeSpan(nanoseconds: 0) : Self.leafMax + Self.returnMax
    for guest in guestsFirst..<machines.count { crash(guest, nil, isPowerCut: false) }
    let after = until(Self.liarGoneMax, slack + search, "not as before after \(lie)") { [self] in
      whatIsMissing() == nil && homes.map { machines[$0].found } == before
    }
    if search == TimeSpan(nanoseconds: 0) { report.after = after }
    liarReport = report
  }

  /// The most signatures that a machine of the network verified in a second of the lie.
  private func verifiedPerSecond(_ lying: (since: Instant, verified: [Int])) -> UInt64 {
    let most = network.relays.indices.map { machines[$0].key.verifyCount - lying.verified[$0] }.max() ?? 0
    return UInt64(most) * 1000 / max((now - lying.since).milliseconds, 1)
  }

  /// A machine that a newcomer next to `host` reaches, and, where that one relays, up to three others.
  private func victims(near host: Int) -> [Int] {
    let choice = near(host).union([host]).filter { network.relays.indices.contains($0) }.sorted()
    guard let first = choice.randomElement(using: &random) else { return [] }
    if !network.relays[first] { return [first] }
    return [first] + choice.filter { $0 != first && machines[first].found.contains($0) }.prefix(3)
  }

  /// Beside a claim: whether the newcomer has what it asks the victims for.
  private func isServed(_ newcomer: Int, beside lie: Lie) -> Bool {
    switch lie {
    case .handshakes, .channels: hasAnswers(newcomer)
    case .tables, .invitations: isInSession(newcomer, beside: lie)
    case .forgery, .age, .flows, .invention, .subtree: true
    }
  }

  /// Runs until something holds; returns the milliseconds that it took.
  private func until(_ most: TimeSpan, _ slack: TimeSpan, _ otherwise: String, _ holds: () -> Bool) -> UInt64 {
    let start = now
    while violation == nil, !holds() {
      if now > start + most + slack { fail("after \((now - start).milliseconds) ms: \(otherwise)") }
      run(until: now + .milliseconds(50))
    }
    return (now - start).milliseconds
  }

  /// The peers of a machine that are peers of a neighbour of it, too: frames go no further than `Limits.hopsMax` links.
  private func near(_ host: Int) -> Set<Int> {
    Set((machines[host].node?.peers ?? []).filter { $0.hops < Limits.hopsMax - 1 }.map { number(of: $0.id) })
  }

  /// The wires over which a leaf is linked over Bluetooth.
  private var leafLinks: Set<Int> {
    let carrying = machines.flatMap { machine in machine.streams.compactMap { $0.map { streams[$0].wire } } }
    return Set(
      carrying.filter { wire in
        let ends = [wires[wire].ends.0, wires[wire].ends.1]
        return wires[wire].model.bearer == .bluetoothLE && ends.allSatisfy(network.relays.indices.contains)
          && ends.contains { !network.relays[$0] }
      })
  }

  /// A machine that was not there before, next to these, off.
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

  /// The next act of the liar.
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

  /// The liar's next frames on each of its links.
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

  /// The invented neighbours of a liar.
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
    // Renewed every six seconds only: what is verified are new nodes, until the table is full.
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
