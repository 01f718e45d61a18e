import Frame
import Node
import Primitives
import TestSupport

/// Builds the network before the clock runs, and injects faults into wires and machines while it runs.
extension Simulation {
  func build() {
    let journals =
      options.faults.contains(.clone) || options.faults.contains(.epochLost) || options.faults.contains(.clockStep)
    for number in network.relays.indices {
      machines.append(
        Machine(
          number, key: keys(options.seed, number), relays: network.relays[number], encryption: anyPreference(), options,
          epoch: random.below(1000) << 32, bluetoothSlots: network.bluetoothSlots,
          journalMemory: journals ? Borrowed(Machine.journalBytes) : nil))
    }
    for machine in machines.indices { numbers[machines[machine].key.id] = machine }
    for wire in network.wires {
      wires.append(Wire(ends: wire.ends, model: wire.model, announcesID: wire.announcesID, domain: wire.domain))
      wires[wires.count - 1].isUp = !wire.isLatent
    }
    if options.faults.contains(.clone), machines.count > 1 { buildClone() }
    for machine in network.relays.indices { plan(.start(machine: machine), after: span(.milliseconds(0), .seconds(2))) }
    let relays = machines.indices.filter { machines[$0].relays && machines[$0].number == $0 }
    villain = relays.isEmpty ? nil : relays[Int(random.below(UInt64(relays.count)))]
    if !options.faults.isEmpty { plan(.fault, after: options.faultPause) }
    if options.faultSpan > .milliseconds(0) { plan(.message, after: .seconds(1)) }
  }

  private func anyPreference() -> EncryptionPreference {
    switch options.sealing {
    case .required: .required
    case .none: .none
    case .mixed: [.required, .optional, .none][Int(random.below(3))]
    }
  }

  /// Adds a clone: a machine with the key of another machine. The clone is off at first. The clone has a wire to a
  /// third machine or to the machine that owns the key.
  private func buildClone() {
    let victim = Int(random.below(UInt64(machines.count)))
    let clone = Machine(
      victim, key: machines[victim].key, relays: machines[victim].relays, encryption: machines[victim].encryption,
      options,
      epoch: random.below(2000) << 32, journalMemory: Borrowed(Machine.journalBytes))
    let neighbour = Int(random.below(UInt64(machines.count)))
    machines.append(clone)
    if neighbour != victim {
      wires.append(Wire(ends: (neighbour, machines.count - 1), model: WireModel.wifi.jittery, announcesID: true))
    }
  }

  // MARK: Discovery

  func seen(_ machine: Int, _ life: Int, _ wire: Int) {
    guard machines[machine].life == life, wires[wire].isUp, machines[wires[wire].other(machine)].node != nil else {
      return
    }
    let other = machines[wires[wire].other(machine)]
    let candidate = FoundCandidate(
      UInt32(wire), wires[wire].model.bearer, domain: wires[wire].domain,
      hint: wires[wire].announcesID ? other.key.id.high : 0, relays: other.relays)
    tell(machine, .candidateFound(candidate))
  }

  /// Lets both ends of a wire discover each other after a random delay.
  func announce(_ wire: Int) {
    for machine in [wires[wire].ends.0, wires[wire].ends.1] {
      plan(
        .seen(machine: machine, life: machines[machine].life, wire: wire), after: span(.milliseconds(1), .seconds(1)))
    }
  }

  /// Plans that the radios at both ends of a Bluetooth wire forget each other, 30 to 50 s after the last received
  /// advertisement. The firmware does this in `HeardPeers` of BearerBluetooth.
  func fallSilent(_ wire: Int) {
    if wires[wire].model.bearer != .bluetoothLE { return }
    for machine in [wires[wire].ends.0, wires[wire].ends.1] {
      plan(
        .unheard(machine: machine, life: machines[machine].life, wire: wire), after: span(.seconds(30), .seconds(50)))
    }
  }

  func unheard(_ machine: Int, _ life: Int, _ wire: Int) {
    let isHeard = wires[wire].isUp && machines[wires[wire].other(machine)].node != nil
    if machines[machine].life == life && !isHeard { tell(machine, .candidateLost(UInt32(wire))) }
  }

  func start(_ machine: Int) {
    if machines[machine].node != nil || machines[machine].isOut { return }
    // The upper half of an epoch counts the starts of the node, and the lower half is random.
    machines[machine].epoch = (machines[machine].epoch >> 32 + 1) << 32 | random.below(1 << 32)
    lives += 1
    machines[machine].start(life: lives, now: now)
    trace.add(now, .start, machine, lives)
    for wire in wires.indices where wires[wire].ends.0 == machine || wires[wire].ends.1 == machine { announce(wire) }
    touched(machine)
  }

  // MARK: Faults

  func fault() {
    if now >= faultsEnd { return }
    plan(.fault, after: span(.milliseconds(1), options.faultPause * 2))
    let kind = options.faults[Int(random.below(UInt64(options.faults.count)))]
    let wire = Int(random.below(UInt64(wires.count)))
    let machine = Int(random.below(UInt64(network.relays.count)))
    let length = span(.milliseconds(10), random.chance(perThousand: 300) ? .seconds(20) : .seconds(2))
    trace.add(now, .fault, wire, Fault.allCases.firstIndex(of: kind) ?? 0, Int(length.milliseconds))
    trace.note(now, "fault \(kind) for \(length.milliseconds) ms: wire \(wire) \(wires[wire].ends), machine \(machine)")
    if !kind.isMischief { faultCounts[kind, default: 0] += 1 }
    switch kind {
    case .cut: cut(wire)
    case .stall: for side in 0...1 { wires[wire][from: side].stalledUntil = now + length }
    case .darkness: darken(wire, length)
    case .oneWay: darkenOneWay(wire, length)
    case .partition: partition(length)
    case .isolation: for wire in wiresOf(machine) { darken(wire, length) }
    case .flap: flap(wire)
    case .clog: weather(wire, length) { $0.slowness = 100 }
    case .delay: weather(wire, length) { $0.extraDelay = .milliseconds(1 + random.below(1000)) }
    case .loss: weather(wire, length) { $0.lossPerThousand = 5 + random.below(200) }
    case .bursts: weather(wire, length) { $0.isBursty = true }
    case .corrupt: weather(wire, length) { $0.corruptPerThousand = 1 + random.below(100) }
    case .frameLength: wires[wire].model.framePayloadBytesMax = anyFrameLength()
    case .handOver: handOver(length)
    case .discoveryFlap:
      for machine in [wires[wire].ends.0, wires[wire].ends.1] {
        plan(.unseen(machine: machine, life: machines[machine].life, wire: wire), after: .milliseconds(0))
      }
      announce(wire)
    case .crash: crash(machine, length)
    case .hallLeaves: leaveHall(length)
    case .epochLost:
      crash(machine, length)
      machines[machine].epoch = random.below(machines[machine].epoch >> 32) << 32
    case .freeze: freeze(machine, length)
    case .clone: startClone(length)
    case .slowReader: slowDown(machine, length)
    case .noReader: slowDown(machine, faultsEnd - now)
    case .clockStep:
      let decade: Int64 = 315_360_000_000_000_000
      machines[machine].journal.wallClockStepped(
        offset: Int64(random.below(UInt64(2 * decade))) - decade, at: now)
    case .frameLoss, .frameDouble, .frameReorder, .blackHole, .replay, .alter, .spoof, .falseLinks,
      .downgrade:
      misbehave(kind, length)
    }
  }

  func wiresOf(_ machine: Int) -> [Int] {
    wires.indices.filter { wires[$0].ends.0 == machine || wires[$0].ends.1 == machine }
  }

  private func cut(_ wire: Int) {
    for stream in liveStreams(wire) where !streams[stream].isDead {
      streams[stream].isDead = true
      for side in 0...1 { plan(.streamEnds(stream: stream, side: side), after: span(.milliseconds(0), .seconds(1))) }
    }
  }

  func darken(_ wire: Int, _ length: TimeSpan?) {
    wires[wire].isUp = false
    for stream in liveStreams(wire) { streams[stream].isDead = true }
    fallSilent(wire)
    if let length { plan(.lightAgain(wire: wire), after: length) }
  }

  private func darkenOneWay(_ wire: Int, _ length: TimeSpan) {
    let side = Int(random.below(2))
    wires[wire][from: side].isUp = false
    for stream in liveStreams(wire) { streams[stream][from: streams[stream].wireSide(side)].isDead = true }
    plan(.lightAgain(wire: wire), after: length)
  }

  func lightAgain(_ wire: Int) {
    if isHealed && wires[wire].staysDown { return }
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

  private func flap(_ wire: Int) {
    var after = TimeSpan.milliseconds(0)
    for _ in 0..<3 + random.below(5) {
      after.nanoseconds += span(.milliseconds(5), .milliseconds(400)).nanoseconds
      plan(.flap(wire: wire), after: after)
    }
    plan(.lightAgain(wire: wire), after: after)
  }

  /// One step of a flap: if the wire is down, brings the wire up; if it is up, cuts its streams or takes it down.
  func flapStep(_ wire: Int) {
    if isHealed { return }
    if !wires[wire].isUp { return lightAgain(wire) }
    if random.chance(perThousand: 500) { cut(wire) } else { darken(wire, nil) }
  }

  private func weather(_ wire: Int, _ length: TimeSpan, _ change: (inout Weather) -> Void) {
    for side in 0...1 where random.chance(perThousand: 700) {
      if wires[wire][from: side].weather.until <= now { wires[wire][from: side].weather = Weather() }
      wires[wire][from: side].weather.until = now + length
      change(&wires[wire][from: side].weather)
    }
  }

  private func anyFrameLength() -> Int {
    Limits.framePayloadBytesFloor
      + Int(random.below(UInt64(Limits.framePayloadBytesMax - Limits.framePayloadBytesFloor + 1)))
  }

  /// Brings a latent wire up; a latent wire that is up goes down for `length`. A latent wire is a second wire between
  /// two machines.
  private func handOver(_ length: TimeSpan) {
    let latent = network.wires.indices.filter { network.wires[$0].isLatent }
    if latent.isEmpty { return }
    let wire = latent[Int(random.below(UInt64(latent.count)))]
    if wires[wire].isUp { return darken(wire, length) }
    lightAgain(wire)
  }

  func crash(_ machine: Int, _ length: TimeSpan?, isPowerCut: Bool? = nil) {
    guard machines[machine].node != nil else { return }
    trace.add(now, .crash, machine)
    machines[machine].stop()
    // After a crash of the process the kernel closes its connections. After a power cut nothing closes the connections.
    let isPowerCut = isPowerCut ?? random.chance(perThousand: 500)
    for stream in open {
      for side in 0...1 where streams[stream][end: side].machine == machine && !streams[stream][end: side].isGone {
        streams[stream][end: side].isGone = true
        if isPowerCut {
          streams[stream].isDead = true
        } else {
          plan(.streamEnds(stream: stream, side: 1 - side), after: span(.milliseconds(0), .seconds(1)))
        }
      }
    }
    for wire in wires.indices where wires[wire].ends.0 == machine || wires[wire].ends.1 == machine { fallSilent(wire) }
    if let length { plan(.start(machine: machine), after: length) }
  }

  /// Crashes each machine of a random broadcast domain with a chance of one half, all at once. All crashed machines
  /// start again together after `length`.
  func leaveHall(_ length: TimeSpan) {
    let parts = network.wires.filter { $0.domain != 0 }
    if parts.isEmpty { return }
    let hall = parts[Int(random.below(UInt64(parts.count)))].domain
    let members = network.relays.indices.filter { machine in
      parts.contains { $0.domain == hall && ($0.ends.0 == machine || $0.ends.1 == machine) }
    }
    for machine in members where random.chance(perThousand: 500) { crash(machine, length) }
  }

  private func freeze(_ machine: Int, _ length: TimeSpan) {
    machines[machine].frozenUntil = now + length
    plan(.thaw(machine: machine), after: length)
  }

  private func startClone(_ length: TimeSpan) {
    let clone = machines.count - 1
    guard machines[clone].number != clone, machines[clone].node == nil else { return }
    start(clone)
    plan(.stop(machine: clone), after: length)
  }

  private func slowDown(_ machine: Int, _ length: TimeSpan) {
    machines[machine].readsFrom = now + length
    plan(.reading(machine: machine, life: machines[machine].life), after: length)
  }

  private func misbehave(_ kind: Fault, _ length: TimeSpan) {
    guard let villain else { return }
    if machines[villain].mischief.until <= now { machines[villain].mischief.kinds = [] }
    machines[villain].mischief.kinds.append(kind)
    machines[villain].mischief.until = now + length * 3
    wasVillain = true
  }

  /// The open streams of a wire. A stream is open until both ends are notified of its end.
  private func liveStreams(_ wire: Int) -> [Int] { open.filter { streams[$0].wire == wire } }
}
