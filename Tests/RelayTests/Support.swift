import Bearer
import Channel
import Configuration
import FileSupport
import Frame
import Identity
import Journal
import Node
import Primitives
import Reactor
import SecureTransport
import Status
import Testing
import Trust

@testable import Relay

/// A stream in memory. The test decides when the bytes that one end has sent can be read at the other end.
final class FakeIO: LinkIO {
  var now = Instant.zero + .seconds(1000)
  var segments: SegmentCounts?
  var other: FakeIO?
  /// The bytes that arrived but that the driver has not read yet.
  var incoming: [UInt8] = []
  /// The number of bytes that each call of `send` accepted.
  var sends: [Int] = []
  var receives: [Int] = []
  /// The number of bytes that the stream accepts before blocking.
  var room = Int.max
  var hasEnded = false
  var waitsForRoom = false
  var questionsForRoom = 0
  var wakeUp = Instant.never
  /// Nil while the stream is open; after `close`, whether the stream lingers, which means that it reads until the peer
  /// closes.
  var lingers: Bool?

  func receive(into buffer: UnsafeMutableRawBufferPointer) -> TransferOutcome {
    #expect(lingers == nil, "a closed stream is read")
    let count = min(buffer.count, incoming.count)
    if count == 0 { return hasEnded ? .ended : .later }
    buffer.copyBytes(from: incoming[..<count])
    incoming.removeFirst(count)
    receives.append(count)
    return .moved(count)
  }

  func send(_ bytes: UnsafeRawBufferPointer) -> TransferOutcome {
    #expect(lingers == nil, "a closed stream is written to")
    let count = min(bytes.count, room)
    if count == 0 { return .later }
    room -= count
    sends.append(count)
    other?.incoming += bytes[..<count]
    return .moved(count)
  }

  func waitForRoom(_ waits: Bool) {
    waitsForRoom = waits
    questionsForRoom += 1
  }
  func wake(at instant: Instant) { wakeUp = instant }
  func close(lingers: Bool) {
    #expect(self.lingers == nil, "a stream is closed twice")
    self.lingers = lingers
    other?.hasEnded = true
  }
}

/// A node that has this identity and relays.
func makeNode(_ identity: NodeIdentity, now: Instant) throws -> Node {
  let point = identity.publicPoint
  let settings = NodeSettings(
    id: identity.id, epoch: 1, point: (0..<65).map { point[$0] }, name: try DisplayName(([97] as [UInt8]).span.bytes),
    serviceType: Array("chat".utf8), info: [], relays: true, bypass: true, encryption: .none)
  return Node(settings, try MbedCryptography(identity), journal: .none, now: now)
}

/// The node, the links and the trust of a daemon without radios, which accepts every key. Its state is in a directory.
struct BareLinks {
  let trust: TrustKeeper
  let node: Node
  let radios: Radios
  let manager: LinkManager

  init(_ loop: EventLoop, in directory: String, _ journal: Journal = .none, linkEnded: @escaping () -> Void) throws {
    let identity = try NodeIdentity.loadOrCreate(directory: directory)
    trust = TrustKeeper(
      identity, try TrustStore(StateDirectory(directory)), policy: .open, anchors: TrustAnchors(), operators: [],
      clock: { (TrustTime.releaseSeconds + 1000, true) })
    node = try makeNode(identity, now: loop.now)
    var configuration = Configuration()
    configuration.ip.isEnabled = false
    configuration.bluetooth.isEnabled = false
    configuration.wifiDirect.isEnabled = false
    let faults = FaultReports(.none, now: { .zero }) { _, _ in }
    let contacts = ContactRecorder(loop, node, trust)
    radios = Radios(loop, configuration, node, trust, .none, faults, contacts)
    manager = LinkManager(loop, node, trust, journal, contacts, radios, ended: linkEnded)
  }
}

/// A box with a node, and a driver for the box's only stream.
final class Box: LinkDriverDelegate {
  let identity: NodeIdentity
  let node: Node
  let scratch = LinkScratch()
  let io = FakeIO()
  let credentials: TLSCredentials
  private(set) var driver: LinkDriver!
  var provedCount = 0
  /// The number of received messages that were taken from the node.
  private(set) var messageCount = 0
  var ends: [String] = []
  var now: Instant { io.now }

  init(bearer: BearerKind = .ethernet, isInbound: Bool, unitBytesMax: Int = .max, judge: (any PeerJudge)? = nil) throws
  {
    identity = try makeIdentity()
    credentials = TLSCredentials(identity)
    node = try makeNode(identity, now: io.now)
    let handoff = StreamHandoff(
      descriptor: -1, bearer: bearer, isInbound: isInbound, token: isInbound ? 0 : 7, unitBytesMax: unitBytesMax,
      interfaceIndex: 0, remote: .ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0201, port: 5, scope: 0)))
    driver = try LinkDriver(io, handoff, credentials, judge: judge, self)
  }

  /// The number of handshake steps that may begin.
  var stepsLeft = Int.max

  func beginStep(_ driver: LinkDriver) -> Bool {
    if stepsLeft == 0 { return false }
    stepsLeft -= 1
    return true
  }

  func endStep() {}

  func linkProgressed(_ driver: LinkDriver) {}

  func linkProved(_ driver: LinkDriver) { provedCount += 1 }

  func linkOpened(_ driver: LinkDriver) {}

  func linkEnded(_ driver: LinkDriver, reason: String) {
    ends.append(reason)
    if let slot = driver.slot { node.handle(.linkClosed(slot), now: now) }
  }

  /// Carries out the node's outputs at the end of a pass of the event loop, until there are none.
  func drain() {
    var hadOutput = true
    while hadOutput {
      hadOutput = false
      while let output = node.nextOutput(now: now) {
        hadOutput = true
        switch output {
        case .transmit: driver.transmit()
        case .close: driver.finish()
        case .messageWaiting(let peer, let pending):
          if node.takeMessage(from: peer, pending.lane, now: now) != nil { messageCount += 1 }
        case .dial, .peer, .decisionWanted, .completed, .datagram, .epochRaised, .session: break
        }
      }
      // The node sends only part of its queued messages at one instant.
      io.now = now + .microseconds(1)
    }
    driver.wakeUpEnded()
  }
}

/// Two boxes, and the stream between them.
struct Cable {
  let client: Box
  let server: Box

  init(bearer: BearerKind = .ethernet, unitBytesMax: Int = .max, judge: (any PeerJudge)? = nil) throws {
    client = try Box(bearer: bearer, isInbound: false, unitBytesMax: unitBytesMax)
    server = try Box(bearer: bearer, isInbound: true, unitBytesMax: unitBytesMax, judge: judge)
    client.io.other = server.io
    server.io.other = client.io
    for box in [client, server] { box.driver.start([], deadline: box.now + .seconds(5)) }
  }

  /// Serves both boxes as an event loop would, until neither has work or `wakeUpsMax` passes are made.
  func run(wakeUpsMax: Int = 10_000) {
    for _ in 0..<wakeUpsMax {
      var hasWorked = false
      for box in [client, server] where box.io.lingers == nil {
        let canRead = !box.io.incoming.isEmpty || box.io.hasEnded
        let canWrite = box.io.waitsForRoom && box.io.room > 0
        if canRead || canWrite {
          box.driver.ready(canRead: canRead, canWrite: canWrite, isBroken: false)
          hasWorked = true
        }
        box.drain()
      }
      if !hasWorked { return }
    }
  }

  /// Advances time by `span`, and handles every deadline of both nodes on the way.
  func pass(_ span: TimeSpan) {
    let end = client.now + span
    while true {
      let next = min(client.node.nextDeadline(now: client.now), server.node.nextDeadline(now: server.now))
      let now = max(client.now, min(next, end))
      for box in [client, server] {
        box.io.now = now
        if box.node.nextDeadline(now: now) <= now { box.node.handle(.timeout, now: now) }
        box.drain()
      }
      run()
      if next > end { return }
    }
  }

  /// Two boxes whose nodes have an established link to each other.
  static func linked(bearer: BearerKind = .ethernet, unitBytesMax: Int = .max) throws -> Cable {
    let cable = try Cable(bearer: bearer, unitBytesMax: unitBytesMax)
    cable.run()
    cable.pass(.milliseconds(500))
    try #require(cable.client.node.isLinked && cable.server.node.isLinked)
    return cable
  }
}

/// A judge of peer certificates that can refuse every peer.
final class Judge: PeerJudge {
  var refuses = false
  var checksMade = 0
  func refusal(of chain: PeerChain, _ node: NodeID) -> PeerRefusal? { refuses ? .revoked : nil }
}
