import Bearer
import CSystem
import Configuration
import FileSupport
import Frame
import Identity
import Journal
import Node
import Primitives
import Reactor
import SecureTransport
import Testing
import Trust

@testable import Relay

/// A journal in memory with the filter that counts repeated records.
private final class Ring {
  private let memory: UnsafeMutableRawBufferPointer
  private let filter = UnsafeMutablePointer<RepeatFilter>.allocate(capacity: 1)
  let journal: Journal

  init() {
    memory = .allocate(byteCount: JournalLayout.fileBytes(capacity: 4096), alignment: 4096)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    filter.initialize(to: RepeatFilter(level: .info, capacity: 4096))
    journal = Journal(memory, level: .info, wallOffset: 0, boot: MachineBoot(high: 1, low: 0), filter: filter)
  }

  deinit {
    memory.deallocate()
    filter.deallocate()
  }

  /// The number of texts in the journal.
  func count() throws -> Int {
    let reader = try JournalReader(UnsafeRawBufferPointer(memory))
    guard reader.newest > 0 else { return 0 }
    return (reader.oldest...reader.newest).count { reader.record($0)?.event == Event.report.rawValue }
  }
}

private func id(_ number: UInt64) -> NodeID { NodeID(high: number, low: 7) }

/// The causes of the relay's lines, and the nodes that the lines are about.
@Suite struct RecordCauseTests {
  private let scratch = Scratch()

  private func keeper() throws -> TrustKeeper {
    TrustKeeper(
      try NodeIdentity.loadOrCreate(directory: scratch.path), try TrustStore(StateDirectory(scratch.path)),
      policy: .firstUse, anchors: TrustAnchors(), operators: [], clock: { (TrustTime.releaseSeconds + 1000, true) })
  }

  @Test func `the operator knows the keys that it pinned or revoked, and no others`() throws {
    let trust = try keeper()
    _ = try trust.pin(id(1), named: Array("anna".utf8))
    try trust.revoke(id(2))
    let proof = KeyProof(from: 1, over: .ethernet, at: .zero)
    #expect(trust.refusal(of: id(3), named: Array("carl".utf8), proof: proof) == nil && trust.isPinned(id(3)))
    #expect([1, 2, 3, 4].map { trust.decided(id($0)) } == [id(1), id(2), .none, .none])
    #expect(trust.decided(.none, .revoked) == .none)
  }

  @Test func `a refused key with a pinned name counts as a stranger's, because a name is only claimed`() throws {
    let trust = try keeper()
    _ = try trust.pin(id(1), named: Array("anna".utf8))
    let proof = KeyProof(from: 1, over: .ethernet, at: .zero)
    #expect(trust.refusal(of: id(4), named: Array("anna".utf8), proof: proof) == .keyChanged)
    #expect(trust.decided(id(4), .keyChanged) == .none)
  }

  @Test func `all nodes on revocation lists count as one, and other refusals are about strangers`() throws {
    let trust = try keeper()
    let listed = trust.decided(id(5), .revoked)
    #expect(listed != .none && listed != id(5) && listed == trust.decided(id(6), .revoked))
    #expect(trust.decided(id(5), .unknownIssuer) == .none)
  }

  /// Streams from different link-local addresses of an interface that fail in their handshake.
  private func fail(_ count: UInt64, on interface: UInt32, _ manager: LinkManager, _ loop: EventLoop) throws {
    for number in 0..<count {
      var ends: [CInt] = [-1, -1]
      try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
      close(ends[1])
      let remote = IPEndpoint(high: 0xFE80 << 48, low: 0xA000_0000 + number, port: 7, scope: interface)
      manager.streamOpened(
        StreamHandoff(
          descriptor: ends[0], bearer: .ethernet, isInbound: false, token: UInt32(number), unitBytesMax: .max,
          interfaceIndex: interface, remote: .ip(remote)))
      loop.turn(waitMilliseconds: 0)
    }
    loop.turn(waitMilliseconds: 0)
    #expect(manager.drivers.isEmpty)
  }

  @Test func `failing streams from many addresses of one interface leave records for other interfaces`() throws {
    let end = try End()
    try fail(200, on: 2, end.manager, end.loop)
    let written = try end.ring.count()
    #expect((10...48).contains(written), "\(written)")
    try fail(1, on: 3, end.manager, end.loop)
    #expect(try end.ring.count() == written + 1)
    try fail(1, on: 2, end.manager, end.loop)
    #expect(try end.ring.count() == written + 1)
  }

  @Test func `a record about a link is charged to its interface, or to a neighbour that the operator knows`() throws {
    let near = try End(), far = try End()
    try near.connect(far, on: 5)
    let slot = try #require(near.manager.drivers.first?.slot)
    #expect(near.ring.journal.cause(ofLink: slot) == .interface(5))
    #expect(near.manager.cause(behind: far.trust.identity.id) == .interface(5))
    _ = try near.trust.pin(far.trust.identity.id, named: Array("far".utf8))
    near.manager.attribute()
    #expect(near.ring.journal.cause(ofLink: slot) == .interface(5).about(far.trust.identity.id))
  }

  @Test func `a record about a revoked key is written while strangers fail without end`() throws {
    let near = try End(), far = try End()
    try near.trust.revoke(far.trust.identity.id)
    for interface in UInt32(1)...8 { try fail(60, on: interface, near.manager, near.loop) }
    let written = try near.ring.count()
    try near.connect(far, on: 2)
    #expect(try near.ring.count() == written + 1)
  }
}

/// The links of a daemon, without radios.
private final class End {
  let ring = Ring()
  let loop: EventLoop
  let trust: TrustKeeper
  let node: Node
  let radios: Radios
  let manager: LinkManager
  private let scratch = Scratch()

  init() throws {
    loop = try EventLoop()
    let links = try BareLinks(loop, in: scratch.path, ring.journal) {}
    (trust, node, radios, manager) = (links.trust, links.node, links.radios, links.manager)
  }

  /// Connects this end with another end, which dials, and lets both ends complete their handshake.
  func connect(_ other: End, on interface: UInt32) throws {
    var ends: [CInt] = [-1, -1]
    try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
    let remote = RemoteAddress.ip(IPEndpoint(high: 0xFE80 << 48, low: 0xB000_0000, port: 7, scope: interface))
    for (end, descriptor, isInbound) in [(self, ends[0], true), (other, ends[1], false)] {
      end.manager.streamOpened(
        StreamHandoff(
          descriptor: descriptor, bearer: .ethernet, isInbound: isInbound, token: 9, unitBytesMax: .max,
          interfaceIndex: interface, remote: remote))
    }
    for _ in 0..<50 {
      for end in [self, other] {
        end.loop.turn(waitMilliseconds: 0)
        end.manager.wakeUpEnded()
      }
    }
  }
}
