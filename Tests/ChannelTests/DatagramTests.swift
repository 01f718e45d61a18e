@testable import Channel
import Primitives
import Testing

private let start = at(1_000)

extension Channel {
  /// The payload of a datagram with `message`, or nil if the message is too long.
  fileprivate func datagram(_ message: [UInt8], kind: UInt8 = 9) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0xee, count: ChannelLimits.pathMTUMax)
    guard let longest = datagramBytesMax, message.count <= longest else { return nil }
    let count = buffer.withUnsafeMutableBytes { writeDatagram(kind: kind, message.span.bytes, into: $0) }
    return [UInt8](buffer[..<count])
  }

  fileprivate func take(_ payload: [UInt8]) throws(ChannelError) {
    try receiveDatagram(payload.span.bytes, now: start)
  }
}

/// A datagram from channel a of `pair` to channel b.
private func datagramFromA(_ number: UInt64, _ message: [UInt8] = [1], epoch: UInt64 = 0xa1) -> [UInt8] {
  let header = Datagram(epochs: EpochPair(destination: 0xb1, source: epoch), kind: 9, number: number)
  return encoded(Datagram.headerBytes) { header.encodeHeader(into: $0) } + message
}

@Suite struct DatagramTests {
  @Test func `a datagram carries its message and kind, and is not acknowledged`() throws {
    let (a, b) = pair()
    try b.take(try #require(a.datagram(Array("now".utf8), kind: 42)))
    try b.take(try #require(a.datagram([])))
    #expect(b.pendingDatagram?.kind == 42 && b.pendingDatagram?.byteCount == 3)
    #expect(b.nextDatagram() == ReceivedDatagram(kind: 42, bytes: Array("now".utf8)))
    #expect(b.nextDatagram() == ReceivedDatagram(kind: 9, bytes: []))
    #expect(b.nextDatagram() == nil)
    #expect(b.frames(start).isEmpty && a.nextDeadline == .never && b.nextDeadline == .never)
  }

  @Test func `a datagram fits one frame of the path and needs a route`() {
    let (a, _) = pair(pathMTU: 1_000)
    #expect(a.datagramBytesMax == 972)
    #expect(a.datagram([UInt8](repeating: 0, count: 972))?.count == 1_000)
    #expect(a.datagram([UInt8](repeating: 0, count: 973)) == nil)
    a.routeLost()
    #expect(a.datagramBytesMax == nil && a.datagram([1]) == nil)
  }

  @Test func `a duplicate datagram is delivered once`() throws {
    let (a, b) = pair()
    let payload = try #require(a.datagram([1]))
    try b.take(payload)
    #expect(refusal { () throws(ChannelError) in try b.take(payload) } == .alreadyReceived)
    #expect(b.nextDatagram() != nil && b.nextDatagram() == nil)
    #expect(b.datagramStatistics.duplicatesReceived == 1)
  }

  @Test func `datagrams are accepted out of order, up to 63 behind the newest`() throws {
    let (_, b) = pair()
    for number: UInt64 in [100, 37, 99, 101, 38] { try b.take(datagramFromA(number)) }
    for number: UInt64 in [100, 37, 99, 38, 36, 1] {
      #expect(refusal { () throws(ChannelError) in try b.take(datagramFromA(number)) } == .alreadyReceived)
    }
    try b.take(datagramFromA(.max))
    #expect(refusal { () throws(ChannelError) in try b.take(datagramFromA(102)) } == .alreadyReceived)
    #expect(b.datagramStatistics.received == 6)
  }

  @Test func `only the newest unread datagrams are kept`() throws {
    let (_, b) = pair()
    let longest = [UInt8](repeating: 0, count: ChannelLimits.pathMTUMax - Datagram.headerBytes)
    for number: UInt64 in 1...10 { try b.take(datagramFromA(number, [UInt8(number)] + longest.dropFirst())) }
    var first: [UInt8] = []
    while let next = b.nextDatagram() { first.append(next.bytes[0]) }
    #expect(first == [7, 8, 9, 10])
    #expect(b.datagramStatistics.droppedUnread == 6)
  }

  @Test func `a later epoch of the peer numbers its datagrams from 1, and the former epoch is refused`() throws {
    let (_, b) = pair()
    try b.take(datagramFromA(5))
    b.remoteRestarted(epoch: 0xa2)
    try b.take(datagramFromA(1, epoch: 0xa2))
    #expect(refusal { () throws(ChannelError) in try b.take(datagramFromA(6)) } == .otherSourceEpoch(0xa1))
    #expect(b.nextDatagram() != nil && b.nextDatagram() != nil)
  }

  @Test func `datagram numbers begin at 1 again in a new local epoch`() throws {
    let (a, _) = pair()
    _ = a.datagram([1])
    a.remoteRestarted(epoch: 0xb0)
    let payload = try #require(a.datagram([2]))
    #expect(payload[8..<16].last == 0xa2 && payload[20..<28].elementsEqual([0, 0, 0, 0, 0, 0, 0, 1]))
  }

  @Test func `a full bulk lane does not delay a datagram`() throws {
    let (a, _) = pair()
    while a.canSend(byteCount: 60_000, lane: .bulk) {
      _ = try a.send([UInt8](repeating: 0, count: 60_000), lane: .bulk, now: start)
    }
    #expect(a.datagram([1]) != nil)
  }
}
