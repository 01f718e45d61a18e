import Channel
import Frame
import Link
import Mesh
import Node
import Primitives

/// How long the nodes took to agree with the naive router, in milliseconds; nil where nothing was measured.
public struct Convergence: Sendable {
  /// After all faults were over.
  public var healed: UInt64?
  /// After one wire of a network at rest had died, unannounced: routes, and then what is shown as peers.
  public var rerouted: UInt64?
  public var lost: UInt64?
  /// After it had come back.
  public var returned: UInt64?
  /// The most links on a path when all had recovered.
  public var diameter = 0
}

/// Checks once the faults are over: a part of the network, or all of it, is connected again, and in it
/// everything works.
extension Simulation {
  /// The longest pause between two dials, the time until a dead link is detected, and a handshake.
  static let convergenceMax = TimeSpan.seconds(60)
  /// Two holders of a key supersede each other after pauses that double; or an advertisement ages out.
  static let ageMax = TimeSpan.seconds(870)
  /// What routes may take after a change on a way of `diameter` links: until a dead link is noticed, and then for each
  /// hop the slowest wire's delay and the pause between two advertisements of a node.
  static func rerouteMax(over bearer: BearerKind, diameter: Int) -> TimeSpan {
    Liveness.unnoticedMax(over: bearer) + hopTime * UInt64(diameter)
  }
  static let hopTime = TimeSpan.milliseconds(250)
  /// An unreachable peer is shown for 3 s more.
  static let graceMax = TimeSpan.seconds(4)
  /// The longest dial without an answer, the middle pause, discovery, and the dial deferral of the higher id.
  static let returnMax = TimeSpan.seconds(20)
  /// Links of a relay with the other relays of one broadcast domain, at rest.
  static let hallLinksMax = 8
  /// How long leaves with relays wait before they dial each other over Bluetooth.
  static let leafMax = TimeSpan.seconds(45)
  /// How long a parked neighbour that is gone may go unnoticed: until it is no longer heard and did not call, or until the
  /// dials of a call have failed.
  static let parkedMax = TimeSpan.seconds(130)
  private var parkedSpan: TimeSpan { network.bluetoothPlaces == nil ? TimeSpan(nanoseconds: 0) : Self.parkedMax }
  /// How long the last messages may take.
  static let deliveryMax = TimeSpan.seconds(70)

  /// A whole run: faults, healing, and everything that is then demanded.
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

  /// A key was used under an epoch that is later than one after it.
  private var hadLaterEpoch: Bool { faultCounts[.epochLost] != nil || faultCounts[.clone] != nil }

  /// Neighbours refuse the key of the relay that passed on wrong signatures, for a minute or two.
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
    // An honest box replaces the one that misbehaved.
    if let villain, wasVillain { crash(villain, nil) }
    for machine in machines.indices {
      machines[machine].readsFrom = .zero
      start(machine)
      drain(machine)
    }
  }

  /// Some machines and wires stay away.
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

  /// Runs until the network has converged; returns the milliseconds that it took, nil when it took too long.
  func untilWhole(_ what: String, routesOnly: Bool = false, within most: TimeSpan) -> UInt64? {
    let start = now
    var missing: String?
    repeat {
      // After 30 s, and in a large network, one check a second is enough.
      run(until: now + .milliseconds(now - start > .seconds(30) || machines.count > 64 ? 1000 : 100))
      missing = whatIsMissing(routesOnly: routesOnly)
    } while violation == nil && missing != nil && now - start < most
    if let missing {
      fail("after \((now - start).milliseconds) ms \(what): \(missing)")
      return nil
    }
    return (now - start).milliseconds
  }

  /// The difference between the naive router and the nodes, nil when they agree.
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
        // Frames go no further; the naive router does not know that.
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

  /// To a parked leaf it is no news by which ways a node is reached (protocol, “Parking”): it knows who is in reach, and
  /// its relays know the ways.
  private func hearsOfWays(_ machine: Int) -> Bool { network.bluetoothPlaces == nil || network.relays[machine] }

  /// The naive router over the advertisements of these machines; the first is number 0.
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

  /// Follows the routes of node after node; each must bring the frame nearer.
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

  /// Over each bearer on which two machines see each other there is one link, and both ends mean the same stream. In a
  /// broadcast domain, and over Bluetooth with a leaf, there is at most one.
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

  /// An idle mesh does not change and sends little: each node renews its two advertisements every 200 s.
  private func stayWhole() {
    // A link that nothing is routed over may have died unnoticed just before the end of the faults; what was measured
    // then is forgotten, and no link is in quarantine.
    run(until: now + .seconds(150))
    let found = machines.map(\.found)
    let changes = changeCount
    let signed = machines.map(\.key.signCount)
    run(until: now + .seconds(60))
    if violation != nil { return }
    // In a room two ends may just be calling each other: one of two links stays.
    let end = now + (network.bluetoothPlaces == nil ? TimeSpan(nanoseconds: 0) : Self.hopTime * 8)
    while now < end, whatIsMissing() != nil { run(until: now + Self.hopTime) }
    if let missing = whatIsMissing() { fail("was whole and is no longer: \(missing)") }
    if let wrong = tooManyLinks() { fail(wrong) }
    // Renewals are taken to parked leaves in turn; a leaf that another relay serves may then leave the one that parked it.
    let leaves = network.bluetoothPlaces == nil ? 0 : network.relays.count { !$0 }
    let isChanged = leaves == 0 && changeCount != changes
    if machines.map(\.found) != found || isChanged { fail("the peers changed in a mesh at rest") }
    for machine in machines.indices where machines[machine].key.signCount - signed[machine] > 4 + leaves {
      fail("machine \(machine) signed \(machines[machine].key.signCount - signed[machine]) times in a minute of rest")
    }
  }

  /// At rest a relay has few links with the other relays of a broadcast domain, however many there are.
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
    // The first messages after an epoch was lost find out, and are told to have failed; where they cross, twice. So do
    // those after a refusal, which ends what one of the channels has begun and not what the other has.
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

  /// All that was acknowledged was read, now that all messages have been.
  func checkAcknowledged() {
    if faultCounts[.clone] == nil, let unpaid = ledger.unpaid(livingLife) {
      fail("\(unpaid) completed as delivered and was never read")
    }
  }

  /// The life of the node that runs on a machine; -1 when none does, and what was delivered to it is gone.
  private func livingLife(_ machine: Int) -> Int { machines[machine].node == nil ? -1 : machines[machine].life }

  /// Every machine sends to all others, in a large network to a few; returns how many messages were accepted.
  func sendToAll() -> Int {
    var asked = 0
    let reference = referenceByStatements(of: machines.indices)
    for from in network.relays.indices where machines[from].node != nil {
      let all = machines[from].found.filter(network.relays.indices.contains).sorted()
      // All pairs would take too much memory.
      for place in 0..<min(all.count, machines.count > 16 ? 3 : all.count) {
        let to = all[machines.count > 16 ? (from * 7 + place * 11) % all.count : place]
        // Relays each choose the cheapest way. Where that has too many hops, frames do not arrive, there or back.
        let ways = [reference.way(from: from, to: to), reference.way(from: to, to: from)]
        if ways.contains(where: { ($0?.hops ?? 0) > Int(Limits.hopsMax) }) { continue }
        // Who floods passes on frames of others in his own turn.
        if let (liar, lie) = liarAtWork, lie == .flows,
          reference.leads(from: from, to: to, through: liar) || reference.leads(from: to, to: from, through: liar)
        {
          continue
        }
        // Places are shared by the link that brings the frames: behind the liar's own link no bound holds.
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

  /// One wire fails silently, and comes back.
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

  /// Over some Bluetooth wire there is a link only when no other way leads to a leaf.
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
