import Channel
import Frame
import Link
import Node
import NodeSupport
import Primitives
import SealSupport
import Session
import SessionSupport
import TestSupport

/// A complete network of the firmware's nodes in one thread. The clock, wires, streams, crashes and applications are
/// simulated. All random numbers come from one seed.
///
/// docs/protocol.md defines what the nodes must do. Safety properties are checked at every step, and liveness after the
/// faults (Liveness.swift).
public final class Simulation {
  enum Event {
    case deadline(machine: Int)
    case wakeEnds(machine: Int, life: Int)
    case dialEnds(machine: Int, life: Int, wire: Int, until: Instant?)
    case opens(stream: Int, side: Int)
    case arrival(stream: Int, from: Int)
    case room(stream: Int, side: Int)
    case streamEnds(stream: Int, side: Int)
    case seen(machine: Int, life: Int, wire: Int)
    case unseen(machine: Int, life: Int, wire: Int)
    /// A radio has not received the advertisements of the wire's other end for long, so discovery loses this end.
    case unheard(machine: Int, life: Int, wire: Int)
    case fault
    case flap(wire: Int)
    case thaw(machine: Int)
    case stop(machine: Int)
    case lightAgain(wire: Int)
    case start(machine: Int)
    case message
    case reading(machine: Int, life: Int)
    case lie
    case decision(machine: Int, life: Int, peer: Int, isAccepted: Bool)
  }

  public let options: Options
  let keys: KeyMaker
  let network: NetworkPlan
  var random: SeededRandom
  public internal(set) var now = Instant.zero + .seconds(1000)
  var events = EventHeap<Event>()
  var machines: [Machine] = []
  /// The machine that owns each id. Clones are left out, because they use the id of another machine.
  var numbers: [NodeID: Int] = [:]
  var wires: [Wire] = []
  var streams: [Stream] = []
  /// The streams that are open at one end at least. Each end is notified separately that a stream has ended.
  var open: [Int] = []
  var observer = FrameObserver()
  var ledger = MessageLedger()
  /// Whether a node may hold back received messages. A session message waits until its signatures are verified, and so
  /// do the messages behind it in its lane. All of these messages are acknowledged earlier, so a completed message may
  /// be unread.
  var holdsMessages = false
  public internal(set) var trace: Trace
  /// The relay that applies the faults of frames in this run (`Mischief`), or nil. `wasVillain` is true once that relay
  /// has applied a fault.
  var villain: Int?
  var wasVillain = false
  /// The hostile relay that attacks now and its attack, or nil. `lieCount` counts its lies, and `lieTicks` its steps.
  var liarAtWork: (machine: Int, lie: Lie)?
  var lieCount = 0
  var lieTicks = 0
  /// The slots that a hostile relay claims from its victims, and the slots that other machines got meanwhile.
  var claim = Claim()
  public internal(set) var liarReport: LiarReport?
  /// The number of starts of machines so far.
  var lives = 0
  /// Whether all faults have ended.
  var isHealed = false
  /// The number of unencrypted payloads that contained the canary of `MessageLedger`.
  var canaryCount = 0
  /// Whether a node refused a session although the peer's key was right. An application rejected the certificate, or
  /// two nodes contradicted each other.
  var hadRefusal = false
  /// The number of machines whose node reported that its key is used twice.
  public internal(set) var alarmCount = 0
  /// The number of times that each fault was applied.
  public internal(set) var faultCounts: [Fault: Int] = [:]
  /// The measured times of convergence, in milliseconds.
  public internal(set) var convergence = Convergence()
  /// The highest number of Bluetooth connections of a machine at the time of a dial.
  var slotsTaken = 0
  /// The session events that the applications received.
  var sessionEvents: [(machine: Int, life: Int, event: SessionEvent)] = []
  /// The number of events in which a node reported a changed peer.
  private(set) var changeCount = 0
  /// The first violation of a rule.
  public private(set) var violation: String?
  /// The time at which faults and random messages end.
  let faultsEnd: Instant
  var scratch = [UInt8](repeating: 0, count: 4 * Limits.frameBytesMax)

  /// Simulates the random network of a seed with its faults.
  public convenience init(_ options: Options, keys: @escaping KeyMaker = standInKey, isVerbose: Bool = false) {
    var random = SeededRandom(seed: options.seed ^ 0x0a11)
    self.init(.random(options, &random), options, keys, isVerbose: isVerbose)
  }

  /// Simulates a network that the caller designed, without faults and without random messages.
  public convenience init(_ network: NetworkPlan, seed: UInt64 = 1, isVerbose: Bool = false) {
    self.init(
      network, Options(quiet: seed, nodeCount: network.relays.count), Self.standInKey, isVerbose: isVerbose)
  }

  private init(_ network: NetworkPlan, _ options: Options, _ keys: @escaping KeyMaker, isVerbose: Bool) {
    self.options = options
    self.network = network
    self.keys = keys
    random = SeededRandom(seed: options.seed ^ 0x5eed)
    trace = Trace(isVerbose: isVerbose)
    faultsEnd = now + options.faultSpan
    build()
  }

  /// A fast stand-in for a key. The same seed and number give the same key on every computer.
  public static func standInKey(_ seed: UInt64, _ number: Int) -> any SimulatedKey {
    StandInCryptography(Identity(seed &* 1000 &+ UInt64(number)))
  }

  func fail(_ what: String) {
    if violation == nil { violation = what }
    trace.note(now, "VIOLATION \(what)")
  }

  /// Handles all events up to `end`, or up to the first violation.
  public func run(until end: Instant) {
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
    if let machine = machine(of: event), machines[machine].frozenUntil > now {
      return events.plan(event, at: machines[machine].frozenUntil)
    }
    switch event {
    case .deadline(let machine): deadline(machine)
    case .wakeEnds(let machine, let life):
      if machines[machine].life == life, machines[machine].eventsSinceDrain > 0 { drain(machine) }
    case .dialEnds(let machine, let life, let wire, let end): dialEnds(machine, life, wire, until: end)
    case .opens(let stream, let side): opens(stream, side)
    case .arrival(let stream, let side): arrival(stream, from: side)
    case .room(let stream, let side): room(stream, side)
    case .streamEnds(let stream, let side): streamEnds(stream, side)
    case .seen(let machine, let life, let wire): seen(machine, life, wire)
    case .unseen(let machine, let life, let wire):
      if machines[machine].life == life { tell(machine, .candidateLost(UInt32(wire))) }
    case .unheard(let machine, let life, let wire): unheard(machine, life, wire)
    case .fault: fault()
    case .flap(let wire): flapStep(wire)
    case .thaw(let machine): if machines[machine].frozenUntil <= now { touched(machine) }
    case .stop(let machine): if !isHealed { crash(machine, nil) }
    case .lightAgain(let wire): lightAgain(wire)
    case .start(let machine): start(machine)
    case .message: message()
    case .lie: lieAgain()
    case .reading(let machine, let life):
      if machines[machine].life == life { touched(machine) }
    case .decision(let machine, let life, let peer, let isAccepted):
      if machines[machine].life == life { decide(machine, peer, isAccepted) }
    }
  }

  /// The machine whose node handles the event, or nil. A frozen machine delays events for its node.
  private func machine(of event: Event) -> Int? {
    switch event {
    case .deadline(let machine), .wakeEnds(let machine, _), .dialEnds(let machine, _, _, _), .seen(let machine, _, _),
      .unseen(let machine, _, _), .unheard(let machine, _, _), .reading(let machine, _),
      .decision(let machine, _, _, _):
      machine
    case .opens(let stream, let side), .streamEnds(let stream, let side), .room(let stream, let side):
      streams[stream][end: side].machine
    case .arrival(let stream, let side): streams[stream][end: 1 - side].machine
    case .fault, .flap, .thaw, .stop, .lightAgain, .start, .message, .lie: nil
    }
  }

  // MARK: Nodes

  func tell(_ machine: Int, _ event: Node.Event) {
    guard let node = machines[machine].node else { return }
    node.handle(event, now: now)
    touched(machine)
  }

  private func deadline(_ machine: Int) {
    guard let node = machines[machine].node, machines[machine].timerAt <= now else { return }
    machines[machine].timerAt = .never
    let isDue = node.nextDeadline(now: now) <= now
    if isDue { node.handle(.timeout, now: now) }
    touched(machine, timedOut: isDue)
  }

  /// Called after the node has handled an event. As in the firmware, the node is drained once per pass of the event
  /// loop: after a random number of events, or after a pause without events.
  func touched(_ machine: Int, timedOut: Bool = false) {
    // An event after the deadline may have made another action due, for example a route for a waiting message. The node
    // may then report a deadline that is now.
    machines[machine].timedOutAt = timedOut ? now : .zero
    guard machines[machine].node != nil, machines[machine].frozenUntil <= now else { return }
    machines[machine].eventsSinceDrain += 1
    if machines[machine].eventsSinceDrain == 1 {
      plan(.wakeEnds(machine: machine, life: machines[machine].life), after: span(.milliseconds(0), options.wakeSpan))
    }
    if machines[machine].eventsSinceDrain >= machines[machine].wakeEvents { drain(machine) }
  }

  /// Drains a node by the rule in the comment of `Node`: takes its outputs until there are no more, and then reads its
  /// next deadline.
  func drain(_ machine: Int) {
    guard let node = machines[machine].node else { return }
    machines[machine].eventsSinceDrain = 0
    machines[machine].wakeEvents = 1 + Int(random.below(Machine.wakeEventsMax))
    repeat {
      while let output = node.nextOutput(now: now) { carryOut(output, machine, node) }
    } while takeMessages(machine, node)
    checkNode(machine, node)
    let deadline = node.nextDeadline(now: now)
    if deadline <= machines[machine].timedOutAt { fail("machine \(machine) does not handle a due deadline") }
    machines[machine].timedOutAt = .zero
    if deadline < machines[machine].timerAt {
      machines[machine].timerAt = max(deadline, now)
      events.plan(.deadline(machine: machine), at: max(deadline, now))
    }
  }

  private func carryOut(_ output: Node.Output, _ machine: Int, _ node: Node) {
    switch output {
    case .dial(let handle):
      trace.add(now, .dial, machine, Int(handle))
      let wire = wires[Int(handle)]
      // A handshake takes three round trips. Over a wire that is down, a handshake lasts until the dial's timeout.
      let delay = wire.model.delay
      let span = wire.isUp ? span(delay.least * 4, delay.most * 6) : span(.milliseconds(50), .seconds(4))
      plan(.dialEnds(machine: machine, life: machines[machine].life, wire: Int(handle), until: nil), after: span)
    case .transmit(let slot):
      guard let stream = machines[machine].streams[slot] else {
        return fail("machine \(machine) sends on a missing stream")
      }
      send(stream, side(of: stream, machine, slot), all: false)
    case .close(let slot): close(slot, machine, node)
    case .peer(let event): peerEvent(event, machine)
    case .decisionWanted(let peer, let chain): decisionWanted(machine, peer, chain)
    case .completed(let peer, let completion): completed(machine, peer, completion)
    case .messageWaiting(let peer, let pending): machines[machine].waiting.append((peer, pending.lane))
    case .datagram(let peer, let datagram): datagramCame(machine, peer, datagram.bytes)
    case .epochRaised(let epoch): machines[machine].epoch = epoch
    case .session(let event): sessionEvents.append((machine, machines[machine].life, event))
    }
  }

  private func close(_ slot: Int, _ machine: Int, _ node: Node) {
    guard let stream = machines[machine].streams[slot] else {
      return fail("machine \(machine) closes a missing stream")
    }
    let side = side(of: stream, machine, slot)
    trace.add(now, .close, machine, slot)
    send(stream, side, all: true)
    streams[stream][from: side].hasEnded = true
    events.plan(.arrival(stream: stream, from: side), at: max(streams[stream][from: side].lastArrival, now))
    streams[stream][end: side].isGone = true
    machines[machine].streams[slot] = nil
    node.handle(.linkClosed(slot), now: now)
  }

  private func peerEvent(_ event: PeerEvent, _ machine: Int) {
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

  func number(of id: NodeID) -> Int { numbers[id] ?? -1 }
}
