import Bearer
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import Relay

/// The closing of a stream's socket, so that the peer can read the last bytes.
@Suite struct LinkStreamTests {
  private let loop: EventLoop
  private let scratch = LinkScratch()
  init() throws { loop = try EventLoop() }

  /// A TCP connection over the loopback interface. A reset discards received bytes on TCP, but not on a socket pair.
  private func makeConnection() throws -> (stream: LinkStream, other: CInt) {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let other = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, __CONST_SOCKADDR_ARG(__sockaddr__: $0), length) | listen(listener, 1)
          | getsockname(listener, __SOCKADDR_ARG(__sockaddr__: $0), &length)
          | connect(other, __CONST_SOCKADDR_ARG(__sockaddr__: $0), length)
      }
    }
    try #require(code == 0)
    let descriptor = accept4(listener, __SOCKADDR_ARG(__sockaddr__: nil), nil, CInt(SOCK_NONBLOCK.rawValue))
    let handoff = StreamHandoff(
      descriptor: descriptor, bearer: .loopback, isInbound: true, token: 0, unitBytesMax: .max, interfaceIndex: 0,
      remote: .ip(IPEndpoint(high: 0, low: 0xFFFF_7F00_0001, port: 5, scope: 0)))
    return (try LinkStream(loop, handoff, scratch), other)
  }

  private func put(_ other: CInt, _ count: Int) -> Int {
    let bytes = [UInt8](repeating: 0, count: count)
    return send(other, bytes, count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
  }

  @Test func `a peer that is still sending receives the last bytes`() throws {
    let (stream, other) = try makeConnection()
    defer { close(other) }
    #expect(put(other, 1000) == 1000)
    let last: [UInt8] = [21, 3, 3, 0, 2, 2, 43]
    #expect(last.withUnsafeBytes { stream.send($0) } == .moved(7))
    stream.close(lingers: true)
    serve(loop, for: .milliseconds(50))
    // If the socket had been reset, this call would fail …
    #expect(put(other, 1000) == 1000)
    serve(loop, for: .milliseconds(50))
    #expect(put(other, 1000) == 1000)
    // … and the bytes that are read here would be lost.
    var read = [UInt8](repeating: 0, count: 10)
    #expect(recv(other, &read, 10, 0) == 7)
    #expect(recv(other, &read, 10, 0) == 0)
  }

  @Test func `a lingering stream closes when the other side has closed`() throws {
    let (stream, other) = try makeConnection()
    stream.close(lingers: true)
    #expect(scratch.lingering == 1)
    close(other)
    serve(loop) { scratch.lingering == 0 }
    #expect(scratch.lingering == 0)
  }

  @Test func `a lingering stream closes after two seconds, whatever the other side does`() throws {
    let (stream, other) = try makeConnection()
    defer { close(other) }
    stream.close(lingers: true)
    let start = monotonicNow()
    serve(loop) { scratch.lingering == 0 }
    #expect(scratch.lingering == 0 && monotonicNow() - start >= .milliseconds(1900))
  }

  @Test func `a lingering stream closes on a peer that sends endlessly`() throws {
    let (stream, other) = try makeConnection()
    defer { close(other) }
    stream.close(lingers: true)
    var sent = 0
    serve(loop) {
      sent += max(put(other, 16_384), 0)
      return scratch.lingering == 0
    }
    // The bytes above the limit were in the buffers of the two sockets when the stream was closed.
    #expect(scratch.lingering == 0 && sent < 16 * LinkStream.lingerBytesMax)
  }

  @Test func `thirty-two streams linger and further ones are closed at once`() throws {
    var others: [CInt] = []
    defer { for other in others { close(other) } }
    for _ in 0..<LinkStream.lingeringMax + 1 {
      let (stream, other) = try makeConnection()
      others.append(other)
      stream.close(lingers: true)
    }
    #expect(scratch.lingering == LinkStream.lingeringMax)
  }

  /// A stream over a socket that preserves datagram boundaries, with a full send buffer.
  private func makeFullChannel() throws -> (stream: LinkStream, ends: [CInt]) {
    var ends: [CInt] = [-1, -1]
    let kind = CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    var bytes: CInt = 8192
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
    while put(ends[0], 1000) > 0 {}
    let handoff = StreamHandoff(
      descriptor: ends[0], bearer: .bluetoothLE, isInbound: true, token: 0, unitBytesMax: 1000, interfaceIndex: 0,
      remote: .bluetooth(BluetoothEndpoint(address: 1, isRandom: false)))
    return (try LinkStream(loop, handoff, scratch), ends)
  }

  private func bufferBytes(_ descriptor: CInt) -> CInt {
    var bytes: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &size)
    return bytes
  }

  @Test func `a unit that does not fit after the kernel reported room enlarges the buffer`() throws {
    let (stream, ends) = try makeFullChannel()
    defer { for end in ends { close(end) } }
    let unit = [UInt8](repeating: 0, count: 1000)
    let before = bufferBytes(ends[0])
    stream.ready(EPOLLOUT.rawValue)
    #expect(unit.withUnsafeBytes { stream.send($0) } == .later)
    #expect(bufferBytes(ends[0]) == 2 * before)
    #expect(unit.withUnsafeBytes { stream.send($0) } != .later)
  }

  @Test func `a unit that does not fit waits if no room was reported`() throws {
    let (stream, ends) = try makeFullChannel()
    defer { for end in ends { close(end) } }
    let unit = [UInt8](repeating: 0, count: 1000)
    let before = bufferBytes(ends[0])
    #expect(unit.withUnsafeBytes { stream.send($0) } == .later)
    #expect(bufferBytes(ends[0]) == before)
  }
}
