import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import BearerIP

@Suite struct IPBearerTests {
  @Test func `a dialled and an accepted connection are handed over at their ends`() throws {
    let loop = try EventLoop()
    let (a, b) = (Node(loop), Node(loop))
    defer { a.bearer.stop(); b.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: 7)
    serve(loop) { !a.recorder.opened.isEmpty && !b.recorder.opened.isEmpty }
    let out = try #require(a.recorder.opened.first)
    let inbound = try #require(b.recorder.opened.first)
    #expect(out.token == 7)
    #expect(!out.isInbound)
    #expect(out.bearer == .loopback)
    #expect(out.unitBytesMax == .max)
    #expect(out.interfaceIndex == if_nametoindex("lo"))
    #expect(out.remote == .ip(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)))
    #expect(inbound.isInbound)
    #expect(inbound.token == 0)
    #expect(inbound.remote == localEndpoint(out.descriptor).map { .ip($0) })

    var byte: UInt8 = 0x81
    #expect(send(out.descriptor, &byte, 1, 0) == 1)
    var got: UInt8 = 0
    #expect(recv(inbound.descriptor, &got, 1, 0) == 1)
    #expect(got == 0x81)
  }

  @Test func `the bearer accepts IPv6 connections at the same port`() throws {
    try #require(hasIPv6Loopback(), "this test needs ::1 on lo")
    let loop = try EventLoop()
    let (a, b) = (Node(loop), Node(loop))
    defer { a.bearer.stop(); b.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(high: 0, low: 1, port: b.bearer.port, scope: 0)), token: 1)
    serve(loop) { !a.recorder.opened.isEmpty && !b.recorder.opened.isEmpty }
    #expect(a.recorder.opened.first?.remote == .ip(IPEndpoint(high: 0, low: 1, port: b.bearer.port, scope: 0)))
    #expect(b.recorder.opened.first?.bearer == .loopback)
  }

  @Test func `sockets that are handed over do not block and send small frames at once`() throws {
    let loop = try EventLoop()
    let (a, b) = (Node(loop), Node(loop))
    defer { a.bearer.stop(); b.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: 1)
    serve(loop) { !a.recorder.opened.isEmpty && !b.recorder.opened.isEmpty }
    for stream in a.recorder.opened + b.recorder.opened {
      var byte: UInt8 = 0
      #expect(recv(stream.descriptor, &byte, 1, 0) == -1)
      #expect(csystem_errno() == EAGAIN)
      var value: CInt = 0
      var length = socklen_t(MemoryLayout<CInt>.size)
      #expect(getsockopt(stream.descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &value, &length) == 0)
      #expect(value == 1)
    }
  }

  @Test func `a refused dial reports its address and the reason`() throws {
    let loop = try EventLoop()
    let (a, b) = (Node(loop), Node(loop))
    let port = b.bearer.port
    b.bearer.stop()
    defer { a.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: port)), token: 9)
    #expect(a.recorder.failed.isEmpty, "nothing may call back from within dial")
    serve(loop) { !a.recorder.failed.isEmpty }
    #expect(a.recorder.failed.count == 1)
    #expect(a.recorder.failed.first?.token == 9)
    #expect(a.recorder.failed.first?.reason == "127.0.0.1:\(port): Connection refused")
  }

  @Test func `a link-local address without an interface is refused with the remedy`() throws {
    let loop = try EventLoop()
    let a = Node(loop)
    defer { a.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(high: 0xFE80 << 48, low: 1, port: 1, scope: 0)), token: 3)
    #expect(a.recorder.failed.isEmpty, "nothing may call back from within dial")
    serve(loop) { !a.recorder.failed.isEmpty }
    #expect(a.recorder.failed.first?.token == 3)
    #expect(a.recorder.failed.first?.reason.contains("write it with its interface") == true)
  }

  @Test func `a dial over a disallowed interface fails`() throws {
    let loop = try EventLoop()
    let b = Node(loop)
    let a = Node(loop) { $0.allowsLoopback = false }
    defer { a.bearer.stop(); b.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: 4)
    serve(loop) { !a.recorder.failed.isEmpty }
    #expect(a.recorder.opened.isEmpty)
    #expect(a.recorder.failed.first?.reason.contains("settings do not allow") == true)
  }

  @Test func `a connection over a disallowed interface is closed, and reported once`() throws {
    let loop = try EventLoop()
    let a = Node(loop)
    let b = Node(loop) { $0.allowsLoopback = false }
    defer { a.bearer.stop(); b.bearer.stop() }
    for token in 1...2 {
      a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: UInt32(token))
    }
    serve(loop) { b.bearer.refusedCount == 2 && a.recorder.opened.count == 2 }
    #expect(b.bearer.refusedCount == 2)
    #expect(b.recorder.opened.isEmpty)
    #expect(b.recorder.reports.count == 1)
    var byte: UInt8 = 0
    for stream in a.recorder.opened {
      var wait = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
      #expect(poll(&wait, 1, 10_000) == 1 && recv(stream.descriptor, &byte, 1, 0) == 0)
    }
  }

  @Test func `connections over disallowed interfaces cause one enumeration of interfaces per second`() throws {
    let loop = try EventLoop()
    let a = Node(loop)
    var looks = 0
    let b = Node(
      loop, { $0.allowsLoopback = false },
      enumerate: { rules in
        looks += 1
        return enumerateInterfaces(rules)
      })
    defer { a.bearer.stop(); b.bearer.stop() }
    let before = looks
    for token in 0..<30 {
      a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: UInt32(token))
    }
    serve(loop) { b.bearer.refusedCount == 30 }
    #expect(b.bearer.refusedCount == 30)
    // The bearer enumerates the interfaces at most once per second for connections to an unknown address. Another test
    // that changes an interface causes further enumerations.
    #expect(looks - before <= 4)
  }

  @Test func `an address is on-link only on the interface that has its network`() throws {
    let loop = try EventLoop()
    let interfaces = [
      NetworkInterface(
        name: "a", index: 2, kind: .ethernet,
        addresses: [
          InterfaceAddress(high: 0, low: 0xFFFF_C000_0201, prefixLength: 120),
          InterfaceAddress(high: 0x2001_0DB8_0000_0000, low: 1, prefixLength: 64),
        ]),
      NetworkInterface(
        name: "b", index: 3, kind: .wifi,
        addresses: [InterfaceAddress(high: 0, low: 0xFFFF_C633_6401, prefixLength: 120)]),
    ]
    let a = Node(loop, enumerate: { _ in interfaces })
    defer { a.bearer.stop() }
    func isOnLink(_ high: UInt64, _ low: UInt64, scope: UInt32 = 0, heardOn index: UInt32) -> Bool {
      a.bearer.isOnLink(IPEndpoint(high: high, low: low, port: 22, scope: scope), interfaceIndex: index)
    }
    #expect(isOnLink(0, 0xFFFF_C000_02FE, heardOn: 2))
    #expect(!isOnLink(0, 0xFFFF_C000_0301, heardOn: 2))
    #expect(!isOnLink(0, 0xFFFF_C000_02FE, heardOn: 3))
    #expect(isOnLink(0x2001_0DB8_0000_0000, 0xFFFF, heardOn: 2))
    #expect(!isOnLink(0x2001_0DB8_0000_0001, 0xFFFF, heardOn: 2))
    #expect(isOnLink(0xFE80 << 48, 5, scope: 3, heardOn: 3))
    #expect(!isOnLink(0xFE80 << 48, 5, scope: 2, heardOn: 3))
    #expect(!isOnLink(0, 0xFFFF_C000_02FE, heardOn: 9))
  }

  @Test func `a port in use is reported, and the bearer still dials`() throws {
    let loop = try EventLoop()
    let b = Node(loop)
    let a = Node(loop) { $0.port = b.bearer.port }
    defer { a.bearer.stop(); b.bearer.stop() }
    #expect(a.bearer.port == 0)
    #expect(a.recorder.reports.count == 1)
    #expect(a.recorder.reports.first?.isFault == true)
    #expect(a.recorder.reports.first?.text.contains("cannot listen on port \(b.bearer.port)") == true)
    a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: 1)
    serve(loop) { !a.recorder.opened.isEmpty }
    #expect(a.recorder.opened.count == 1)
  }

  @Test func `a static peer is a candidate without a hint`() throws {
    let loop = try EventLoop()
    let a = Node(loop) {
      $0.peers = [StaticPeer(endpoint: IPEndpoint(ipv4: loopbackIPv4, port: 41_820), interface: "")]
    }
    defer { a.bearer.stop() }
    #expect(a.recorder.found == [candidate(IPEndpoint(ipv4: loopbackIPv4, port: 41_820))])
  }

  @Test func `no callback is made after stop`() throws {
    let loop = try EventLoop()
    let (a, b) = (Node(loop), Node(loop))
    defer { b.bearer.stop() }
    a.bearer.dial(candidate(IPEndpoint(ipv4: loopbackIPv4, port: b.bearer.port)), token: 1)
    a.bearer.dial(candidate(IPEndpoint(high: 0xFE80 << 48, low: 1, port: 1, scope: 0)), token: 2)
    a.bearer.stop()
    serve(loop) { !b.recorder.opened.isEmpty }
    #expect(a.recorder.opened.isEmpty)
    #expect(a.recorder.failed.isEmpty)
  }
}

@Suite struct StreamDialerTests {
  @Test func `an unanswered dial fails at its timeout`() throws {
    let loop = try EventLoop()
    let full = try makeFullListener()
    defer { close(full.descriptor); close(full.filler) }
    var reasons: [String] = []
    let dialer = StreamDialer(
      loop, connectTime: .milliseconds(30), connected: { descriptor, _, _ in close(descriptor) },
      failed: { reasons.append("\($0) \($1)") })
    dialer.dial(IPEndpoint(ipv4: loopbackIPv4, port: full.port), token: 5)
    let begin = monotonicNow()
    serve(loop) { !reasons.isEmpty }
    #expect(reasons == ["5 127.0.0.1:\(full.port): no answer in 30 ms"])
    #expect((monotonicNow() - begin).milliseconds >= 25)
    dialer.close()
  }

  @Test func `a dial beyond the limit is refused, and the others continue`() throws {
    let loop = try EventLoop()
    let full = try makeFullListener()
    defer { close(full.descriptor); close(full.filler) }
    var failed: [UInt32] = []
    let dialer = StreamDialer(
      loop, connected: { descriptor, _, _ in close(descriptor) }, failed: { token, _ in failed.append(token) })
    for token in 0...StreamDialer.dialsMax {
      dialer.dial(IPEndpoint(ipv4: loopbackIPv4, port: full.port), token: UInt32(token))
    }
    serve(loop) { !failed.isEmpty }
    #expect(failed == [UInt32(StreamDialer.dialsMax)])
    dialer.close()
  }
}
