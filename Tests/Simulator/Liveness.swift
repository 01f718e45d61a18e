import Channel
import Frame
import Mesh
import Node
import Primitives

/// What must be true once the faults are over and everything is whole again.
extension Simulation {
  /// The longest pause between two dials, the time until a dead link is noticed, and a handshake.
  static let convergenceMax = TimeSpan.seconds(60)
  /// How long the last messages may take.
  static let deliveryMax = TimeSpan.seconds(70)

  /// A whole run: faults, healing, and everything that is then demanded.
  public func runAll() {
    run(until: faultsEnd)
    heal()
    let healed = now
    var missing: String?
    repeat {
      run(until: now + .milliseconds(500))
      missing = whatIsMissing()
    } while violation == nil && missing != nil && now - healed < Self.convergenceMax
    if let missing { return fail("after \((now - healed).milliseconds) ms of health: \(missing)") }
    if violation == nil { stayWhole() }
    if violation == nil { deliverToAll() }
  }

  private func heal() {
    for wire in wires.indices {
      wires[wire].isUp = true
      for side in 0...1 { wires[wire][from: side].stalledUntil = .zero }
      announce(wire)
    }
    for machine in machines.indices {
      machines[machine].readsFrom = .zero
      start(machine)
      touched(machine)
    }
    trace.note(now, "healed")
  }

  /// What the naive router says and the nodes do not, nil when they agree.
  private func whatIsMissing() -> String? {
    let reference = Reference(nodeCount: machines.count, wires: wires, relays: machines.map(\.relays)) { one, other in
      machines[one].node?.carrier(to: machines[other].identity.id)?.cost ?? 1
    }
    for one in machines.indices {
      guard let node = machines[one].node else { return "machine \(one) does not run" }
      for other in machines.indices where other != one {
        let way = reference.way(from: one, to: other)
        let route = node.route(to: machines[other].identity.id)
        let peer = node.peers.first { $0.id == machines[other].identity.id }
        let names = "machine \(one) to \(other)"
        if route?.cost != way?.cost || (route?.hops).map(Int.init) != way?.hops {
          return "\(names): route \(route.debugDescription), true way \(way.debugDescription)"
        }
        if (peer != nil) != (way != nil) || machines[one].found.contains(other) != (way != nil) {
          return "\(names): shown as a peer \(peer != nil), reachable \(way != nil)"
        }
        if let peer, let way,
          Int(peer.hops) != way.hops || peer.name.text != "machine \(other) life \(machines[other].life)"
        {
          return "\(names): shown as \(peer.name.text) with \(peer.hops) hops, it is in life \(machines[other].life)"
        }
      }
    }
    return doubleOrMissingLink()
  }

  /// Over each bearer on which two machines see each other there is one link, and both ends mean the same stream.
  private func doubleOrMissingLink() -> String? {
    for wire in wires {
      let up = [wire.ends.0, wire.ends.1].map { machine in
        machines[machine].streams.compactMap { $0 }.filter { stream in
          let other = wires[streams[stream].wire]
          let slot = machines[machine].streams.firstIndex(of: stream)!
          return other.model.bearer == wire.model.bearer && other.joins(wire.ends.0, wire.ends.1)
            && machines[machine].node?.link(slot).state == .up
        }
      }
      if up[0].count != 1 || up[0] != up[1] {
        return "machines \(wire.ends) over \(wire.model.bearer): links \(up[0].count) and \(up[1].count)"
      }
    }
    return nil
  }

  /// A mesh at rest does not change, and is quiet: each node renews its two advertisements once a minute.
  private func stayWhole() {
    // A link that nothing is routed over may have died unnoticed just before the end of the faults, and what was
    // measured then is forgotten, and no link is in quarantine.
    run(until: now + .seconds(150))
    let found = machines.map(\.found)
    let changes = changeCount
    let signed = machines.map(\.cryptography.signCount)
    run(until: now + .seconds(60))
    if violation != nil { return }
    if let missing = whatIsMissing() { fail("was whole and is no longer: \(missing)") }
    if machines.map(\.found) != found || changeCount != changes { fail("the peers changed in a mesh at rest") }
    for machine in machines.indices where machines[machine].cryptography.signCount - signed[machine] > 4 {
      fail(
        "machine \(machine) signed \(machines[machine].cryptography.signCount - signed[machine]) times in a minute of rest"
      )
    }
  }

  private func deliverToAll() {
    let failedBefore = ledger.failedCount
    let open = machines.indices.reduce(0) { $0 + ledger.pendingCount(from: $1, life: machines[$1].life) }
    if open > 0 { fail("\(open) sends of a minute ago and more have not ended") }
    let deliveredBefore = ledger.deliveredCount
    var asked = 0
    for from in machines.indices {
      for to in machines[from].found.sorted() {
        for lane in Lane.allCases {
          send(from, to, lane, lane == .bulk ? 5000 : 20)
          asked += 1
        }
      }
    }
    let end = now + Self.deliveryMax
    while violation == nil, now < end, ledger.deliveredCount - deliveredBefore < asked {
      run(until: now + .milliseconds(200))
    }
    if violation != nil { return }
    let delivered = ledger.deliveredCount - deliveredBefore
    if delivered != asked || ledger.failedCount != failedBefore {
      fail("of \(asked) messages in a whole mesh \(delivered) were delivered")
    }
    if ledger.unpaid({ self.machines[$0].life }) > 0 { fail("a message completed as delivered was never read") }
  }
}
