import Bearer
import CSystem
import LoopSupport
import Node
import Primitives
import Reactor
import Testing

@testable import Relay

private let hello: [UInt8] = [22, 3, 1, 2, 0, 1]
private let peer = NodeID(high: 1, low: 2)

/// Inbound streams before admission, over socket pairs and in a real event loop.
private final class Gate: InboundStreamsDelegate {
  let loop: EventLoop
  var streams: InboundStreams!
  var admitted: [(stream: StreamHandoff, opening: AdmissionGate.Opening)] = []
  var stalled: [UInt32] = []
  var wakeUps = 0
  private var others: [CInt] = []

  init() throws {
    loop = try EventLoop()
    streams = InboundStreams(loop, LinkScratch(), self)
    loop.batchEnded = { [unowned self] in wakeUps += 1 }
  }

  /// Closes everything, and breaks the reference cycle between this object and the loop.
  func close() {
    streams.close()
    streams = nil
    loop.batchEnded = nil
    for stream in admitted { CSystem.close(stream.stream.descriptor) }
    for other in others { CSystem.close(other) }
  }

  /// Opens a stream that comes from 192.0.2.`host`. Returns the sender's end.
  func arrive(_ host: Int, _ bytes: [UInt8] = []) throws -> CInt {
    var ends: [CInt] = [-1, -1]
    let type = CInt(bitPattern: SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
    try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
    others.append(ends[1])
    if !bytes.isEmpty { #expect(send(ends[1], bytes, bytes.count, 0) == bytes.count) }
    streams.arrive(
      StreamHandoff(
        descriptor: ends[0], bearer: .ethernet, isInbound: true, token: 0, unitBytesMax: .max, interfaceIndex: 0,
        remote: address(host)))
    return ends[1]
  }

  func streamAdmitted(_ stream: StreamHandoff, _ opening: AdmissionGate.Opening) {
    admitted.append((stream, opening))
  }

  func streamStalled(_ number: UInt32) {
    stalled.append(number)
    streams.handshakeEnded(number, .noLink)
  }
}

/// The address 192.0.2.`host`, port 5.
private func address(_ host: Int) -> RemoteAddress {
  .ip(IPEndpoint(high: 0, low: 0xFFFF_C000_0200 | UInt64(host), port: 5, scope: 0))
}

@Suite struct InboundStreamsTests {
  private let gate: Gate
  init() throws { gate = try Gate() }

  @Test func `a stream is admitted with the bytes that identified it, and no more are read`() throws {
    defer { gate.close() }
    _ = try gate.arrive(1, hello + [1, 2, 3])
    serve(gate.loop) { !gate.admitted.isEmpty }
    #expect(gate.admitted.map(\.opening.bytes) == [hello])
    var rest = [UInt8](repeating: 0, count: 10)
    #expect(recv(gate.admitted[0].stream.descriptor, &rest, 10, 0) == 3)
  }

  @Test func `a waiting stream that is half-closed is closed and causes no more wake-ups`() throws {
    defer { gate.close() }
    for host in 0..<Admission.handshakesMax - Admission.reserved { _ = try gate.arrive(host, hello) }
    serve(gate.loop) { gate.admitted.count == Admission.handshakesMax - Admission.reserved }
    let waiting = try gate.arrive(100, hello)
    serve(gate.loop, for: .milliseconds(100))
    shutdown(waiting, CInt(SHUT_WR))
    gate.wakeUps = 0
    serve(gate.loop, for: .milliseconds(100))
    #expect(gate.wakeUps < 5)
    var byte: UInt8 = 0
    #expect(recv(waiting, &byte, 1, 0) == 0)
    #expect(gate.streams.gate.admission.pendingStreams == 0)
  }

  @Test func `a waiting stream is admitted when a handshake has ended`() throws {
    defer { gate.close() }
    for host in 0..<Admission.handshakesMax - Admission.reserved { _ = try gate.arrive(host, hello) }
    // The sender sends more bytes than are read before admission.
    _ = try gate.arrive(100, hello + [1, 2, 3])
    serve(gate.loop) { gate.admitted.count == Admission.handshakesMax - Admission.reserved }
    serve(gate.loop, for: .milliseconds(100))
    #expect(gate.admitted.count == Admission.handshakesMax - Admission.reserved)
    gate.streams.handshakeEnded(gate.admitted[0].opening.stream, .link(peer, .stranger))
    #expect(gate.admitted.last?.stream.remote == address(100))
  }

  @Test func `a waiting stream is admitted in place of a stalled handshake`() throws {
    defer { gate.close() }
    for host in 0..<Admission.handshakesMax - Admission.reserved { _ = try gate.arrive(host, hello) }
    serve(gate.loop) { gate.admitted.count == Admission.handshakesMax - Admission.reserved }
    _ = try gate.arrive(100, hello)
    serve(gate.loop) { gate.admitted.last?.stream.remote == address(100) }
    #expect(gate.stalled == [gate.admitted[0].opening.stream])
  }

  @Test func `a refused stream receives an alert`() throws {
    defer { gate.close() }
    let other = try gate.arrive(1, Array("GET / HTTP/1.1\r\n\r\n".utf8))
    serve(gate.loop, for: .milliseconds(100))
    var alert = [UInt8](repeating: 0, count: 10)
    #expect(recv(other, &alert, 10, 0) == 7)
    #expect(alert[..<7] == [21, 3, 3, 0, 2, 2, 80])
    #expect(recv(other, &alert, 10, 0) == 0)
  }

  @Test func `the fifth stream of one address is refused`() throws {
    defer { gate.close() }
    for _ in 0..<Admission.perSourceMax { _ = try gate.arrive(1) }
    let fifth = try gate.arrive(1)
    var alert = [UInt8](repeating: 0, count: 10)
    #expect(recv(fifth, &alert, 10, 0) == 7)
  }

  @Test func `a stream that ends before its hello frees its slot`() throws {
    defer { gate.close() }
    let other = try gate.arrive(1, Array(hello[..<3]))
    serve(gate.loop, for: .milliseconds(30))
    shutdown(other, CInt(SHUT_RDWR))
    serve(gate.loop) { gate.streams.gate.admission.pendingStreams == 0 }
    #expect(gate.streams.gate.admission.pendingStreams == 0)
  }
}
