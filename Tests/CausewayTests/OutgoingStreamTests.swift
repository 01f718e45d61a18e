import Testing

@testable import Causeway

private let one = Address.numbered(1)

/// A stream to a member, over a daemon that the test plays.
private struct Writer {
  let bench: Bench
  let stream: OutgoingStream
  let opened: DaemonStandIn.Asked

  init() async throws {
    bench = try await Bench(one)
    stream = try await bench.session.openStream("log", to: one)
    opened = try await bench.daemon.asked(13)
  }

  func write(_ bytes: [UInt8]) -> Task<CausewayError?, Never> {
    Task { await thrown { () async throws(CausewayError) in try await stream.write(bytes) } }
  }

  func finish() -> Task<CausewayError?, Never> {
    Task { await thrown { () async throws(CausewayError) in try await stream.finish() } }
  }

  func room(_ limit: UInt64) { bench.daemon.tell(streamRoomPacket(opened.number, limit)) }
  func end(_ code: UInt8) { bench.daemon.tell(streamEndedPacket(opened.number, 0, code)) }

  /// The bytes of the next request that writes to the stream.
  func written() async throws -> [UInt8] {
    let fields = try await bench.daemon.asked(15).fields
    try #require(fields[..<4] == word(opened.number)[...] && fields[4..<8] == word(UInt32(fields.count - 8))[...])
    return Array(fields[8...])
  }
}

@Test(.timeLimit(.minutes(1))) func `bytes of a stream are written within the room that the daemon grants`()
  async throws
{
  let writer = try await Writer()
  #expect(writer.opened.fields == word(writer.bench.number) + one.bytes + [3] + bytes("log"))
  let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }, writing = writer.write(bytes)
  try await Task.sleep(for: .milliseconds(20))
  #expect(writer.bench.daemon.count(15) == 0)
  writer.room(6_000)
  #expect(try await writer.written() == Array(bytes[..<4_096]))
  #expect(try await writer.written() == Array(bytes[4_096..<6_000]))
  writer.room(20_000)
  #expect(try await writer.written() == Array(bytes[6_000...]))
  #expect(await writing.value == nil)
  // A limit that is lower than the former one is ignored.
  writer.room(5_000)
  try await Task.sleep(for: .milliseconds(20))
  let more = writer.write([1])
  #expect(try await writer.written() == [1])
  #expect(await more.value == nil)
}

@Test(.timeLimit(.minutes(1))) func `a stream is finished when the reader has received everything`() async throws {
  let writer = try await Writer()
  let finishing = writer.finish()
  #expect(try await writer.bench.daemon.asked(17).fields == word(writer.opened.number))
  writer.end(0)
  #expect(await finishing.value == nil)
  #expect(try await writer.stream.ended() == .finished)
  #expect(await writer.write([1]).value?.reason == .ended)
}

@Test(
  .timeLimit(.minutes(1)),
  arguments: [
    (1, .cut, .cancelled), (2, .refused, .unavailable), (3, .noPlace, .unavailable), (4, .broken, .unknown),
    (5, .lost, .notConnected), (77, .other(77), .unknown),
  ] as [(UInt8, StreamEnd, CausewayError.Code)])
func `a writer is notified how its stream ended`(code: UInt8, end: StreamEnd, known: CausewayError.Code) async throws {
  let writer = try await Writer()
  let writing = writer.write([1])
  try await Task.sleep(for: .milliseconds(20))
  writer.end(code)
  let error = await writing.value
  #expect(error?.reason == .stream(end) && error?.code == known)
  #expect(await writer.finish().value == error)
  #expect(try await writer.stream.ended() == end)
  writer.stream.reset()
  #expect(writer.bench.daemon.count(17) + writer.bench.daemon.count(18) == 0)
}

@Test(.timeLimit(.minutes(1))) func `a write that is cancelled halfway resets the stream`() async throws {
  let writer = try await Writer()
  let early = writer.write([1])
  try await Task.sleep(for: .milliseconds(20))
  early.cancel()
  #expect(await early.value?.code == .cancelled)
  writer.room(4_096)
  let writing = writer.write([UInt8](repeating: 2, count: 8_192))
  #expect(try await writer.written() == [UInt8](repeating: 2, count: 4_096))
  #expect(writer.bench.daemon.count(18) == 0)
  writing.cancel()
  #expect(await writing.value?.code == .cancelled)
  #expect(try await writer.bench.daemon.asked(18).fields == word(writer.opened.number))
  #expect(await writer.write([1]).value?.reason == .stream(.cut))
}

@Test(.timeLimit(.minutes(1))) func `a dropped stream is reset unless it was finished`() async throws {
  let bench = try await Bench(one)
  do { _ = try await bench.session.openStream("a", to: one) }
  let number = try await bench.daemon.asked(13).number
  #expect(try await bench.daemon.asked(18).fields == word(number))
  do {
    let stream = try await bench.session.openStream("b", to: one)
    let finishing = Task { await thrown { () async throws(CausewayError) in try await stream.finish() } }
    _ = try await bench.daemon.asked(17)
    finishing.cancel()
    #expect(await finishing.value?.code == .cancelled)
  }
  let last = try await bench.session.openStream("c", to: one)
  #expect(bench.daemon.count(13) == 3 && bench.daemon.count(18) == 1)
  last.reset()
}

@Test(.timeLimit(.minutes(1))) func `the bytes of one write stay together`() async throws {
  let writer = try await Writer()
  let first = writer.write([UInt8](repeating: 1, count: 5_000))
  try await Task.sleep(for: .milliseconds(20))
  let second = writer.write([UInt8](repeating: 2, count: 5_000))
  try await Task.sleep(for: .milliseconds(20))
  writer.room(10_000)
  var bytes: [UInt8] = []
  while bytes.count < 10_000 { bytes += try await writer.written() }
  #expect(bytes == [UInt8](repeating: 1, count: 5_000) + [UInt8](repeating: 2, count: 5_000))
  #expect(await first.value == nil)
  #expect(await second.value == nil)
}

@Test(.timeLimit(.minutes(1))) func `a writer waits while the daemon does not read`() async throws {
  let writer = try await Writer(), connection = writer.bench.node.lease.connection
  writer.bench.daemon.pause()
  writer.room(.max)
  let writing = writer.write([UInt8](repeating: 7, count: 2_097_152))
  for _ in 0..<500 where connection.unsentBytes <= Limits.unsentBytesMax {
    try await Task.sleep(for: .milliseconds(10))
  }
  try await Task.sleep(for: .milliseconds(50))
  #expect((Limits.unsentBytesMax...Limits.unsentBytesMax + 8_192).contains(connection.unsentBytes))
  writer.bench.daemon.resume()
  #expect(await writing.value == nil)
  for _ in 0..<500 where writer.bench.daemon.count(15) < 512 { try await Task.sleep(for: .milliseconds(10)) }
  #expect(writer.bench.daemon.count(15) == 512)
}

@Test(.timeLimit(.minutes(1))) func `a daemon that keeps requesting answers but does not read loses its connection`()
  async throws
{
  let bench = try await Bench()
  bench.daemon.pause()
  let most = Limits.unreadBytesMax / 4_096 + 200
  for _ in 0..<most { bench.node.lease.connection.write(.write(stream: 9, [UInt8](repeating: 0, count: 4_096)), 0) }
  #expect(await bench.node.ended()?.reason == .daemonBroken)
}

@Test(.timeLimit(.minutes(1))) func `a stream keeps its session open`() async throws {
  let daemon = try DaemonStandIn()
  var stream: OutgoingStream?
  do {
    let session = try await daemon.connect().openSession("chat")
    stream = try await session.openStream("log", to: one)
  }
  _ = try await daemon.asked(13)
  try await Task.sleep(for: .milliseconds(20))
  #expect(stream?.name == "log" && daemon.count(9) == 0)
  stream = nil
  _ = try await daemon.asked(18)
  _ = try await daemon.asked(9)
}

@Test(.timeLimit(.minutes(1))) func `a stream's name is checked before it is sent`() async throws {
  let bench = try await Bench(one)
  for name in ["", String(repeating: "x", count: 64), "a\nb"] {
    let error = await thrown { () async throws(CausewayError) in
      try await bench.session.openStream(name, to: one)
    }
    #expect(error?.code == .invalidParameter, "\(name)")
  }
  #expect(bench.daemon.count(13) == 0)
  bench.daemon.answer(13, 5, "no member")
  let error = await thrown { () async throws(CausewayError) in try await bench.session.openStream("log", to: one) }
  #expect(error?.reason == .outOfReach)
}
