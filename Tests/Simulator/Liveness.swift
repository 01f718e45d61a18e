import Channel
import Frame
import Link
import Mesh
import Node
import Primitives

/// The times until the nodes agreed with the naive router of `Reference`, in milliseconds. A time is nil if the
/// measurement was not made.
public struct Convergence: Sendable {
  /// The time from the end of all faults until the network had converged.
  public var healed: UInt64?
  /// After one wire of a network at rest has failed silently: the time until the routes are correct (`rerouted`), and
  /// from then until the displayed peers are (`lost`).
  public var rerouted: UInt64?
  public var lost: UInt64?
  /// The time from the return of that wire until the network had converged.
  public var returned: UInt64?
  /// The number of links on the longest path after the recovery.
  public var diameter = 0
}

/// The checks after the end of the faults. All or part of the network is connected again, and everything must work in
/// this part.
extension Simulation {
  /// The longest pause between two dials, plus the time to detect a dead link, plus a handshake.
  static let convergenceMax = TimeSpan.seconds(60)
  /// The bound if two machines used one key. The two supersede each other's advertisements after pauses that double,
  /// until the advertisement of the later epoch expires.
  static let ageMax = TimeSpan.seconds(870)
  /// The maximum time for routes to follow a change on a path of `diameter` links. This maximum is the time to detect a
  /// dead link, plus `hopTime` for each link. `hopTime` covers the slowest wire's delay and the pause between two
  /// advertisements of a node.
  static func rerouteMax(over bearer: BearerKind, diameter: Int) -> TimeSpan {
    Liveness.unnoticedMax(over: bearer) + hopTime * UInt64(diameter)
  }
  static let hopTime = TimeSpan.milliseconds(250)
  /// A node displays an unreachable peer for 3 s longer.
  static let graceMax = TimeSpan.seconds(4)
  /// The time for the longest dial without an answer, a pause of medium length, and discovery. This maximum also
  /// includes the 2 s for which the node with the higher id defers its dial.
  static let returnMax = TimeSpan.seconds(20)
  /// The maximum number of links of a relay with other relays of one broadcast domain, at rest.
  static let hallLinksMax = 8
  /// The time for which leaves that have found relays wait before dialling each other over Bluetooth.
  static let leafMax = TimeSpan.seconds(45)
  /// The maximum time for which the departure of a parked neighbour may remain undetected. A parked neighbour has a
  /// link without a connection. The link ends after long silence, or when dials for waiting frames have failed.
  static let parkedMax = TimeSpan.seconds(130)
  private var parkedSpan: TimeSpan { network.bluetoothSlots == nil ? TimeSpan(nanoseconds: 0) : Self.parkedMax }
  /// The maximum time until the last messages are delivered.
  var deliveryMax: TimeSpan { network.bluetoothSlots == nil ? .seconds(70) : .seconds(130) }

  /// Runs the faults, the recovery, and all checks after it.
  public func runAll() {
    run(until: faultsEnd)
    heal()
    let most = faultCounts[.clone] != nil || hadForgery ? Self.ageMax : Self.convergenceMax
    convergence.healed = untilWhole("after the faults", within: most + parkedSpan)
    if violation == nil { stayWhole() }
    if violation == nil { deliverToAll() }
    if violation == nil { changeOneWire() }
    if violation == nil, let lie = options.lie { endureLiar(lie) }
    if violation == nil { checkAlarms() }
  }

  /// Whether a machine ran under an earlier epoch while the network knew a later epoch of its key.
  private var hadLaterEpoch: Bool { faultCounts[.epochLost] != nil || faultCounts[.clone] != nil }

  /// Whether a relay forwarded wrong signatures. The neighbours of a relay with wrong signatures refuse its key for one
  /// or two minutes.
  private var hadForgery: Bool { faultCounts[.alter] != nil || faultCounts[.downgrade] != nil }

  func heal() {
    isHealed = true
    trace.note(now, "heal")
    for machine in machines.indices { machines[machine].frozenUntil = .zero }
    if options.healsPartly { chooseCore() }
    for clone in machines.indices where machines[clone].number != clone { leaveOut(clone) }
    for wire in wires.indices {
      if wire < network.wires.count, network.wires[wire].isLatent, random.chance(perThousand: 500) {
        wires[wire].staysDown = true
      }
      for side in 0...1 {
        wires[wire][from: side].stalledUntil = .zero
        wires[wire][from: side].weather = Weather()
      }
      if wires[wire].staysDown {
        darken(wire, nil)
      } else {
        wires[wire].isUp = true
        announce(wire)
      }
    }
    // Ends the misbehaviour: the relay starts again and behaves correctly.
    if let villain, wasVillain { crash(villain, nil) }
    for machine in machines.indices {
      machines[machine].readsFrom = .zero
      start(machine)
      drain(machine)
    }
  }

  /// Chooses some machines and wires that stay down after the faults. The number of these machines and wires is random,
  /// and at least two machines stay up.
  private func chooseCore() {
    for machine in network.relays.indices where random.chance(perThousand: 120) {
      if machines[..<network.relays.count].count(where: { !$0.isOut }) > 2 { leaveOut(machine) }
    }
    for wire in wires.indices where random.chance(perThousand: 120) && wires[wire].domain == 0 {
      wires[wire].staysDown = true
    }
  }

  private func leaveOut(_ machine: Int) {
    crash(machine, nil)
    machines[machine].isOut = true
    for wire in wiresOf(machine) where machines[machine].number != machine { wires[wire].staysDown = true }
  }

  /// Runs until the network has converged. Returns the milliseconds until convergence, or nil if the network did not
  /// converge within `most`.
  func untilWhole(_ what: String, routesOnly: Bool = false, within most: TimeSpan) -> UInt64? {
    let start = now
    var missing: String?
    repeat {
      // After 30 s, or with more than 64 machines, one check per second is enough.
      run(until: now + .milliseconds(now - start > .seconds(30) || machines.count > 64 ? 1000 : 100))
      missing = whatIsMissing(routesOnly: routesOnly)
    } while violation == nil && missing != nil && now - start < most
    if let missing {
      fail("\((now - start).milliseconds) ms \(what): \(missing)")
      return nil
    }
    return (now - start).milliseconds
  }

  /// The first difference between the naive router and the nodes, or nil if they agree.
  func whatIsMissing(routesOnly: Bool = false) -> String? {
    let homes = network.relays.indices
    let running = homes.map { machines[$0].node != nil }
    let reference = referenceByStatements(of: homes)
    let truth = Reference(wires: wires, relays: network.relays, running: running)
    convergence.diameter = max(convergence.diameter, truth.diameter)
    for one in homes where running[one] {
      guard let node = machines[one].node else { continue }
      let peers = Dictionary(uniqueKeysWithValues: (routesOnly ? [] : node.peers).map { ($0.id, $0) })
      for other in homes where other != one {
        let way = reference.way(from: one, to: other)
        let route = node.route(to: machines[other].key.id)
        let names = "machine \(one) to \(other)"
        // Nodes of a broadcast domain choose few of the possible links, so a machine may be too far away by those.
        let isTooFar = reference.hops(from: one, to: other).map { $0 > Int(Limits.hopsMax) } ?? false
        if !isTooFar, (truth.way(from: one, to: other) != nil) != (way != nil) {
          return "\(names): \(way == nil ? "the wires" : "the advertisements") alone contain a route"
        }
        let isTold = hearsOfWays(one) || way == nil || route == nil
        if isTold, route?.cost != way?.cost || (route?.hops).map(Int.init) != way?.hops {
          return "\(names): route \(route.debugDescription), correct route \(way.debugDescription)"
        }
        if way != nil, let deadEnd = deadEnd(from: one, to: other) { return "\(names): \(deadEnd)" }
        if routesOnly { continue }
        if let wrong = wrongPeer(one, other, peers[machines[other].key.id], way) { return "\(names): \(wrong)" }
      }
    }
    return routesOnly ? nil : doubleOrMissingLink()
  }

  /// Whether the routes of the machine are kept up to date. A parked leaf is not notified of changed routes (protocol,
  /// “Parking”). The leaf knows which nodes are reachable, and the relay that parked it knows the routes.
  private func hearsOfWays(_ machine: Int) -> Bool { network.bluetoothSlots == nil || network.relays[machine] }

  /// The naive router for the latest advertisements of these machines. Machine 0 must be the first.
  func referenceByStatements(of numbers: Range<Int>) -> Reference {
    let topologies = numbers.map { machine -> FrameObserver.Topology? in
      // A node without any link cannot send an advertisement, so the last one that it sent is outdated.
      guard let node = machines[machine].node, let told = observer.topologies[machine],
        told.life == machines[machine].life,
        machines[machine].streams.indices.contains(where: { node.link($0).isStanding })
      else { return nil }
      return told
    }
    return Reference(topologies, number: number(of:))
  }

  private func wrongPeer(_ one: Int, _ other: Int, _ peer: Peer?, _ way: Reference.Way?) -> String? {
    if (peer != nil) != (way != nil) || machines[one].found.contains(other) != (way != nil) {
      return "listed as a peer \(peer != nil), reachable \(way != nil)"
    }
    guard let peer, let way else { return nil }
    let name = "machine \(other) life \(machines[other].life)"
    if Int(peer.hops) == way.hops || !hearsOfWays(one), peer.name.text == name { return nil }
    return "listed as \(peer.name.text) with \(peer.hops) hops instead of \(name)"
  }

  /// Follows a frame from node to node. The frame must arrive before its hops are used up.
  private func deadEnd(from one: Int, to other: Int) -> String? {
    var current = one
    var hops = Limits.hopsMax
    while current != other {
      guard hops > 0, let next = machines[current].node?.nextHop(to: machines[other].key.id, within: hops) else {
        return "the route ends at machine \(current) with \(hops) hops left"
      }
      current = number(of: next)
      hops -= 1
    }
    return nil
  }

  /// Checks the links between each two machines that discover each other. Two machines that discover each other have
  /// exactly one link per bearer, and both ends must use the same stream. In a broadcast domain, and over Bluetooth
  /// with a leaf, two machines may also have no link.
  private func doubleOrMissingLink() -> String? {
    for wire in wires where wire.isUp {
      let ends = [wire.ends.0, wire.ends.1]
      if ends.contains(where: { machines[$0].node == nil }) { continue }
      let up = ends.map { machine in
        machines[machine].streams.indices.compactMap { slot -> Int? in
          guard let stream = machines[machine].streams[slot] else { return nil }
          let other = wires[streams[stream].wire]
          return other.model.bearer == wire.model.bearer && other.joins(wire.ends.0, wire.ends.1)
            && machines[machine].node?.link(slot).state == .up ? stream : nil
        }
      }
      let isChosen = wire.domain != 0 || wire.model.bearer == .bluetoothLE && ends.contains { !network.relays[$0] }
      if isChosen && up[0].isEmpty && up[1].isEmpty { continue }
      if up[0].count != 1 || up[0] != up[1] {
        return "machines \(wire.ends) over \(wire.model.bearer): \(up[0].count) and \(up[1].count) links"
      }
    }
    return nil
  }

  /// Checks that a mesh at rest does not change and sends little. Each node renews its two advertisements only every
  /// 200 s.
  private func stayWhole() {
    // The link of a wire that failed last may be dead and not used by any route. After this time nodes have forgotten
    // its measured cost, and no link is in quarantine.
    run(until: now + .seconds(150))
    let found = machines.map(\.found)
    let changes = changeCount
    let signed = machines.map(\.key.signCount)
    run(until: now + .seconds(60))
    if violation != nil { return }
    // In a room, where all machines discover each other over Bluetooth LE, both ends of a parked link may just have
    // dialled. If both ends dialled, one of the two links is closed soon.
    let end = now + (network.bluetoothSlots == nil ? TimeSpan(nanoseconds: 0) : Self.hopTime * 8)
    while now < end, whatIsMissing() != nil { run(until: now + Self.hopTime) }
    if let missing = whatIsMissing() { fail("the network has changed at rest: \(missing)") }
    if let wrong = tooManyLinks() { fail(wrong) }
    // Relays send renewed advertisements to their parked leaves in sequence. A leaf that gets advertisements from
    // another relay may leave the relay at which the leaf is parked.
    let leaves = network.bluetoothSlots == nil ? 0 : network.relays.count { !$0 }
    let isChanged = leaves == 0 && changeCount != changes
    if machines.map(\.found) != found || isChanged { fail("the peers changed in a mesh at rest") }
    for machine in machines.indices where machines[machine].key.signCount - signed[machine] > 4 + leaves {
      fail(
        "machine \(machine) signed \(machines[machine].key.signCount - signed[machine]) times during a minute at rest")
    }
  }

  /// Checks that a relay at rest has few links with the other relays of its broadcast domain, however many relays there
  /// are.
  private func tooManyLinks() -> String? {
    for machine in network.relays.indices where network.relays[machine] && machines[machine].node != nil {
      var counts: [UInt32: Int] = [:]
      for case let stream? in machines[machine].streams {
        let wire = wires[streams[stream].wire]
        if wire.domain != 0, network.relays[wire.other(machine)] { counts[wire.domain, default: 0] += 1 }
      }
      if let most = counts.values.max(), most > Self.hallLinksMax {
        return "machine \(machine) has \(most) links in one hall"
      }
    }
    return nil
  }

  private func deliverToAll() {
    // A lost epoch is discovered by the first messages, which then fail. These messages fail twice if both ends send at
    // once. A refused session ends the messages that were begun on one channel, but not those that the other machine
    // began on its own channel.
    if hadLaterEpoch || hadRefusal {
      for _ in 0..<3 where violation == nil {
        _ = sendToAll()
        run(until: now + deliveryMax)
      }
      if violation != nil { return }
    }
    let failedBefore = ledger.failedCount
    let open = machines.indices.reduce(0) {
      $0 + ledger.pendingCount(life: livingLife($1))
    }
    if open > 0 { fail("\(open) sends from before the quiet time are not complete") }
    let deliveredBefore = ledger.deliveredCount
    let asked = sendToAll()
    let end = now + deliveryMax
    while violation == nil, now < end, ledger.deliveredCount - deliveredBefore < asked {
      run(until: now + .milliseconds(200))
    }
    if violation != nil { return }
    let delivered = ledger.deliveredCount - deliveredBefore
    if delivered != asked || ledger.failedCount != failedBefore {
      fail("\(delivered) of \(asked) messages were delivered in a complete network")
    }
    checkAcknowledged()
  }

  /// Checks at the end, when all messages have been read, that each message completed as delivered was read.
  func checkAcknowledged() {
    if faultCounts[.clone] == nil, let unpaid = ledger.unpaid(livingLife) {
      fail("\(unpaid) completed as delivered, but was never read")
    }
  }

  /// The incarnation of the node that runs on a machine. The incarnation is -1 if no node runs, because messages
  /// delivered to earlier incarnations are lost with them.
  private func livingLife(_ machine: Int) -> Int { machines[machine].node == nil ? -1 : machines[machine].life }

  /// Lets every machine send one message per lane to each of its peers. In a network of more than 16 machines each
  /// machine sends to three of its peers. Returns the number of accepted messages.
  func sendToAll() -> Int {
    var asked = 0
    let reference = referenceByStatements(of: machines.indices)
    for from in network.relays.indices where machines[from].node != nil {
      let all = machines[from].found.filter(network.relays.indices.contains).sorted()
      // In a large network channels between all pairs would take too much memory.
      for index in 0..<min(all.count, machines.count > 16 ? 3 : all.count) {
        let to = all[machines.count > 16 ? (from * 7 + index * 11) % all.count : index]
        // A relay that floods forwards the frames of others only in turn with its own frames. Full tables evict nodes
        // behind the relay of a large subtree (`mayEvict`).
        if let (liar, lie) = liarAtWork, lie == .flows || lie == .subtree,
          reference.leads(from: from, to: to, through: liar) || reference.leads(from: to, to: from, through: liar)
        {
          continue
        }
        // A victim divides its slots among its links. No bound holds for machines that the victim reaches over the
        // hostile relay's link.
        if liarAtWork?.lie == .channels, sharesTheLiarsLink(from, at: to) || sharesTheLiarsLink(to, at: from) {
          continue
        }
        for lane in Lane.allCases {
          let isTaken = send(from, to, lane, lane == .bulk ? 5000 : 20)
          if isTaken { asked += 1 }
          // In a network of more than 16 machines the table of channels may be full.
          if !isTaken, machines.count <= 16, agreement(from, to) != .refused {
            fail("machine \(from) refuses a message to \(to) in a complete network")
          }
        }
      }
    }
    return asked
  }

  /// Lets one wire fail silently and later brings it up again. Checks routes and peers after each change.
  private func changeOneWire() {
    let carrying = Set(machines.flatMap { machine in machine.streams.compactMap { $0.map { streams[$0].wire } } })
    let live = wires.indices.filter { wire in
      wires[wire].isUp && machines[wires[wire].ends.0].node != nil && machines[wires[wire].ends.1].node != nil
        && (wires[wire].domain == 0 || carrying.contains(wire))
    }
    if live.isEmpty { return }
    let wire = live[Int(random.below(UInt64(live.count)))]
    trace.note(now, "wire \(wire) \(wires[wire].ends) fails")
    darken(wire, nil)
    // In a broadcast domain a leaf that lost its relay may have to link with another one.
    var search = wires[wire].domain == 0 ? TimeSpan(nanoseconds: 0) : Self.returnMax
    if mayLeavesDialLate { search = Self.returnMax + Self.leafMax }
    let most = Self.rerouteMax(over: wires[wire].model.bearer, diameter: convergence.diameter) + search
    let rerouted = untilWhole("after wire \(wire) failed", routesOnly: true, within: most + parkedSpan)
    if network.bluetoothSlots == nil { convergence.rerouted = rerouted }
    if violation != nil { return }
    convergence.lost = untilWhole("after routes without wire \(wire) were found", within: Self.graceMax + search)
    if violation != nil { return }
    trace.note(now, "wire \(wire) \(wires[wire].ends) returns")
    lightAgain(wire)
    let wait = mayLeavesDialLate ? Self.leafMax : TimeSpan(nanoseconds: 0)
    convergence.returned = untilWhole("after wire \(wire) returned", within: Self.returnMax + wait)
  }

  /// Whether there are Bluetooth wires to leaves. Two leaves link over a Bluetooth wire only when no other route leads
  /// from one leaf to the other.
  private var mayLeavesDialLate: Bool {
    network.wires.contains { wire in
      wire.model.bearer == .bluetoothLE && (!network.relays[wire.ends.0] || !network.relays[wire.ends.1])
    }
  }

  private func checkAlarms() {
    let alarms = machines.count(where: { $0.hasRaisedAlarm })
    alarmCount = alarms
    if alarms > 0, !hadLaterEpoch { fail("\(alarms) machines raise a false alarm about a duplicate key") }
  }
}
