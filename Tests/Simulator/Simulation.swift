import Channel
import Frame
import Link
import Node
import Primitives
import TestSupport

/// A whole network of real nodes in one thread: clock, wires, streams, crashes and applications are played, and
/// all chance comes from one seed. docs/protocol.md is what the nodes must keep to; what they must never do is
/// checked at every step, what they must reach is demanded once the faults are over (Liveness.swift).
final class Simulation {
  enum Event {
    case deadline(machine: Int)
    case dialEnds(machine: Int, life: Int, wire: Int)
    case opens(stream: Int, side: Int)
    case arrival(stream: Int, from: Int)
    case streamEnds(stream: Int, side: Int)
    case seen(machine: Int, life: Int, wire: Int)
    case unseen(machine: Int, life: Int, wire: Int)
    case fault
    case lightAgain(wire: Int)
    case start(machine: Int)
    case message
    case reading(machine: Int, life: Int)
  }

  let options: Options
  var random: SeededRandom
  var now = Instant.zero + .seconds(1000)
  var events = EventHeap<Event>()
  var machines: [Machine] = []
  var wires: [Wire] = []
  var streams: [Stream] = []
  var observer = FrameObserver()
  var ledger = MessageLedger()
  var trace: Trace
  /// Peers that a node said have changed.
  private(set) var changeCount = 0
  /// The first thing that went wrong.
  private(set) var violation: String?
  /// Faults and messages happen until then.
  let faultsEnd: Instant
  private var scratch = [UInt8](repeating: 0, count: 4 * Limits.frameBytesMax)

  init(_ options: Options, isVerbose: Bool = false) {
    self.options = options
    random = SeededRandom(seed: options.seed ^ 0x5eed)
    trace = Trace(isVerbose: isVerbose)
    faultsEnd = now + options.faultSpan
    build()
  }

  func fail(_ what: String) {
    if violation == nil { violation = what }
    trace.note(now, "VIOLATION \(what)")
  }

  /// Let everything happen up to `end`.
  func run(until end: Instant) {
    while violation == nil, events.nextInstant <= end {
      now = max(now, events.nextInstant)
      if let event = events.next() { happen(event) }
    }
    now = max(now, end)
  }

  func plan(_ event: Event, after span: TimeSpan) { events.plan(event, at: now + span) }

  func span(_ least: TimeSpan, _ most: TimeSpan) -> TimeSpan {
    TimeSpan(nanoseconds: least.nanoseconds + random.below(most.nanoseconds - least.nanoseconds + 1))
  }

  private func happen(_ event: Event) {
    switch event {
    case .deadline(let machine): deadline(machine)
    case .dialEnds(let machine, let life, let wire): dialEnds(machine, life, wire)
    case .opens(let stream, let side): opens(stream, side)
    case .arrival(let stream, let side): arrival(stream, from: side)
    case .streamEnds(let stream, let side): streamEnds(stream, side)
    case .seen(let machine, let life, let wire): seen(machine, life, wire)
    case .unseen(let machine, let life, let wire):
      if machines[machine].life == life { tell(machine, .candidateLost(UInt32(wire))) }
    case .fault: fault()
    case .lightAgain(let wire): lightAgain(wire)
    case .start(let machine): start(machine)
    case .message: message()
    case .reading(let machine, let life):
      if machines[machine].life == life { touched(machine) }
    }
  }

  // MARK: Nodes

  func tell(_ machine: Int, _ event: Node.Event) {
    guard let node = machines[machine].node else { return }
    node.handle(event, now: now)
    touched(machine)
  }

  private func deadline(_ machine: Int) {
    guard let node = machines[machine].node, machines[machine].timerAt == now else { return }
    machines[machine].timerAt = .never
    if node.nextDeadline(now: now) <= now { node.handle(.timeout, now: now) }
    touched(machine)
    if node.nextDeadline(now: now) <= now { fail("machine \(machine) leaves a deadline that is due") }
  }

  /// The drain rule, after everything that a node was told.
  func touched(_ machine: Int) {
    guard let node = machines[machine].node else { return }
    repeat {
      while let command = node.nextCommand(now: now) { carryOut(command, machine, node) }
      drainPeers(machine, node)
    } while drainMessages(machine, node)
    let deadline = node.nextDeadline(now: now)
    if deadline < machines[machine].timerAt {
      machines[machine].timerAt = max(deadline, now)
      events.plan(.deadline(machine: machine), at: max(deadline, now))
    }
  }

  private func carryOut(_ command: Node.Command, _ machine: Int, _ node: Node) {
    switch command {
    case .dial(let handle):
      trace.add(now, .dial, machine, Int(handle))
      let wire = wires[Int(handle)]
      // A handshake is three times there and back; into the dark it takes until somebody gives up.
      let span = wire.isUp ? span(wire.delay.least * 4, wire.delay.most * 6) : span(.milliseconds(50), .seconds(4))
      plan(.dialEnds(machine: machine, life: machines[machine].life, wire: Int(handle)), after: span)
    case .transmit(let slot):
      guard let stream = machines[machine].streams[slot] else { return fail("machine \(machine) sends on no stream") }
      send(stream, side(of: stream, machine, slot), all: false)
    case .close(let slot):
      guard let stream = machines[machine].streams[slot] else { return fail("machine \(machine) closes no stream") }
      let side = side(of: stream, machine, slot)
      trace.add(now, .close, machine, slot)
      send(stream, side, all: true)
      streams[stream][from: side].hasEnded = true
      events.plan(.arrival(stream: stream, from: side), at: max(streams[stream][from: side].lastArrival, now))
      streams[stream][end: side].isGone = true
      machines[machine].streams[slot] = nil
      node.handle(.linkClosed(slot), now: now)
    }
  }

  private func drainPeers(_ machine: Int, _ node: Node) {
    while let event = node.nextPeerEvent() {
      switch event {
      case .found(let peer):
        trace.add(now, .found, machine, number(of: peer.id), Int(peer.hops))
        if !machines[machine].found.insert(number(of: peer.id)).inserted {
          fail("machine \(machine) finds a peer twice")
        }
      case .changed(let peer):
        trace.add(now, .changed, machine, number(of: peer.id), Int(peer.hops))
        changeCount += 1
        if !machines[machine].found.contains(number(of: peer.id)) {
          fail("machine \(machine): an unknown peer changes")
        }
      case .lost(let id):
        trace.add(now, .lost, machine, number(of: id))
        if machines[machine].found.remove(number(of: id)) == nil { fail("machine \(machine) loses an unknown peer") }
      }
    }
  }

  func number(of id: NodeID) -> Int { machines.firstIndex { $0.identity.id == id } ?? -1 }

  // MARK: Streams

  private func side(of stream: Int, _ machine: Int, _ slot: Int) -> Int {
    streams[stream].ends.0.machine == machine && streams[stream].ends.0.slot == slot ? 0 : 1
  }

  private func dialEnds(_ machine: Int, _ life: Int, _ wire: Int) {
    guard machines[machine].life == life, machines[machine].node != nil else { return }
    let other = wires[wire].other(machine)
    guard wires[wire].isUp, machines[other].node != nil else { return tell(machine, .dialFailed(UInt32(wire))) }
    let ends = (
      Stream.End(machine: machine, life: life), Stream.End(machine: other, life: machines[other].life)
    )
    streams.append(Stream(wire: wire, ends: ends))
    // Either end may be the first to know that the handshake is over.
    for side in 0...1 {
      plan(.opens(stream: streams.count - 1, side: side), after: span(.milliseconds(0), wires[wire].delay.most))
    }
  }

  private func opens(_ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    let wire = streams[stream].wire
    guard machines[end.machine].life == end.life, let node = machines[end.machine].node, !end.isGone else { return }
    let peer = machines[wires[wire].other(end.machine)].identity.id
    let handle = side == 0 ? UInt32(wire) : nil
    guard let slot = node.openLink(peer: peer, bearer: wires[wire].bearer, dialled: handle, now: now) else {
      streams[stream][end: side].isGone = true
      plan(.streamEnds(stream: stream, side: 1 - side), after: wires[wire].delay.most)
      return
    }
    trace.add(now, .open, end.machine, slot, wire)
    streams[stream][end: side].slot = slot
    machines[end.machine].streams[slot] = stream
    events.plan(.arrival(stream: stream, from: 1 - side), at: now)
    touched(end.machine)
  }

  /// Move frames from a link into its stream, while there is room in it or until `all` are gone.
  private func send(_ stream: Int, _ side: Int, all: Bool) {
    let end = streams[stream][end: side]
    let wire = wires[streams[stream].wire]
    guard let slot = end.slot, let node = machines[end.machine].node else { return }
    while all || streams[stream][from: side].byteCount < wire.windowBytes {
      let count = scratch.withUnsafeMutableBytes { node.pop(slot, into: $0, now: now) }
      if count == 0 {
        streams[stream][from: side].isFull = false
        return
      }
      observe(Array(scratch[..<count]), stream, side)
      if !streams[stream].isDead { cut(Array(scratch[..<count]), stream, side, wire) }
    }
    streams[stream][from: side].isFull = true
  }

  /// A stream keeps the order of bytes, but not where one piece ends and the next begins.
  private func cut(_ bytes: [UInt8], _ stream: Int, _ side: Int, _ wire: Wire) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = random.chance(perThousand: 300) ? Int(random.below(UInt64(rest.count))) + 1 : rest.count
      let at = max(streams[stream][from: side].lastArrival, now + span(wire.delay.least, wire.delay.most))
      streams[stream][from: side].pieces.append((at, Array(rest.prefix(count))))
      streams[stream][from: side].lastArrival = at
      events.plan(.arrival(stream: stream, from: side), at: at)
      rest = rest.dropFirst(count)
    }
    streams[stream][from: side].byteCount += bytes.count
  }

  private func observe(_ bytes: [UInt8], _ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    let frames = frames(in: bytes)
    if frames.reduce(0, { $0 + $1.header.frameByteCount }) != bytes.count {
      fail("machine \(end.machine) sends what is not a row of frames")
    }
    for frame in frames {
      trace.add(now, .frame, end.machine, Int(frame.header.type), Int(truncatingIfNeeded: frame.header.identifier))
      let wrong = observer.sent(
        frame.header, frame.payload.span.bytes, by: end.machine, life: end.life,
        id: machines[end.machine].identity.id, stream: stream, side: side, to: streams[stream][end: 1 - side].machine)
      if let wrong { fail("machine \(end.machine) \(wrong)") }
    }
  }

  private func arrival(_ stream: Int, from side: Int) {
    let wire = wires[streams[stream].wire]
    let end = streams[stream][end: 1 - side]
    if streams[stream].isDead || end.isGone { return }
    guard machines[end.machine].life == end.life, let node = machines[end.machine].node, let slot = end.slot else {
      return
    }
    if wire.stalledUntil > now {
      return events.plan(.arrival(stream: stream, from: side), at: wire.stalledUntil)
    }
    while let first = streams[stream][from: side].pieces.first, first.at <= now {
      streams[stream][from: side].pieces.removeFirst()
      streams[stream][from: side].byteCount -= first.bytes.count
      trace.add(now, .bytes, end.machine, slot, first.bytes.count)
      first.bytes.withUnsafeBytes { node.receive($0, on: slot, now: now) }
      touched(end.machine)
      if streams[stream][end: 1 - side].isGone { break }
    }
    let sender = streams[stream][end: side]
    if streams[stream][from: side].isFull, !sender.isGone, machines[sender.machine].life == sender.life {
      send(stream, side, all: false)
      touched(sender.machine)
    }
    if streams[stream][from: side].hasEnded, streams[stream][from: side].pieces.isEmpty { streamEnds(stream, 1 - side) }
  }

  /// The end `side` is told that the stream is gone.
  func streamEnds(_ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    guard !end.isGone, machines[end.machine].life == end.life else { return }
    streams[stream][end: side].isGone = true
    guard let slot = end.slot else { return }
    machines[end.machine].streams[slot] = nil
    trace.add(now, .gone, end.machine, slot)
    tell(end.machine, .linkClosed(slot))
  }

  // MARK: Applications

  private func message() {
    if now >= faultsEnd { return }
    plan(.message, after: span(.milliseconds(1), options.messagePause * 2))
    let from = Int(random.below(UInt64(machines.count)))
    let choice = machines[from].found.sorted()
    let lane: Lane = random.chance(perThousand: 600) ? .interactive : .bulk
    let size = Int(random.below(random.chance(perThousand: 100) ? 40_000 : 1500))
    if choice.isEmpty { return }
    sendMessage(from, choice[Int(random.below(UInt64(choice.count)))], lane, size)
  }

  func sendMessage(_ from: Int, _ to: Int, _ lane: Lane, _ fillerBytes: Int) {
    guard let node = machines[from].node else { return }
    let route = MessageLedger.Route(from: from, life: machines[from].life, to: to, lane: lane)
    let bytes = ledger.next(on: route, fillerBytes: fillerBytes)
    let id: MessageID
    do throws(DeliveryRefusal) {
      id = try node.send(kind: 7, bytes.span.bytes, to: machines[to].identity.id, lane: lane, now: now)
    } catch {
      trace.add(now, .refused, from, to)
      return
    }
    trace.add(now, .sent, from, to, bytes.count)
    if let wrong = ledger.sent(on: route, id) { fail("machine \(from) \(wrong)") }
    touched(from)
  }

  /// True when something was taken that may have moved the node.
  private func drainMessages(_ machine: Int, _ node: Node) -> Bool {
    var hasRead = false
    while let (peer, completion) = node.nextCompletion() {
      let to = number(of: peer)
      trace.add(now, .completed, machine, to, completion.outcome == .delivered ? 1 : 0)
      let wrong = ledger.completed(
        by: machine, life: machines[machine].life, peer: to, completion, readerLife: machines[to].life,
        readerIsSlow: isSlow)
      if let wrong { fail("machine \(machine) \(wrong)") }
    }
    if machines[machine].readsFrom > now { return false }
    while let (peer, message) = node.nextMessage(now: now, { _, _ in true }) {
      hasRead = true
      trace.add(now, .read, machine, number(of: peer), message.bytes.count)
      let wrong = ledger.read(
        by: machine, life: machines[machine].life, from: number(of: peer), lane: message.lane, message.bytes)
      if let wrong { fail("machine \(machine) \(wrong)") }
    }
    return hasRead
  }

  private var isSlow: Bool { options.faults.contains(.slowReader) }
}
