import Testing

@testable import Causeway

private let one = Address.numbered(1), two = Address.numbered(2)
private let ends: [(UInt8, StreamEnd)] = [
  (1, .cut), (2, .refused), (3, .noPlace), (4, .broken), (5, .lost), (77, .other(77)),
]

extension Bench {
  /// Lets the daemon announce the stream with its number `received`. Returns the stream as offered by the session's
  /// event.
  fileprivate func offered(_ received: UInt32, _ name: String = "log") async throws -> OfferedStream {
    daemon.tell(streamPacket(number, received, one, name))
    var events = session.events.makeAsyncIterator()
    guard case .stream(let stream)? = try await events.next() else { throw CausewayError(.invalid, "no stream") }
    return stream
  }

  /// A stream that the application has accepted, and the number that the library chose for it.
  fileprivate func taken(_ received: UInt32) async throws -> (stream: IncomingStream, number: UInt32) {
    let stream = try await offered(received).take()
    return (stream, try await daemon.asked(14).number)
  }

  /// Waits at most 5 s until `condition` shows that the library has handled the daemon's packets.
  fileprivate func waitUntil(_ condition: () -> Bool) async throws {
    for _ in 0..<500 where !condition() { try await Task.sleep(for: .milliseconds(10)) }
    try #require(condition())
  }
}

private func thrownByNext(_ stream: IncomingStream) async -> CausewayError? {
  var pieces = stream.makeAsyncIterator()
  return await thrown { () async throws(CausewayError) in try await pieces.next() }
}

@Test(.timeLimit(.minutes(1))) func `a stream is accepted and read to its end`() async throws {
  let bench = try await Bench(one), offered = try await bench.offered(77)
  #expect(offered.sender == member(.connected, one) && offered.name == "log")
  let stream = try await offered.take(), request = try await bench.daemon.asked(14)
  #expect(request.fields == word(77) + [1, 0, 0, 0, 0, 0, 2, 0, 0])
  #expect(stream.sender == offered.sender && stream.name == "log")
  let sent = (0..<65_536).map { UInt8(truncatingIfNeeded: $0 * 7) }
  for start in stride(from: 0, to: sent.count, by: 4_096) {
    bench.daemon.tell(streamBytesPacket(request.number, Array(sent[start..<start + 4_096])))
  }
  var pieces = stream.makeAsyncIterator(), read: [UInt8] = []
  while read.count < sent.count { read += try #require(try await pieces.next()) }
  #expect(read == sent)
  // The library raises the stream's limit once half a window has been read.
  #expect(try await bench.daemon.asked(16).fields == word(request.number) + [0, 0, 0, 0, 0, 3, 0, 0])
  bench.daemon.tell(
    streamBytesPacket(request.number, bytes("bye")), streamEndedPacket(request.number, 0, 0))
  #expect(try await pieces.next() == bytes("bye"))
  #expect(try await pieces.next() == nil)
  #expect(try await pieces.next() == nil)
}

@Test(.timeLimit(.minutes(1)), arguments: ends)
func `a reader is notified that its stream did not finish`(code: UInt8, end: StreamEnd) async throws {
  let bench = try await Bench(one), (stream, number) = try await bench.taken(77)
  bench.daemon.tell(streamBytesPacket(number, [1, 2]), streamEndedPacket(number, 0, code))
  var pieces = stream.makeAsyncIterator()
  #expect(try await pieces.next() == [1, 2])
  for _ in 0..<2 { #expect(await thrownByNext(stream)?.reason == .stream(end)) }
  stream.reset()
  #expect(bench.daemon.count(18) == 0)
}

@Test(.timeLimit(.minutes(1))) func `a stream that is refused or dropped by the application is refused`() async throws {
  let bench = try await Bench(one)
  do { _ = try await bench.offered(77) }
  #expect(try await bench.daemon.asked(14).fields == word(77) + [UInt8](repeating: 0, count: 9))
  let stream = try await bench.offered(78)
  stream.refuse()
  #expect(try await bench.daemon.asked(14).fields == word(78) + [UInt8](repeating: 0, count: 9))
  let error = await thrown { () async throws(CausewayError) in try await stream.take() }
  #expect(error?.reason == .ended && bench.daemon.count(14) == 2)
}

@Test(.timeLimit(.minutes(1))) func `32 offered streams wait, and the next one is refused`() async throws {
  let bench = try await Bench(one)
  for received in 1...33 { bench.daemon.tell(streamPacket(bench.number, UInt32(received), one)) }
  #expect(try await bench.daemon.asked(14).fields == word(33) + [UInt8](repeating: 0, count: 9))
  var events = bench.session.events.makeAsyncIterator(), kept: [OfferedStream] = []
  for received in 1...32 {
    guard case .stream(let stream)? = try await events.next() else { throw CausewayError(.invalid) }
    #expect(stream.number == received)
    kept.append(stream)
  }
  #expect(bench.daemon.count(14) == 1)
}

@Test(.timeLimit(.minutes(1))) func `a stream that ended before the application received it is not reported`()
  async throws
{
  let bench = try await Bench(one)
  bench.daemon.tell(
    streamPacket(bench.number, 77, one), streamEndedPacket(bench.number, 77, 1), memberPacket(bench.number, two, 1))
  try await bench.waitUntil { bench.session.members.count == 2 }
  var events = bench.session.events.makeAsyncIterator()
  #expect(try await events.next() == .member(member(.connected, two)))
  // The end of a session also ends the streams of the session.
  bench.daemon.tell(streamPacket(bench.number, 78, one))
  bench.tell(135, bench.number) { $0.put([2, 0, 0, 0, 0, 0]) }
  try await bench.waitUntil { !bench.session.core.isOpen.isOpen }
  #expect(try await events.next() == .ended(.full))
  #expect(bench.daemon.count(14) == 0)
}

@Test(.timeLimit(.minutes(1))) func `accepting a stream that has already ended throws`() async throws {
  let bench = try await Bench(one), stream = try await bench.offered(77)
  bench.daemon.answer(14, 2)
  let error = await thrown { () async throws(CausewayError) in try await stream.take() }
  #expect(error?.reason == .ended && error?.code == .notConnected)
}

@Test(.timeLimit(.minutes(1))) func `a stream is reported after earlier events`() async throws {
  let bench = try await Bench(one)
  bench.daemon.tell(
    messagePacket(bench.number, one, [1]), streamPacket(bench.number, 77, one), messagePacket(bench.number, one, [2]),
    memberPacket(bench.number, two, 1))
  // All events are queued before the first one is read, because the order in the queue is under test.
  try await bench.waitUntil { bench.session.members.count == 2 }
  var events = bench.session.events.makeAsyncIterator(), told: [String] = []
  for _ in 0..<3 {
    switch try await events.next() {
    case .message(let message): told.append("\(message.bytes)")
    case .stream(let stream): told.append(stream.name)
    case .member, .room, .offer, .decisionWanted, .ended, nil: told.append("something else")
    }
  }
  #expect(told == ["[1]", "log", "[2]"])
}

@Test(.timeLimit(.minutes(1))) func `an unread stream delays no other stream and no message`() async throws {
  let bench = try await Bench(one), unread = try await bench.taken(77), other = try await bench.taken(78)
  let full = [UInt8](repeating: 7, count: 4_096)
  for _ in 0..<32 { bench.daemon.tell(streamBytesPacket(unread.number, full)) }
  bench.daemon.tell(streamBytesPacket(other.number, bytes("hello")), messagePacket(bench.number, one, [1]))
  var pieces = other.stream.makeAsyncIterator(), events = bench.session.events.makeAsyncIterator()
  #expect(try await pieces.next() == bytes("hello"))
  guard case .message? = try await events.next() else { throw CausewayError(.invalid) }
  #expect(bench.daemon.count(16) == 0)
  var late = unread.stream.makeAsyncIterator()
  #expect(try await late.next()?.count == 131_072)
  #expect(try await bench.daemon.asked(16).fields == word(unread.number) + [0, 0, 0, 0, 0, 4, 0, 0])
}

@Test(.timeLimit(.minutes(1))) func `bytes beyond a stream's limit end the connection`() async throws {
  let bench = try await Bench(one), (stream, number) = try await bench.taken(77)
  for _ in 0..<32 { bench.daemon.tell(streamBytesPacket(number, [UInt8](repeating: 7, count: 4_096))) }
  bench.daemon.tell(streamBytesPacket(number, [1]))
  #expect(await bench.node.ended()?.reason == .daemonBroken)
  // The bytes received within the limit can still be read after the daemon's violation.
  var pieces = stream.makeAsyncIterator()
  #expect(try await pieces.next()?.count == 131_072)
  #expect(await thrownByNext(stream)?.reason == .daemonBroken)
}

@Test(.timeLimit(.minutes(1))) func `packets about unknown streams are ignored`() async throws {
  let bench = try await Bench(one), writer = try await bench.session.openStream("log", to: one)
  let number = try await bench.daemon.asked(13).number
  for object in [9_999, bench.number, number] {
    bench.daemon.tell(
      streamBytesPacket(object, [1]), streamEndedPacket(object, 5, 1), streamPacket(9_999, 5, one))
  }
  bench.daemon.tell(streamRoomPacket(9_999, 9), streamRoomPacket(bench.number, 9), streamEndedPacket(9_999, 0, 1))
  bench.daemon.tell(streamRoomPacket(number, 9), messagePacket(bench.number, one, [1]))
  var events = bench.session.events.makeAsyncIterator()
  guard case .message? = try await events.next() else { throw CausewayError(.invalid) }
  try await writer.write([1])
  #expect(try await bench.daemon.asked(15).fields == word(number) + word(1) + [1])
}

@Test(.timeLimit(.minutes(1))) func `a cancelled read throws and is not an end of stream`() async throws {
  let bench = try await Bench(one), (stream, number) = try await bench.taken(77)
  let reading = Task { await thrownByNext(stream) }
  try await Task.sleep(for: .milliseconds(20))
  reading.cancel()
  #expect(await reading.value?.reason == .cancelled)
  bench.daemon.tell(streamBytesPacket(number, [1]))
  var pieces = stream.makeAsyncIterator()
  #expect(try await pieces.next() == [1])
}

@Test(.timeLimit(.minutes(1))) func `a stream that is accepted and then dropped is reset`() async throws {
  let bench = try await Bench(one)
  let number: UInt32
  do { number = try await bench.taken(77).number }
  #expect(try await bench.daemon.asked(18).fields == word(number))
}

@Test(.timeLimit(.minutes(1))) func `a stream whose acceptance is cancelled is refused or reset`() async throws {
  let bench = try await Bench(one), stream = try await bench.offered(77)
  bench.daemon.answerNothing(14)
  let taking = Task { await thrown { () async throws(CausewayError) in try await stream.take() } }
  let number = try await bench.daemon.asked(14).number
  taking.cancel()
  #expect(await taking.value?.code == .cancelled)
  #expect(try await bench.daemon.asked(18).fields == word(number))
  #expect(try await bench.daemon.asked(14).fields == word(77) + [UInt8](repeating: 0, count: 9))
}

@Test(.timeLimit(.minutes(1))) func `all streams report the end of the daemon`() async throws {
  let bench = try await Bench(one), (reader, _) = try await bench.taken(77), offered = try await bench.offered(78)
  let writer = try await bench.session.openStream("log", to: one)
  let writing = Task { await thrown { () async throws(CausewayError) in try await writer.write([1]) } }
  try await Task.sleep(for: .milliseconds(20))
  bench.daemon.close()
  #expect(await writing.value == .daemonEnded)
  #expect(await thrownByNext(reader) == .daemonEnded)
  #expect(await thrown { () async throws(CausewayError) in try await writer.finish() } == .daemonEnded)
  #expect(await thrown { () async throws(CausewayError) in try await offered.take() } == .daemonEnded)
}
