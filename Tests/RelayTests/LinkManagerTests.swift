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

/// A daemon's links without radios: the streams are socket pairs, whose other ends the test holds.
private final class Office {
  let loop: EventLoop
  let node: Node
  let radios: Radios
  let manager: LinkManager
  private final class Count { var ends = 0 }
  private let count = Count()
  /// The number of streams that have ended.
  var endCount: Int { count.ends }
  private var others: [CInt] = []
  private let scratch = Scratch()

  init() throws {
    loop = try EventLoop()
    let identity = try NodeIdentity.loadOrCreate(directory: scratch.path)
    let trust = TrustKeeper(
      identity, try TrustStore(StateDirectory(scratch.path)), policy: .open, anchors: TrustAnchors(), operators: [],
      clock: { (TrustTime.releaseSeconds + 1000, true) })
    let point = identity.publicPoint
    let settings = NodeSettings(
      id: identity.id, epoch: 1, point: (0..<65).map { point[$0] }, name: try DisplayName(([97] as [UInt8]).span.bytes),
      serviceType: Array("chat".utf8), info: [], relays: true, bypass: true, encryption: .none)
    node = Node(settings, try MbedCryptography(identity), journal: .none, now: loop.now)
    var configuration = Configuration()
    configuration.ip.isEnabled = false
    configuration.bluetooth.isEnabled = false
    configuration.wifiDirect.isEnabled = false
    let faults = FaultReports(.none, now: { .zero }) { _, _ in }
    let contacts = ContactRecorder(loop, node, trust)
    radios = Radios(loop, configuration, node, trust, .none, faults, contacts)
    manager = LinkManager(loop, node, trust, .none, contacts, radios) { [count] in count.ends += 1 }
    radios.start()
  }

  deinit {
    manager.finishHandshakes()
    for descriptor in others { close(descriptor) }
  }

  /// A stream to 192.0.2.1, dialled by this node.
  func stream(port: UInt16, interface: UInt32 = 0) -> StreamHandoff {
    var ends: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
    others.append(ends[1])
    return StreamHandoff(
      descriptor: ends[0], bearer: .ethernet, isInbound: false, token: UInt32(port), unitBytesMax: .max,
      interfaceIndex: interface, remote: remote(port))
  }

  func remote(_ port: UInt16) -> RemoteAddress { .ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0201, port: port, scope: 0)) }

  /// The node finds a candidate and asks for its dial.
  func find(_ handle: UInt32) {
    node.handle(.candidateFound(FoundCandidate(handle, .ethernet, hint: 0)), now: loop.now)
    while node.nextOutput(now: loop.now) != nil {}
  }

  func failures(_ handle: UInt32) -> UInt32? { node.plan(handle, now: loop.now)?.failures }
}

@Suite struct LinkManagerTests {
  @Test func `a stream is known by its address from its opening to its end`() throws {
    let office = try Office()
    #expect(!office.manager.hasStream(with: office.remote(5)))
    office.manager.streamOpened(office.stream(port: 5))
    #expect(office.manager.hasStream(with: office.remote(5)) && !office.manager.hasStream(with: office.remote(6)))
    office.manager.finishHandshakes()
    #expect(!office.manager.hasStream(with: office.remote(5)) && office.endCount == 1)
  }

  @Test func `a stream without a proof is no link`() throws {
    let office = try Office()
    office.manager.streamOpened(office.stream(port: 5))
    #expect(office.manager.count == 0 && office.manager.drivers.count == 1)
  }

  @Test func `the streams of an interface that is gone end, and no others`() throws {
    let office = try Office()
    for (port, interface) in [(5, 2), (6, 3), (7, 0)] as [(UInt16, UInt32)] {
      office.manager.streamOpened(office.stream(port: port, interface: interface))
    }
    office.manager.endLinks(exceptOn: [3])
    #expect([5, 6, 7].map { office.manager.hasStream(with: office.remote($0)) } == [false, true, true])
  }

  @Test func `a stream beyond twice the link slots is closed, and its dial has failed`() throws {
    let office = try Office()
    office.find(1000)
    for port in 1...UInt16(2 * Limits.linksMax) { office.manager.streamOpened(office.stream(port: port)) }
    let late = office.stream(port: 1000)
    office.manager.streamOpened(late)
    var facts = stat()
    #expect(office.manager.drivers.count == 2 * Limits.linksMax && fstat(late.descriptor, &facts) == -1)
    #expect(office.failures(1000) == 1)
  }
}

@Suite struct RadiosTests {
  @Test func `the dial of a candidate that no radio has found fails at once`() throws {
    let office = try Office()
    office.find(9)
    office.radios.dial(9, office.loop.now)
    #expect(office.failures(9) == 1)
  }

  @Test func `a candidate that is found twice has one number until it is lost`() throws {
    let office = try Office()
    let candidate = Candidate(bearer: .ethernet, address: office.remote(7), hint: 4)
    office.radios.bearerFound(candidate)
    office.radios.bearerFound(candidate)
    var handles: [UInt32] = []
    office.radios.candidates.forEach { handle, _, _ in handles.append(handle) }
    let handle = try #require(handles.first)
    #expect(handles.count == 1 && office.node.plan(handle, now: office.loop.now)?.hint == 4)
    office.radios.bearerLost(candidate)
    #expect(office.node.plan(handle, now: office.loop.now) == nil)
  }

  @Test func `the dial of a candidate whose radio is off fails at once`() throws {
    let office = try Office()
    office.radios.bearerFound(Candidate(bearer: .ethernet, address: office.remote(7), hint: 0))
    var handles: [UInt32] = []
    office.radios.candidates.forEach { handle, _, _ in handles.append(handle) }
    let handle = try #require(handles.first)
    while office.node.nextOutput(now: office.loop.now) != nil {}
    office.radios.dial(handle, office.loop.now)
    #expect(office.failures(handle) == 1)
  }

  @Test func `without Wi-Fi Direct there is no group to open`() throws {
    let office = try Office()
    #expect(office.radios.group == nil && !office.radios.openGroup())
  }
}
