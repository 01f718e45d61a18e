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
private final class Links {
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
    let links = try BareLinks(loop, in: scratch.path) { [count] in count.ends += 1 }
    (node, radios, manager) = (links.node, links.radios, links.manager)
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

  /// A stream from 192.0.2.`host`. Returns the sender's end too.
  func inbound(_ host: Int) -> (handoff: StreamHandoff, other: CInt) {
    var ends: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
    others.append(ends[1])
    let handoff = StreamHandoff(
      descriptor: ends[0], bearer: .ethernet, isInbound: true, token: 0, unitBytesMax: .max, interfaceIndex: 0,
      remote: .ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0200 | UInt64(host), port: 5, scope: 0)))
    return (handoff, ends[1])
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
    let links = try Links()
    #expect(!links.manager.hasStream(with: links.remote(5)))
    links.manager.streamOpened(links.stream(port: 5))
    #expect(links.manager.hasStream(with: links.remote(5)) && !links.manager.hasStream(with: links.remote(6)))
    links.manager.finishHandshakes()
    #expect(!links.manager.hasStream(with: links.remote(5)) && links.endCount == 1)
  }

  @Test func `a stream without a proven key is no link`() throws {
    let links = try Links()
    links.manager.streamOpened(links.stream(port: 5))
    #expect(links.manager.count == 0 && links.manager.drivers.count == 1)
  }

  @Test func `one pass of the event loop makes one costly step of a handshake`() throws {
    let links = try Links()
    let stranger = try SecureStream(TLSCredentials(try makeIdentity()), role: .client)
    var others: [CInt] = []
    for host in 1...16 {
      let (handoff, other) = links.inbound(host)
      let hello = stranger.outgoing
      #expect(send(other, hello.baseAddress!, hello.count, 0) == hello.count)
      links.manager.streamOpened(handoff)
      others.append(other)
    }
    var (answered, most) = (0, 0)
    for _ in 0..<200 where answered < 16 {
      links.loop.turn(waitMilliseconds: 10)
      let now = others.count {
        var byte: UInt8 = 0
        return recv($0, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT)) == 1
      }
      (most, answered) = (max(most, now - answered), now)
    }
    // A step may take less than `stepTimeMax`; then a second one follows.
    #expect(answered == 16 && most <= 4)
  }

  @Test func `only the streams of a removed interface end`() throws {
    let links = try Links()
    for (port, interface) in [(5, 2), (6, 3), (7, 0)] as [(UInt16, UInt32)] {
      links.manager.streamOpened(links.stream(port: port, interface: interface))
    }
    links.manager.endLinks(exceptOn: [3])
    #expect([5, 6, 7].map { links.manager.hasStream(with: links.remote($0)) } == [false, true, true])
  }

  @Test func `a stream beyond twice the link slots is closed, and its dial fails`() throws {
    let links = try Links()
    links.find(1000)
    for port in 1...UInt16(2 * Limits.linksMax) { links.manager.streamOpened(links.stream(port: port)) }
    let late = links.stream(port: 1000)
    links.manager.streamOpened(late)
    var facts = stat()
    #expect(links.manager.drivers.count == 2 * Limits.linksMax && fstat(late.descriptor, &facts) == -1)
    #expect(links.failures(1000) == 1)
  }
}

@Suite struct RadiosTests {
  @Test func `the dial of a candidate that no radio has found fails at once`() throws {
    let links = try Links()
    links.find(9)
    links.radios.dial(9, links.loop.now)
    #expect(links.failures(9) == 1)
  }

  @Test func `a candidate that is found twice has one number until it is lost`() throws {
    let links = try Links()
    let candidate = Candidate(bearer: .ethernet, address: links.remote(7), hint: 4)
    links.radios.bearerFound(candidate)
    links.radios.bearerFound(candidate)
    var handles: [UInt32] = []
    links.radios.candidates.forEach { handle, _, _ in handles.append(handle) }
    let handle = try #require(handles.first)
    #expect(handles.count == 1 && links.node.plan(handle, now: links.loop.now)?.hint == 4)
    links.radios.bearerLost(candidate)
    #expect(links.node.plan(handle, now: links.loop.now) == nil)
  }

  @Test func `the dial of a candidate whose radio is off fails at once`() throws {
    let links = try Links()
    links.radios.bearerFound(Candidate(bearer: .ethernet, address: links.remote(7), hint: 0))
    var handles: [UInt32] = []
    links.radios.candidates.forEach { handle, _, _ in handles.append(handle) }
    let handle = try #require(handles.first)
    while links.node.nextOutput(now: links.loop.now) != nil {}
    links.radios.dial(handle, links.loop.now)
    #expect(links.failures(handle) == 1)
  }

  @Test func `without Wi-Fi Direct no group is opened`() throws {
    let links = try Links()
    #expect(links.radios.group == nil && !links.radios.openGroup())
  }
}
