import Testing

@testable import Causeway

@Test(.timeLimit(.minutes(1))) func `a node sends hello and receives the id and name of its box`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  #expect(try await daemon.asked(1).fields == [0, 1, 0, 1, 4] + bytes("chat"))
  #expect(node.id == address.node && node.name == "bob" && node.results.slots == 64)
}

@Test(.timeLimit(.minutes(1))) func `a daemon of another version is reported as unsupported`() async throws {
  let daemon = try DaemonStandIn()
  daemon.answer(1, 1, "this daemon supports version 9")
  let error = await thrown { () async throws(CausewayError) in try await Node.connect(over: daemon.client, as: "chat") }
  #expect(error == CausewayError(.unsupported, "this daemon supports version 9"))
}

@Test(.timeLimit(.minutes(1))) func `the last message of a daemon that closes the connection is the error`()
  async throws
{
  let daemon = try DaemonStandIn()
  daemon.answerNothing(1)
  daemon.tell(
    packet(128, 0) {
      $0.put([6])
      $0.put("64 clients are connected")
    })
  daemon.close()
  let error = await thrown { () async throws(CausewayError) in try await Node.connect(over: daemon.client, as: "chat") }
  #expect(error == CausewayError(.full, "64 clients are connected"))
}

@Test(.timeLimit(.minutes(1))) func `a daemon's stop is reported to the node and everything that depends on it`()
  async throws
{
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  daemon.tell(
    packet(128, 0) {
      $0.put([3])
      $0.put("the daemon stops")
    })
  daemon.close()
  let error = await node.ended()
  #expect(error?.reason == .daemonEnded && error?.code == .notConnected)
  #expect(error?.text == "the daemon stops: services, browses and sessions are gone; connect again")
}

@Test(.timeLimit(.minutes(1))) func `the error without a daemon contains the socket's path`() async throws {
  let error = await thrown { () async throws(CausewayError) in
    try await Node.connect(as: "chat", at: "/nowhere/api.sock")
  }
  #expect(
    error?.code == .notConnected && error?.reason == .noDaemon && error?.text.contains("/nowhere/api.sock") == true)
  let long = await thrown { () async throws(CausewayError) in
    try await Node.connect(as: "chat", at: String(repeating: "x", count: 200))
  }
  #expect(long?.code == .invalidParameter)
  let name = await thrown { () async throws(CausewayError) in try await Node.connect(as: "") }
  #expect(name?.code == .invalidParameter)
}

@Test(.timeLimit(.minutes(1))) func `the end of the daemon ends everything that depends on the node`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  let browser = try await node.browse("chat"), advertiser = try await node.advertise("chat")
  let session = try await node.openSession("chat")
  let number = try await daemon.asked(4).number
  daemon.answerNothing(10)
  let sending = Task { await thrown { () async throws(CausewayError) in try await session.send([1]) } }
  _ = try await daemon.asked(10)
  daemon.tell(messagePacket(number, address, [1]))
  daemon.close()
  #expect(await sending.value == .daemonEnded)
  #expect(await node.ended() == .daemonEnded)
  var events = session.events.makeAsyncIterator()
  // The events received before the end of the daemon are still delivered.
  #expect(try await events.next() != nil)
  #expect(await thrown { () async throws(CausewayError) in try await events.next() } == .daemonEnded)
  var sightings = browser.makeAsyncIterator(), invitations = advertiser.makeAsyncIterator()
  #expect(await thrown { () async throws(CausewayError) in try await sightings.next() } == .daemonEnded)
  #expect(await thrown { () async throws(CausewayError) in try await invitations.next() } == .daemonEnded)
  #expect(await thrown { () async throws(CausewayError) in try await node.browse("chat") }?.code == .notConnected)
}

@Test(
  .timeLimit(.minutes(1)),
  arguments: [
    [0, 0, 0, 4], [0xff, 0xff, 0xff, 0xff], [0, 0, 0, 5, 128, 0, 0, 0, 9],
  ] as [[UInt8]]) func `a daemon that breaks the protocol loses its connection`(packet: [UInt8]) async throws
{
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  daemon.tell(packet)
  #expect(await node.ended()?.reason == .daemonBroken)
}

@Test(.timeLimit(.minutes(1))) func `messages beyond the window end the connection`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  let session = try await node.openSession("chat")
  let number = try await daemon.asked(4).number
  for _ in 0..<5 { daemon.tell(messagePacket(number, address, [UInt8](repeating: 0, count: 65_000))) }
  #expect(await node.ended()?.reason == .daemonBroken)
  _ = session
}

@Test(.timeLimit(.minutes(1))) func `a connection without any reference is closed`() async throws {
  let daemon = try DaemonStandIn()
  var browser: Browser?
  do {
    let node = try await daemon.connect()
    browser = try await node.browse("chat")
  }
  let ended = browser!.connectionEnded
  #expect(ended.now == nil)
  browser = nil
  #expect(await ended.value() == .closed)
}

@Test(.timeLimit(.minutes(1))) func `a refused request throws the code of the refusal`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  daemon.answer(3, 4, "for group 7 alone")
  let error = await thrown { () async throws(CausewayError) in try await node.browse("chat") }
  #expect(error == CausewayError(.notAllowed, "for group 7 alone") && error?.code == .unavailable)
}

@Test(.timeLimit(.minutes(1))) func `a dropped browse is closed`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  do { _ = try await node.browse("chat") }
  let number = try await daemon.asked(3).number
  #expect(try await daemon.asked(5).fields == (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(24 - 8 * $0)) })
}

@Test(.timeLimit(.minutes(1))) func `a request whose task is cancelled is undone`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  daemon.answerNothing(3)
  let task = Task { await thrown { () async throws(CausewayError) in try await node.browse("chat") } }
  _ = try await daemon.asked(3)
  task.cancel()
  #expect(await task.value?.code == .cancelled)
  _ = try await daemon.asked(5)
}
