import Node
import Primitives

/// What is built before the clock runs, and what goes wrong while it does.
extension Simulation {
  func build() {
    for number in 0..<options.nodeCount {
      let relays = random.chance(perThousand: 800)
      machines.append(Machine(number, seed: options.seed, relays: relays, epoch: 1 + random.below(1000)))
    }
    connect()
    for machine in machines.indices { plan(.start(machine: machine), after: span(.milliseconds(0), .seconds(2))) }
    if !options.faults.isEmpty { plan(.fault, after: options.faultPause) }
    plan(.message, after: .seconds(1))
  }

  private func connect() {
    let count = options.nodeCount
    switch options.shape {
    case .line: for number in 1..<count { addWire(number - 1, number) }
    case .ring: for number in 0..<count where count > 2 || number == 0 { addWire(number, (number + 1) % count) }
    case .star: for number in 1..<count { addWire(0, number) }
    case .random:
      for number in 1..<count { addWire(Int(random.below(UInt64(number))), number) }
      for _ in 0..<random.below(UInt64(count)) {
        let one = Int(random.below(UInt64(count)))
        let other = Int(random.below(UInt64(count)))
        if one != other { addWire(one, other) }
      }
    }
    // Some pairs see each other twice: over another bearer, or under another address.
    for wire in wires where random.chance(perThousand: 200) { addWire(wire.ends.0, wire.ends.1) }
  }

  private func addWire(_ one: Int, _ other: Int) {
    let bearer: BearerKind
    let delay: (TimeSpan, TimeSpan)
    switch random.below(4) {
    case 0: (bearer, delay) = (.bluetoothLE, (.milliseconds(8), .milliseconds(80)))
    case 1: (bearer, delay) = (.wifi, (.milliseconds(1), .milliseconds(20)))
    case 2: (bearer, delay) = (.wifiDirect, (.milliseconds(1), .milliseconds(30)))
    default: (bearer, delay) = (.ethernet, (TimeSpan(nanoseconds: 100_000), .milliseconds(2)))
    }
    wires.append(
      Wire(
        ends: (one, other), bearer: bearer, announcesID: random.chance(perThousand: 700), delay: delay,
        windowBytes: 1000 << Int(random.below(7))))
  }

  // MARK: Discovery

  func seen(_ machine: Int, _ life: Int, _ wire: Int) {
    guard machines[machine].life == life, wires[wire].isUp else { return }
    let hint = wires[wire].announcesID ? machines[wires[wire].other(machine)].identity.id.high : 0
    tell(machine, .candidateFound(UInt32(wire), wires[wire].bearer, hint: hint))
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
    case .stall: wires[wire].stalledUntil = now + length
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
