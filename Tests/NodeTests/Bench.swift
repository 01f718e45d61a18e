import Channel
import Frame
import Journal
import Link
import Node
import NodeSupport
import Primitives
import SealSupport
import Session
import Testing
import TestSupport

/// A node under the control of a test, which plays the node's neighbours.
final class Bench {
  /// Identities in ascending order of their ids, so that a test can choose which of two nodes has the lower id.
  static let people = (0..<40).map { Identity(UInt64($0)) }.sorted { $0.id < $1.id }

  let node: Node
  let identity: Identity
  private let cryptography: StandInCryptography
  var now = Instant.zero + .seconds(1000)
  /// The `close` and `dial` outputs since the last `takeCommands`, oldest first.
  private(set) var commands: [Node.Output] = []
  /// Outputs for the application, oldest first.
  private var news: [Node.Output] = []
  private var raisedEpoch: UInt64?
  /// The bytes that the node sent through each slot and that the test has not read yet.
  private var sentBytes = [[UInt8]](repeating: [], count: Limits.linksMax)
  private let journalMemory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: JournalLayout.fileBytes(capacity: 1024), alignment: 4096)
  /// If false, frames stay in the queues of the links.
  var carriesOutTransmit = true
  /// If false, all events belong to one pass of the event loop. The node is drained when `drains` becomes true again.
  var drains = true {
    didSet { drain() }
  }

  init(
    _ person: Int = 20, relays: Bool = true, bypass: Bool = false, epoch: UInt64 = 7, trust: (any NodeTrust)? = nil,
    encryption: EncryptionPreference = .none, bluetoothSlots: Int = Limits.linksMax
  ) {
    identity = Self.people[person]
    cryptography = StandInCryptography(identity)
    var settings = NodeSettings(
      id: identity.id, epoch: epoch, point: identity.point, name: DisplayName("here"),
      serviceType: [UInt8]("chat".utf8),
      info: [[UInt8]("a=b".utf8)], relays: relays, bypass: bypass,
      encryption: encryption)
    settings.bluetoothSlots = bluetoothSlots
    journalMemory.initializeMemory(as: UInt8.self, repeating: 0)
    let journal = Journal(journalMemory, level: .notice, wallOffset: 0, boot: MachineBoot(high: 1, low: 0))
    node = Node(settings, cryptography, trust: trust, journal: journal, now: now)
    drain()
  }

  deinit { journalMemory.deallocate() }

  func id(_ person: Int) -> NodeID { Self.people[person].id }

  // MARK: Driving

  /// Removes all outputs and all frames from the node. Also runs the work that the node has deferred.
  func drain() {
    drainOnce()
    // The node defers some work until it has handled other events. The bench has no other events, so the deferred work
    // runs at once.
    var pieces = 0
    while drains, pieces < 100, node.nextDeadline(now: now) <= now {
      node.handle(.timeout, now: now)
      drainOnce()
      pieces += 1
    }
  }

  private func drainOnce() {
    while drains, let output = node.nextOutput(now: now) {
      switch output {
      case .transmit(let slot):
        if carriesOutTransmit { take(slot) }
      case .close(let slot):
        take(slot)
        commands.append(output)
      case .dial:
        commands.append(output)
      case .epochRaised(let epoch): raisedEpoch = epoch
      case .peer, .decisionWanted, .completed, .messageWaiting, .datagram, .session:
        news.append(output)
      }
    }
  }

  /// Removes and returns the `close` and `dial` outputs since the last call.
  func takeCommands() -> [Node.Output] {
    defer { commands = [] }
    return commands
  }

  /// The epoch that the node has adopted since the last call, or nil.
  func takeRaisedEpoch() -> UInt64? {
    defer { raisedEpoch = nil }
    return raisedEpoch
  }

  /// Removes and returns the first output for the application that `choose` accepts.
  private func nextNews<Found>(_ choose: (Node.Output) -> Found?) -> Found? {
    drain()
    for index in news.indices {
      guard let found = choose(news[index]) else { continue }
      news.remove(at: index)
      return found
    }
    return nil
  }

  func nextCompletion() -> (peer: NodeID, completion: Completion)? {
    nextNews { if case .completed(let peer, let completion) = $0 { (peer, completion) } else { nil } }
  }

  func nextWaiting() -> (from: NodeID, pending: PendingMessage)? {
    nextNews { if case .messageWaiting(let peer, let pending) = $0 { (peer, pending) } else { nil } }
  }

  func nextMessage() -> (from: NodeID, message: ReceivedMessage)? {
    guard let (peer, pending) = nextWaiting(), let message = node.takeMessage(from: peer, pending.lane, now: now) else {
      return nil
    }
    drain()
    return (peer, message)
  }

  func nextDatagram() -> (from: NodeID, datagram: ReceivedDatagram)? {
    nextNews { if case .datagram(let peer, let datagram) = $0 { (peer, datagram) } else { nil } }
  }

  func nextSessionEvent() -> SessionEvent? {
    nextNews { if case .session(let event) = $0 { event } else { nil } }
  }

  func handle(_ event: Node.Event) {
    node.handle(event, now: now)
    drain()
  }

  func receive(_ bytes: [UInt8], on slot: Int) {
    bytes.withUnsafeBytes { node.receive($0, on: slot, now: now) }
    drain()
  }

  /// Lets the node receive the frames in `bytes` one by one. The frames arrive no faster than the node verifies the
  /// advertisements of one link, and computes the routes of a full table.
  func receivePaced(_ bytes: [UInt8], on slot: Int) {
    for (header, payload) in frames(in: bytes) {
      receive(encoded { output in header.write(to: &output) } + payload, on: slot)
      pass(.milliseconds(10))
    }
  }

  /// Lets time pass and handles every deadline within `span`. Returns the number of deadlines.
  @discardableResult
  func pass(_ span: TimeSpan) -> Int {
    let end = now + span
    var timeouts = 0
    while node.nextDeadline(now: now) <= end {
      now = max(now, node.nextDeadline(now: now))
      handle(.timeout)
      timeouts += 1
      if timeouts == 10_000 {
        Issue.record("a deadline that does not go away")
        break
      }
    }
    now = end
    return timeouts
  }

  private func take(_ slot: Int) {
    var buffer = [UInt8](repeating: 0, count: 300_000)
    while true {
      let count = buffer.withUnsafeMutableBytes { node.pop(slot, into: $0) }
      if count == 0 { return }
      sentBytes[slot] += buffer[..<count]
      // Removing frames made room in the link's queue. Draining moves waiting frames into the queue.
      if !carriesOutTransmit { drain() }
    }
  }

  /// The frames that the node has sent through `slot` since the last call.
  func sent(on slot: Int) -> [(header: FrameHeader, payload: [UInt8])] {
    if !carriesOutTransmit { take(slot) }
    defer { sentBytes[slot] = [] }
    return frames(in: sentBytes[slot])
  }

  func sent(_ type: FrameType, on slot: Int) -> [(header: FrameHeader, payload: [UInt8])] {
    sent(on: slot).filter { $0.header.knownType == type }
  }

  // MARK: Neighbours

  /// Opens a link to the neighbour `person` and completes the hello exchange. Discards all frames that the node has
  /// sent by then. Returns the slot of the link.
  func neighbour(
    _ person: Int, _ bearer: BearerKind = .ethernet, dialled handle: UInt32? = nil, epoch: UInt64 = 1,
    payloadBytesMax: Int = Limits.framePayloadBytesMax
  ) -> Int {
    let slot = open(person, bearer, dialled: handle)
    hello(person, on: slot, epoch: epoch, payloadBytesMax: payloadBytesMax)
    _ = sent(on: slot)
    return slot
  }

  func open(_ person: Int, _ bearer: BearerKind = .ethernet, source: UInt64 = 0, dialled handle: UInt32? = nil) -> Int {
    guard let slot = node.openLink(peer: id(person), bearer: bearer, source: source, dialled: handle, now: now) else {
      Issue.record("no link slot for \(person)")
      return 63
    }
    drain()
    return slot
  }

  func hello(_ person: Int, on slot: Int, epoch: UInt64 = 1, payloadBytesMax: Int = Limits.framePayloadBytesMax) {
    let payload = helloPayload(id(person), epoch: epoch, payloadBytesMax: payloadBytesMax)
    receive(frame(.hello, from: id(person), payload), on: slot)
  }

  /// A frame with an advertisement of the node `person`, signed by that node.
  func advertise(
    _ person: Int, _ kind: AdvertisementKind, _ body: [UInt8], epoch: UInt64 = 1, sequence: UInt64 = 1, ttl: UInt8 = 16,
    lifetimeSeconds: UInt16 = 180
  ) -> [UInt8] {
    let payload = advertisement(
      of: Self.people[person], kind, epoch: epoch, sequence: sequence, lifetimeSeconds: lifetimeSeconds, body: body)
    return frame(.advertisement, ttl: ttl, from: id(person), payload)
  }

  func topology(
    _ person: Int, _ others: [Int], relays: Bool = true, epoch: UInt64 = 1, sequence: UInt64 = 1, ttl: UInt8 = 16,
    lifetimeSeconds: UInt16 = 180, encryption: EncryptionPreference = .none
  ) -> [UInt8] {
    let neighbours = others.map {
      Neighbour(node: id($0), cost: BearerKind.ethernet.cost, payloadBytesMax: 16_640, bearer: .ethernet)
    }
    return advertise(
      person, .topology, topologyBody(relays: relays, encryption: encryption, neighbours), epoch: epoch,
      sequence: sequence, ttl: ttl,
      lifetimeSeconds: lifetimeSeconds)
  }

  func profile(
    _ person: Int, name: String = "x", epoch: UInt64 = 1, sequence: UInt64 = 1, lifetimeSeconds: UInt16 = 180
  )
    -> [UInt8]
  {
    advertise(
      person, .profile, profileBody(name: [UInt8](name.utf8)), epoch: epoch, sequence: sequence,
      lifetimeSeconds: lifetimeSeconds)
  }

  // MARK: Observing the node

  /// The number of journal records of `event` at level notice or above.
  func told(_ event: Event) -> Int {
    guard let reader = try? JournalReader(UnsafeRawBufferPointer(journalMemory)), reader.newest > 0 else { return 0 }
    return (reader.oldest...reader.newest).count { reader.record($0)?.event == event.rawValue }
  }

  var signCount: Int { cryptography.signCount }
  var verifyCount: Int { cryptography.verifyCount }

  func refusals(_ reason: FrameError) -> UInt64 { node.counters.refusals[reason] }

  /// The peer events since the last call, each as text: kind, name, number of hops. For a lost peer: kind and number of
  /// the peer.
  func peerEvents() -> [String] {
    var words: [String] = []
    while let event = nextNews({ if case .peer(let event) = $0 { event } else { nil } }) {
      switch event {
      case .found(let peer): words.append("found \(peer.name.text) \(peer.hops)")
      case .changed(let peer): words.append("changed \(peer.name.text) \(peer.hops)")
      case .lost(let id): words.append("lost \(Self.people.firstIndex { $0.id == id } ?? -1)")
      }
    }
    return words
  }
}
