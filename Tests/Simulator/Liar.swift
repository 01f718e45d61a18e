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
}

/// What the others noticed of a liar, in milliseconds.
public struct LiarReport: Sendable {
  public let lie: Lie
  /// What hops add to each bound.
  public let slack: TimeSpan
  /// Until a newcomer was everybody's peer.
  public var newcomer: UInt64 = 0
  /// Until the others' messages had arrived.
  public var delivery: UInt64 = 0
  /// Until all was as before, after the liar had left. Leaves that first wait for another relay are not counted.
  public var after: UInt64 = 0
}

extension Simulation {
  /// Bounds without the time that hops take, in both cases from the start of a process.
  static let newcomerMax = TimeSpan.seconds(5)
  static let liarGoneMax = TimeSpan.seconds(5)
  private static let restBefore = TimeSpan.seconds(15)
  private static let lieInterval = TimeSpan.milliseconds(10)
  private static let liesAtOnce = 10
  private static let inventedMax = 250
  /// Nodes in the subtree of a liar that are its neighbours, and those below each of them.
  private static let branches = 60
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
    let slack = Self.hopTime * UInt64(convergence.diameter + 2)
    var report = LiarReport(lie: lie, slack: slack)
    let before = homes.map { machines[$0].found }
    let nearBefore = near(host)
    let leafLinksBefore = leafLinks
    let guestsFirst = machines.count
    let liar = addGuest(first == second ? [first] : [first, second])
    trace.note(now, "liar \(liar) next to \(first) and \(second): \(lie)")
    machines[liar].mischief.listsInvented = lie == .subtree
    observer.tablesAreFull = lie == .subtree
    start(liar)
    run(until: now + .seconds(8))
    liarAtWork = (liar, lie)
    if lie == .age { machines[liar].mischief.raisesAges = true }
    plan(.lie, after: Self.lieInterval)
    run(until: now + .seconds(3))

    let newcomer = addGuest([host])
    trace.note(now, "newcomer \(newcomer) next to \(host)")
    start(newcomer)
    // Some may be near by a way through the liar only, which is cut when it is found out.
    let expected = near(host).intersection(nearBefore).union([host])
    report.newcomer = until(Self.newcomerMax, slack, "the newcomer is not everybody's peer beside \(lie)") { [self] in
      machines[newcomer].found.isSuperset(of: expected)
        && expected.allSatisfy { machines[$0].found.contains(newcomer) }
    }
    let ways = referenceByStatements(of: machines.indices)
    for (place, home) in homes.enumerated() {
      for other in before[place].subtracting(machines[home].found).sorted() {
        // The way through the liar may be the cheapest, and longer than frames go.
        if let way = ways.way(from: home, to: other), way.hops > Int(Limits.hopsMax) { continue }
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
    liarAtWork = nil
    // Leaves that linked with each other over Bluetooth have given that up for the liar, a relay, and wait for one again.
    let search = leafLinksBefore.isSubset(of: leafLinks) ? TimeSpan(nanoseconds: 0) : Self.leafMax + Self.returnMax
    for guest in guestsFirst..<machines.count { crash(guest, nil, isPowerCut: false) }
    let after = until(Self.liarGoneMax, slack + search, "not as before after \(lie)") { [self] in
      whatIsMissing() == nil && homes.map { machines[$0].found } == before
    }
    if search == TimeSpan(nanoseconds: 0) { report.after = after }
    liarReport = report
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

  /// The liar's next frames on each of its links.
  func lieAgain() {
    guard let (liar, lie) = liarAtWork, let node = machines[liar].node else { return }
    plan(.lie, after: Self.lieInterval)
    for (slot, stream) in machines[liar].streams.enumerated() {
      guard let stream, node.link(slot).state == .up else { continue }
      let side = side(of: stream, liar, slot)
      if streams[stream][from: side].bytesBelow > Self.bytesBelowMax { continue }
      inject(lies(lie, of: machines[liar].key.id), stream, side)
    }
  }

  private func lies(_ lie: Lie, of liar: NodeID) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<Self.liesAtOnce {
      lieCount += 1
      switch lie {
      case .age: break
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
    (0..<min(room, Self.branches)).map { link(to: inventedIdentity($0).id) }
  }

  private func nextOfSubtree(below liar: NodeID) -> [UInt8] {
    let count = Self.branches * (1 + Self.leavesOfBranch)
    let (round, number) = lieCount.quotientAndRemainder(dividingBy: count)
    let neighbours: [NodeID]
    if number < Self.branches {
      let first = Self.branches + number * Self.leavesOfBranch
      neighbours = [liar] + (first..<first + Self.leavesOfBranch).map { inventedIdentity($0).id }
    } else {
      neighbours = [inventedIdentity((number - Self.branches) / Self.leavesOfBranch).id]
    }
    let identity = inventedIdentity(number)
    // Renewed every six seconds only: what is verified are new nodes, until the table is full.
    let sequence = UInt64(round / 20 + 1)
    return frame(
      .advertisement, ttl: 16, from: identity.id,
      advertisement(
        of: identity, .topology, sequence: sequence, lifetimeSeconds: 3600,
        body: topologyBody(neighbours.map(link))))
  }

  private func link(to node: NodeID) -> Neighbour {
    Neighbour(node: node, cost: 10, payloadBytesMax: 16_640, bearer: .ethernet)
  }

  private func inventedIdentity(_ number: Int) -> Identity { Identity(1 << 40 | UInt64(number)) }

  private func invented(isForged: Bool) -> [UInt8] {
    let identity = inventedIdentity(lieCount % Self.inventedMax)
    var payload = advertisement(
      of: identity, .topology, sequence: UInt64(lieCount / Self.inventedMax + 1), lifetimeSeconds: 3600,
      body: topologyBody([]))
    if isForged { payload[payload.count - 1] ^= 1 }
    return frame(.advertisement, ttl: 16, from: identity.id, payload)
  }
}
