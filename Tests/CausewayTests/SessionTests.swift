import Testing

@testable import Causeway

private let one = Address.numbered(1), two = Address.numbered(2)

@Test(.timeLimit(.minutes(1))) func `a new session grants the daemon a window`() async throws {
  let bench = try await Bench()
  #expect(try await bench.daemon.asked(11).fields == [0, 0, 0, UInt8(bench.number), 0, 0, 0, 0, 0, 4, 0, 0])
}

@Test(.timeLimit(.minutes(1))) func `a send returns the result of each member`() async throws {
  let bench = try await Bench(one, two)
  bench.daemon.answerNothing(10)
  let sending = Task { try await bench.session.send(bytes("hello")) }
  let request = try await bench.daemon.asked(10)
  #expect(request.fields == [0, 0, 0, UInt8(bench.number), 0, 0, 0, 0, 0, 5] + bytes("hello"))
  bench.sent(request.number, one, .delivered)
  bench.sent(request.number, two, .noRoom)
  bench.done(request.number)
  #expect(try await sending.value == [one: .delivered, two: .noRoom])
}

@Test(.timeLimit(.minutes(1))) func `a delivery waits for room and fails when the member has left`() async throws {
  let bench = try await Bench(one)
  bench.daemon.answerNothing(10)
  let sending = Task {
    await thrown { () async throws(CausewayError) in try await bench.session.deliver([1], to: one) }
  }
  for delivery in [.noRoom, .noRoom, .delivered] as [Delivery] {
    let request = try await bench.daemon.asked(10)
    bench.sent(request.number, one, delivery)
    bench.done(request.number)
    if delivery == .noRoom { bench.tell(139, bench.number) { $0.put(one) } }
  }
  #expect(await sending.value == nil)

  let late = Task { await thrown { () async throws(CausewayError) in try await bench.session.deliver([2], to: one) } }
  for delivery in [.noRoom, .notConnected] as [Delivery] {
    let request = try await bench.daemon.asked(10)
    bench.sent(request.number, one, delivery)
    bench.done(request.number)
    bench.daemon.tell(memberPacket(bench.number, one, 2))
  }
  #expect(await late.value?.reason == .outOfReach)
}

@Test(.timeLimit(.minutes(1))) func `the number of pending results never exceeds the daemon's limit`() async throws {
  let bench = try await Bench(one)
  bench.daemon.answerNothing(10)
  let sending = (0..<80).map { _ in Task { try await bench.session.send([1], to: [one]) } }
  var requests: [UInt32] = []
  for _ in 0..<64 { requests.append(try await bench.daemon.asked(10).number) }
  try await Task.sleep(for: .milliseconds(50))
  #expect(bench.daemon.count(10) == 64)
  for request in requests { bench.done(request) }
  for _ in 0..<16 { bench.done(try await bench.daemon.asked(10).number) }
  for task in sending { _ = try await task.value }
}

@Test(.timeLimit(.minutes(1))) func `a send to more members than counted is retried on its own`() async throws {
  let bench = try await Bench(one)
  bench.daemon.answerNothing(10)
  let sending = Task { try await bench.session.send([1]) }
  bench.done(try await bench.daemon.asked(10).number, 6)
  bench.done(try await bench.daemon.asked(10).number)
  #expect(try await sending.value == [:])
}

@Test(.timeLimit(.minutes(1))) func `illegal arguments are refused without a request`() async throws {
  let bench = try await Bench()
  for error in [
    await thrown { () async throws(CausewayError) in try await bench.session.send([UInt8](repeating: 0, count: 65_001))
    },
    await thrown { () async throws(CausewayError) in
      try await bench.session.send([], to: (0..<64).map { .numbered($0) })
    },
    await thrown { () async throws(CausewayError) in
      try await bench.session.invite(one, context: [UInt8](repeating: 0, count: 4097))
    },
    await thrown { () async throws(CausewayError) in try await bench.session.leave(String(repeating: "x", count: 64)) },
    await thrown { () async throws(CausewayError) in
      try await bench.node.openSession("chat", rules: Rules(membersMax: 65))
    },
  ] { #expect(error?.code == .invalidParameter) }
  #expect(try await bench.session.send([1], to: []) == [:])
  #expect(bench.daemon.count(10) == 0)
}

@Test(.timeLimit(.minutes(1))) func `the window grows as messages are read`() async throws {
  let bench = try await Bench(one)
  _ = try await bench.daemon.asked(11)
  for _ in 0..<3 { bench.daemon.tell(messagePacket(bench.number, one, [UInt8](repeating: 7, count: 65_000))) }
  try await Task.sleep(for: .milliseconds(50))
  #expect(bench.daemon.count(11) == 1)
  var events = bench.session.events.makeAsyncIterator()
  for _ in 0..<3 {
    guard case .message(let message) = try await events.next() else { throw CausewayError(.invalid) }
    #expect(message.sender.address == one && message.bytes.count == 65_000 && message.isReliable)
  }
  #expect(try await bench.daemon.asked(11).fields.suffix(4) == [0, 6, 0xfa, 0x78])
}

@Test(.timeLimit(.minutes(1))) func `the events end after the last one received before leaving`() async throws {
  let bench = try await Bench(one)
  bench.daemon.tell(messagePacket(bench.number, one, [1]))
  try await bench.session.leave("bye")
  #expect(try await bench.daemon.asked(9).fields == [0, 0, 0, UInt8(bench.number), 3] + bytes("bye"))
  bench.tell(135, bench.number) { $0.put([0, 0, 0, 0, 0, 0]) }
  var events: [SessionEvent] = []
  for try await event in bench.session.events { events.append(event) }
  #expect(events.count == 2 && events.last == .ended(.left))
  try await bench.session.leave("again")
  #expect(bench.daemon.count(9) == 1)
}

@Test(.timeLimit(.minutes(1))) func `a dropped session is left`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  do { _ = try await node.openSession("chat") }
  _ = try await daemon.asked(9)
  _ = node
}

@Test(.timeLimit(.minutes(1))) func `the members and the id of a session are properties`() async throws {
  let bench = try await Bench(one, two)
  bench.daemon.tell(memberPacket(bench.number, one, 4, 1), packet(134, bench.number) { $0.put(Array(1...16)) })
  var events = bench.session.events.makeAsyncIterator()
  #expect(try await events.next() == .member(member(.left(""), one)))
  #expect(bench.session.members == [member(.connected, two)])
  for _ in 0..<100 where bench.session.id == nil { try await Task.sleep(for: .milliseconds(10)) }
  #expect(bench.session.id == "0102030405060708090a0b0c0d0e0f10")
}
