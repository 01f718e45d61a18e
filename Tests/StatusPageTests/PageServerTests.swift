import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import StatusPage

/// A page server on the loopback interface, and the loop that serves it.
private final class Box {
  let loop: EventLoop
  let server: PageServer
  var asked = 0
  var peers = ["bob"]

  init() throws {
    loop = try EventLoop()
    var peers: () -> [String] = { [] }
    server = try PageServer(
      loop, address: 0x7F00_0001, host: "127.0.0.1", port: 0, interface: "lo",
      // The addresses 127.0.0.2 to 127.0.0.9 belong to stations of the Wi-Fi group.
      station: { (2...9).contains($1 & 0xFF) ? UInt64($1) : nil },
      content: {
        PageContent(name: "attic", id: "a11c", ssid: "DIRECT-cw", peers: peers())
      })
    peers = { [unowned self] in
      asked += 1
      return self.peers
    }
  }
  deinit { server.close() }

  /// Opens a connection from 127.0.0.`host` and makes it non-blocking. With `takesLittle` the connection's receive
  /// buffer has the minimum size.
  func connect(from host: UInt32 = 1, takesLittle: Bool = false) throws -> CInt {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if takesLittle {
      var least: CInt = 1
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &least, socklen_t(MemoryLayout<CInt>.size))
    }
    let source = interfaceSocketAddress(0x7F00_0000 | host, 0)
    _ = withUnsafePointer(to: source) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = server.port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        CSystem.connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if result != 0 {
      let error = SystemError.last
      close(descriptor)
      throw error
    }
    return descriptor
  }

  func send(_ text: String, on descriptor: CInt) {
    let bytes = Array(text.utf8)
    _ = CSystem.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
  }

  /// The data received before the end of the connection. Nil if the connection does not end in time.
  func receive(_ descriptor: CInt, atMost: TimeSpan = .seconds(30)) -> String? {
    var text: [UInt8] = []
    var hasEnded = false
    serve(loop, atMost: atMost) {
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count > 0 { text += buffer[..<count] }
      if count == 0 || count < 0 && csystem_errno() == ECONNRESET { hasEnded = true }
      return hasEnded
    }
    return hasEnded ? String(decoding: text, as: UTF8.self) : nil
  }

  func ask(_ request: String, from host: UInt32 = 1) throws -> String {
    let descriptor = try connect(from: host)
    defer { close(descriptor) }
    send(request, on: descriptor)
    return try #require(receive(descriptor))
  }
}

private let get = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

@Suite(.serialized) struct PageServerTests {
  private let box: Box
  init() throws { box = try Box() }

  @Test func `a request is answered with the whole page, and the connection closes`() throws {
    let response = try box.ask(get)
    let parts = response.split(separator: "\r\n\r\n", maxSplits: 1)
    try #require(parts.count == 2)
    #expect(parts[0].hasPrefix("HTTP/1.1 200 OK\r\n") && parts[0].contains("\r\nConnection: close"))
    #expect(parts[0].contains("\r\nContent-Length: \(parts[1].utf8.count)\r\n"))
    #expect(parts[0].contains("default-src 'none'"))
    #expect(parts[1].hasPrefix("<!doctype html>") && parts[1].hasSuffix("</html>\n"))
  }

  @Test func `the response to HEAD contains the length of the page, but not the page`() throws {
    let response = try box.ask("HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    #expect(response.hasSuffix("\r\n\r\n") && !response.contains("<") && !response.contains("Content-Length: 0"))
  }

  @Test func `a refusal contains the reason in its head and its text`() throws {
    let response = try box.ask("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello")
    #expect(response.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n") && response.contains("\r\nAllow: GET, HEAD\r\n"))
    #expect(response.hasSuffix("\r\n\r\n405 Method Not Allowed\n"))
    for refusal in PageRefusal.allCases {
      let text = PageResponse.refusal(refusal, isHeadOnly: true)
      #expect(text.count <= PageResponse.headBytesMax, "\(refusal): \(text.count)")
    }
  }

  @Test func `a page is built once for many requests`() throws {
    for _ in 0..<8 { _ = try box.ask(get) }
    #expect(box.asked <= 3)
  }

  @Test func `a slow request times out`() throws {
    let slow = try box.connect()
    defer { close(slow) }
    box.send("GET / HT", on: slow)
    let start = monotonicNow()
    #expect(box.receive(slow) == "")
    #expect(monotonicNow() - start < PageConnection.requestTime + .seconds(3))
  }

  @Test func `one station cannot occupy all connections`() throws {
    let idle = try (0..<6).map { _ in try box.connect() }
    defer { for each in idle { close(each) } }
    // A new connection gets the slot of the oldest connection, which is closed.
    #expect(try box.ask(get).hasPrefix("HTTP/1.1 200 OK"))
  }

  @Test func `endless requests are served at a limited rate`() throws {
    var served = 0
    for _ in 0..<256 where try box.ask(get).hasPrefix("HTTP/1.1 200") { served += 1 }
    #expect(served >= 32 && served < 256)
  }

  @Test func `endless requests of one station do not reduce the rate of another`() throws {
    for _ in 0..<100 { _ = try box.ask(get, from: 2) }
    #expect(try box.ask(get, from: 3).hasPrefix("HTTP/1.1 200 OK"))
  }

  @Test func `a station with many addresses does not reduce the rate of another`() throws {
    var served = 0
    for number in 0..<400 as Range<UInt32> {
      if try box.ask(get, from: 100 + number % 100).hasPrefix("HTTP/1.1 200") { served += 1 }
    }
    #expect(served >= 32 && served < 400)
    #expect(try box.ask(get, from: 3).hasPrefix("HTTP/1.1 200 OK"))
  }

  @Test func `addresses without a known station share the connections of one station`() throws {
    var open = try [100, 101, 2, 3].map { try box.connect(from: $0) }
    defer { for each in open { close(each) } }
    serve(box.loop, for: .milliseconds(50))
    let known = Array(open[2...])
    for host in 102..<110 as Range<UInt32> { open.append(try box.connect(from: host)) }
    serve(box.loop, for: .milliseconds(50))
    for each in known {
      box.send(get, on: each)
      #expect(box.receive(each)?.hasPrefix("HTTP/1.1 200 OK") == true)
    }
  }

  @Test func `a station with a connection does not evict the only one of another station`() throws {
    // Four stations have taken all connection slots, and none has sent a request.
    var open = try [5, 2, 3, 4].map { try box.connect(from: $0) }
    defer { for each in open { close(each) } }
    serve(box.loop, for: .milliseconds(50))
    open.append(try box.connect(from: 2))
    serve(box.loop, for: .milliseconds(50))
    box.send(get, on: open[0])
    #expect(box.receive(open[0])?.hasPrefix("HTTP/1.1 200 OK") == true)
  }

  @Test func `stations that do not read their response lose their connections to another`() throws {
    box.peers = (0..<1000).map { _ in String(repeating: "<", count: 63) }
    var stalled: [CInt] = []
    defer { for each in stalled { close(each) } }
    for host in [2, 3, 4, 5] as [UInt32] {
      stalled.append(try box.connect(from: host, takesLittle: true))
      box.send(get, on: stalled[stalled.count - 1])
    }
    serve(box.loop, for: .milliseconds(1100))
    #expect(try box.ask(get, from: 6).hasPrefix("HTTP/1.1 200 OK"))
  }

  @Test func `a closed server serves no request`() throws {
    let waiting = try box.connect()
    defer { close(waiting) }
    serve(box.loop, for: .milliseconds(20))
    box.server.close()
    #expect(box.receive(waiting, atMost: .seconds(2)) == "")
    #expect(throws: SystemError(code: ECONNREFUSED)) { try box.connect() }
  }
}

@Test func `an address that the machine does not have is an error`() throws {
  let loop = try EventLoop()
  #expect(throws: SystemError(code: EADDRNOTAVAIL)) {
    try PageServer(
      loop, address: 0xC0A8_3101, host: "192.168.49.1", port: 0, interface: "lo", station: { _, _ in nil },
      content: { PageContent(name: "", id: "", ssid: "", peers: []) })
  }
}
