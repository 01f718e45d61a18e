import Node
import Primitives

/// What is built before the clock runs, and what goes wrong while it does.
extension Simulation {
  func build() {
    for number in network.relays.indices {
      machines.append(
        Machine(number, seed: options.seed, relays: network.relays[number], epoch: 1 + random.below(1000)))
    }
    for wire in network.wires {
      wires.append(Wire(ends: wire.ends, model: wire.model, announcesID: wire.announcesID))
      wires[wires.count - 1].isUp = !wire.isLatent
    }
    for machine in machines.indices { plan(.start(machine: machine), after: span(.milliseconds(0), .seconds(2))) }
    if !options.faults.isEmpty { plan(.fault, after: options.faultPause) }
    plan(.message, after: .seconds(1))
  }

  // MARK: Discovery

  func seen(_ machine: Int, _ life: Int, _ wire: Int) {
    guard machines[machine].life == life, wires[wire].isUp else { return }
    let hint = wires[wire].announcesID ? machines[wires[wire].other(machine)].identity.id.high : 0
    tell(machine, .candidateFound(UInt32(wire), wires[wire].model.bearer, hint: hint))
  }

  /// Both ends of a wire see each other in a while.
  func announce(_ wire: Int) {
    for machine in [wires[wire].ends.0, wires[wire].ends.1] {
      plan(
        .seen(machine: machine, life: machines[machine].life, wire: wire), after: span(.milliseconds(1), .seconds(1)))
    }
  }

  func start(_ machine: Int) {
    if machines[machine].node != nil { return }
    machines[machine].epoch += 1 + random.below(1 << 33)
    machines[machine].start(machine, now: now)
    trace.add(now, .start, machine, machines[machine].life)
    for wire in wires.indices where wires[wire].ends.0 == machine || wires[wire].ends.1 == machine { announce(wire) }
    touched(machine)
  }

  // MARK: Faults

  func fault() {
    if now >= faultsEnd { return }
    plan(.fault, after: span(.milliseconds(1), options.faultPause * 2))
    let kind = options.faults[Int(random.below(UInt64(options.faults.count)))]
    let wire = Int(random.below(UInt64(wires.count)))
    let length = span(.milliseconds(10), random.chance(perThousand: 300) ? .seconds(20) : .seconds(2))
    trace.add(now, .fault, wire, Options.Fault.allCases.firstIndex(of: kind) ?? 0, Int(length.milliseconds))
    switch kind {
    case .cut: cut(wire)
    case .stall: for side in 0...1 { wires[wire][from: side].stalledUntil = now + length }
    case .handOver: handOver(length)
    case .darkness: darken(wire, length)
    case .partition: partition(length)
    case .crash: crash(Int(random.below(UInt64(machines.count))), length)
    case .discoveryFlap:
      for machine in [wires[wire].ends.0, wires[wire].ends.1] {
        plan(.unseen(machine: machine, life: machines[machine].life, wire: wire), after: .milliseconds(0))
      }
      announce(wire)
    case .slowReader: slowDown(Int(random.below(UInt64(machines.count))), length)
    }
  }

  private func cut(_ wire: Int) {
    for stream in streams.indices where streams[stream].wire == wire && !streams[stream].isDead {
      streams[stream].isDead = true
      for side in 0...1 { plan(.streamEnds(stream: stream, side: side), after: span(.milliseconds(0), .seconds(1))) }
    }
  }

  private func darken(_ wire: Int, _ length: TimeSpan) {
    wires[wire].isUp = false
    for stream in streams.indices where streams[stream].wire == wire { streams[stream].isDead = true }
    plan(.lightAgain(wire: wire), after: length)
  }

  /// Something better, or another way, comes into reach and goes again.
  private func handOver(_ length: TimeSpan) {
    let latent = wires.indices.filter { network.wires[$0].isLatent }
    if latent.isEmpty { return }
    let wire = latent[Int(random.below(UInt64(latent.count)))]
    if wires[wire].isUp { return darken(wire, length) }
    lightAgain(wire)
  }

  func lightAgain(_ wire: Int) {
    wires[wire].isUp = true
    announce(wire)
  }

  private func partition(_ length: TimeSpan) {
    let left = machines.indices.map { _ in random.chance(perThousand: 500) }
    for wire in wires.indices where left[wires[wire].ends.0] != left[wires[wire].ends.1] {
      if random.chance(perThousand: 500) { cut(wire) }
      darken(wire, length)
    }
  }

  private func crash(_ machine: Int, _ length: TimeSpan) {
    guard machines[machine].node != nil else { return }
    trace.add(now, .crash, machine)
    machines[machine].node = nil
    machines[machine].timerAt = .never
    // A process that dies leaves a kernel that tells the other ends; a power cut does not.
    let isPowerCut = random.chance(perThousand: 500)
    for stream in streams.indices {
      for side in 0...1 where streams[stream][end: side].machine == machine && !streams[stream][end: side].isGone {
        streams[stream][end: side].isGone = true
        if isPowerCut {
          streams[stream].isDead = true
        } else {
          plan(.streamEnds(stream: stream, side: 1 - side), after: span(.milliseconds(0), .seconds(1)))
        }
      }
    }
    plan(.start(machine: machine), after: length)
  }

  private func slowDown(_ machine: Int, _ length: TimeSpan) {
    machines[machine].readsFrom = now + length
    plan(.reading(machine: machine, life: machines[machine].life), after: length)
  }
}
