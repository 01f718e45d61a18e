import Channel
import Frame
import Link
import Mesh
import Node
import Primitives

/// The times until the nodes agreed with the naive router, in milliseconds; nil where nothing was measured.
public struct Convergence: Sendable {
  /// The time after all faults were over.
  public var healed: UInt64?
  /// The times after one wire of a network at rest had failed silently: for the routes, and then for the displayed
  /// peers.
  public var rerouted: UInt64?
  public var lost: UInt64?
  /// The time after the wire had come back.
  public var returned: UInt64?
  /// The length of the longest path, in links, when everything had recovered.
  public var diameter = 0
}

/// Checks after the faults are over. A part of the network or all of it is connected again, and in it everything must
/// work.
extension Simulation {
  /// Covers the longest pause between two dials, the detection of a dead link, and a handshake.
  static let convergenceMax = TimeSpan.seconds(60)
  /// Two holders of a key supersede each other after pauses that double, or an advertisement expires.
  static let ageMax = TimeSpan.seconds(870)
  /// The maximum time for routes to follow a change on a path of `diameter` links. It covers the detection of a dead
  /// link. For each hop it adds the slowest wire's delay and the pause between two advertisements of a node.
  static func rerouteMax(over bearer: BearerKind, diameter: Int) -> TimeSpan {
    Liveness.unnoticedMax(over: bearer) + hopTime * UInt64(diameter)
  }
  static let hopTime = TimeSpan.milliseconds(250)
  /// An unreachable peer is still displayed for 3 s.
  static let graceMax = TimeSpan.seconds(4)
  /// Covers the longest dial without an answer, the middle pause, discovery, and the dial deferral of the higher id.
  static let returnMax = TimeSpan.seconds(20)
  /// The maximum number of links of a relay with other relays of one broadcast domain, at rest.
  static let hallLinksMax = 8
  /// The time that leaves with relays wait before they dial each other over Bluetooth.
  static let leafMax = TimeSpan.seconds(45)
  /// The maximum time for which a parked neighbour's departure may go unnoticed. It ends when the neighbour has been
  /// silent for long, or when the dials of a call have failed.
  static let parkedMax = TimeSpan.seconds(130)
  private var parkedSpan: TimeSpan { network.bluetoothPlaces == nil ? TimeSpan(nanoseconds: 0) : Self.parkedMax }
  /// The maximum time for the delivery of the last messages.
  static let deliveryMax = TimeSpan.seconds(70)

  /// Runs everything: faults, healing, and all checks afterwards.
  public func runAll() {
    run(until: faultsEnd)
    heal()
    let most = faultCounts[.clone] != nil || hadForgery ? Self.ageMax : Self.convergenceMax
    convergence.healed = untilWhole("of health", within: most + parkedSpan)
    if violation == nil { stayWhole() }
    if violation == nil { deliverToAll() }
    if violation == nil { changeOneWire() }
    if violation == nil, let lie = options.lie { endureLiar(lie) }
    if violation == nil { checkAlarms() }
  }

  /// Whether a key was used under an epoch that is later than a following one.
  private var hadLaterEpoch: Bool { faultCounts[.epochLost] != nil || faultCounts[.clone] != nil }

  /// Whether neighbours refuse the key of a relay that forwarded wrong signatures, for one or two minutes.
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
    // An honest machine replaces the malicious one.
    if let villain, wasVillain { crash(villain, nil) }
    for machine in machines.indices {
      machines[machine].readsFrom = .zero
      start(machine)
      drain(machine)
    }
  }

  /// Keeps some machines and wires down.
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

  /// Runs until the network has converged. Returns how long that took in milliseconds, or nil if it took too long.
  func untilWhole(_ what: String, routesOnly: Bool = false, within most: TimeSpan) -> UInt64? {
    let start = now
    var missing: String?
    repeat {
      // One check per second is enough after 30 s and in large networks.
      run(until: now + .milliseconds(now - start > .seconds(30) || machines.count > 64 ? 1000 : 100))
      missing = whatIsMissing(routesOnly: routesOnly)
    } while violation == nil && missing != nil && now - start < most
    if let missing {
      fail("after \((now - start).milliseconds) ms \(what): \(missing)")
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
        // Frames do not travel further; the naive router ignores that limit.
        if let way, way.hops > Int(Limits.hopsMax) { continue }
        let names = "machine \(one) to \(other)"
        if (truth.way(from: one, to: other) != nil) != (way != nil) {
          return "\(names): there is \(way == nil ? "a way" : "no way") but nodes state otherwise"
        }
        let isTold = hearsOfWays(one) || way == nil || route == nil
        if isTold, route?.cost != way?.cost || (route?.hops).map(Int.init) != way?.hops {
          return "\(names): route \(route.debugDescription), true way \(way.debugDescription)"
        }
        if way != nil, let loop = loop(from: one, to: other) { return "\(names): \(loop)" }
        if routesOnly { continue }
        if let wrong = wrongPeer(one, other, peers[machines[other].key.id], way) { return "\(names): \(wrong)" }
      }
    }
    return routesOnly ? nil : doubleOrMissingLink()
  }

  /// Whether the machine keeps its routes up to date. A parked leaf is not notified of changed routes (protocol,
  /// “Parking”): it knows the reachable nodes, and its relays know the routes.
  private func hearsOfWays(_ machine: Int) -> Bool { network.bluetoothPlaces == nil || network.relays[machine] }

  /// The naive router for the advertisements of these machines; the first machine has number 0.
  func referenceByStatements(of numbers: Range<Int>) -> Reference {
    let topologies = numbers.map { machine -> FrameObserver.Topology? in
      // A node without a link cannot advertise anything.
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
      return "shown as a peer \(peer != nil), reachable \(way != nil)"
    }
    guard let peer, let way else { return nil }
    let name = "machine \(other) life \(machines[other].life)"
    if Int(peer.hops) == way.hops || !hearsOfWays(one), peer.name.text == name { return nil }
    return "shown as \(peer.name.text) with \(peer.hops) hops, it is \(name)"
  }

  /// Follows the routes from node to node. Each hop must bring the frame nearer to its destination.
  private func loop(from one: Int, to other: Int) -> String? {
    var place = one
    var left = UInt32.max
    while place != other {
      guard let route = machines[place].node?.route(to: machines[other].key.id) else {
        return "the way ends at \(place)"
      }
      if route.cost >= left { return "the way does not come nearer at \(place)" }
      left = hearsOfWays(place) ? route.cost : .max
      place = number(of: route.firstHop)
    }
    return nil
  }

  /// Checks the links of machines that discover each other: one link per bearer, with both ends on the same stream. In
  /// a broadcast domain, and over Bluetooth with a leaf, there is at most one.
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
        return "machines \(wire.ends) over \(wire.model.bearer): links \(up[0].count) and \(up[1].count)"
      }
    }
    return nil
  }

  /// Checks that an idle mesh does not change and sends little: each node renews its two advertisements every 200 s.
  private func stayWhole() {
    // A link without routes may have died unnoticed just before the end of the faults. After this time its measurements
    // are forgotten, and no link is in quarantine.
    run(until: now + .seconds(150))
    let found = machines.map(\.found)
    let changes = changeCount
    let signed = machines.map(\.key.signCount)
    run(until: now + .seconds(60))
    if violation != nil { return }
    // In a room two ends may just be calling each other; then one of the two links stays.
    let end = now + (network.bluetoothPlaces == nil ? TimeSpan(nanoseconds: 0) : Self.hopTime * 8)
    while now < end, whatIsMissing() != nil { run(until: now + Self.hopTime) }
    if let missing = whatIsMissing() { fail("was whole and is no longer: \(missing)") }
    if let wrong = tooManyLinks() { fail(wrong) }
    // Parked leaves receive renewals in turn. A leaf that another relay serves may then leave the relay that parked it.
    let leaves = network.bluetoothPlaces == nil ? 0 : network.relays.count { !$0 }
    let isChanged = leaves == 0 && changeCount != changes
    if machines.map(\.found) != found || isChanged { fail("the peers changed in a mesh at rest") }
    for machine in machines.indices where machines[machine].key.signCount - signed[machine] > 4 + leaves {
      fail("machine \(machine) signed \(machines[machine].key.signCount - signed[machine]) times in a minute of rest")
    }
  }

  /// Checks that at rest a relay has few links with the other relays of its broadcast domain, whatever their number.
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
    // After an epoch was lost, the first messages discover that and fail, and twice if they cross. The same holds after
    // a refusal: it ends the messages begun on one of the channels, but not those on the other.
    if hadLaterEpoch || hadRefusal {
      for _ in 0..<3 where violation == nil {
        _ = sendToAll()
        run(until: now + Self.deliveryMax)
      }
      if violation != nil { return }
    }
    let failedBefore = ledger.failedCount
    let open = machines.indices.reduce(0) {
      $0 + ledger.pendingCount(life: livingLife($1))
    }
    if open > 0 { fail("\(open) sends of a minute ago and more have not ended") }
    let deliveredBefore = ledger.deliveredCount
    let asked = sendToAll()
    let end = now + Self.deliveryMax
    while violation == nil, now < end, ledger.deliveredCount - deliveredBefore < asked {
      run(until: now + .milliseconds(200))
    }
    if violation != nil { return }
    let delivered = ledger.deliveredCount - deliveredBefore
    if delivered != asked || ledger.failedCount != failedBefore {
      fail("of \(asked) messages in a whole mesh \(delivered) were delivered")
    }
    checkAcknowledged()
  }

  /// Checks that every acknowledged message was read, once all messages have been read.
  func checkAcknowledged() {
    if faultCounts[.clone] == nil, let unpaid = ledger.unpaid(livingLife) {
      fail("\(unpaid) completed as delivered and was never read")
    }
  }

  /// The incarnation of the node that runs on a machine, or -1 if none runs; then everything delivered to it is gone.
  private func livingLife(_ machine: Int) -> Int { machines[machine].node == nil ? -1 : machines[machine].life }

  /// Lets every machine send to all others, in a large network to a few. Returns how many messages were accepted.
  func sendToAll() -> Int {
    var asked = 0
    let reference = referenceByStatements(of: machines.indices)
    for from in network.relays.indices where machines[from].node != nil {
      let all = machines[from].found.filter(network.relays.indices.contains).sorted()
      // All pairs would take too much memory.
      for place in 0..<min(all.count, machines.count > 16 ? 3 : all.count) {
        let to = all[machines.count > 16 ? (from * 7 + place * 11) % all.count : place]
        // Each relay chooses the cheapest route. If a route has too many hops, frames do not arrive in one or both
        // directions.
        let ways = [reference.way(from: from, to: to), reference.way(from: to, to: from)]
        if ways.contains(where: { ($0?.hops ?? 0) > Int(Limits.hopsMax) }) { continue }
        // A flooding relay forwards the frames of others in its own turn.
        if let (liar, lie) = liarAtWork, lie == .flows,
          reference.leads(from: from, to: to, through: liar) || reference.leads(from: to, to: from, through: liar)
        {
          continue
        }
        // Places are shared by the link that brings the frames, so behind the hostile relay's own link no bound holds.
        if liarAtWork?.lie == .channels, sharesTheLiarsLink(from, at: to) || sharesTheLiarsLink(to, at: from) {
          continue
        }
        for lane in Lane.allCases {
          let isTaken = send(from, to, lane, lane == .bulk ? 5000 : 20)
          if isTaken { asked += 1 }
          // In larger networks the table of associations may be full.
          if !isTaken, machines.count <= 16, agreement(from, to) != .refused {
            fail("machine \(from) does not take a message for \(to) in a whole mesh")
          }
        }
      }
    }
    return asked
  }

  /// Lets one wire fail silently and come back.
  private func changeOneWire() {
    let carrying = Set(machines.flatMap { machine in machine.streams.compactMap { $0.map { streams[$0].wire } } })
    let live = wires.indices.filter { wire in
      wires[wire].isUp && machines[wires[wire].ends.0].node != nil && machines[wires[wire].ends.1].node != nil
        && (wires[wire].domain == 0 || carrying.contains(wire))
    }
    if live.isEmpty { return }
    let wire = live[Int(random.below(UInt64(live.count)))]
    trace.note(now, "wire \(wire) \(wires[wire].ends) dies")
    darken(wire, nil)
    // A leaf may have to look for other neighbours.
    var search = wires[wire].domain == 0 ? TimeSpan(nanoseconds: 0) : Self.returnMax
    if mayLeavesDialLate { search = Self.returnMax + Self.leafMax }
    let most = Self.rerouteMax(over: wires[wire].model.bearer, diameter: convergence.diameter) + search
    let rerouted = untilWhole("after wire \(wire) was lost", routesOnly: true, within: most + parkedSpan)
    if network.bluetoothPlaces == nil { convergence.rerouted = rerouted }
    if violation != nil { return }
    convergence.lost = untilWhole("after routes without wire \(wire) were found", within: Self.graceMax + search)
    if violation != nil { return }
    trace.note(now, "wire \(wire) \(wires[wire].ends) returns")
    lightAgain(wire)
    let wait = mayLeavesDialLate ? Self.leafMax : TimeSpan(nanoseconds: 0)
    convergence.returned = untilWhole("after wire \(wire) returned", within: Self.returnMax + wait)
  }

  /// Whether there are Bluetooth wires to leaves. A leaf links over such a wire only when no other route leads to it.
  private var mayLeavesDialLate: Bool {
    network.wires.contains { wire in
      wire.model.bearer == .bluetoothLE && (!network.relays[wire.ends.0] || !network.relays[wire.ends.1])
    }
  }

  private func checkAlarms() {
    let alarms = machines.count(where: { $0.hasRaisedAlarm })
    alarmCount = alarms
    if alarms > 0, !hadLaterEpoch { fail("\(alarms) machines say that their key is used twice, and it is not") }
  }
}
