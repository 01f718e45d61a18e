import Testing

@testable import Causeway

private func gathering(_ session: Session) -> Task<CausewayError?, Never> {
  Task { await thrown { () async throws(CausewayError) in try await session.gather(info: ["room": "4"]) } }
}

@Test(.timeLimit(.minutes(1))) func `gather asks the daemon and offers the type until the session ends`() async throws {
  let bench = try await Bench()
  let task = gathering(bench.session)
  #expect(try await bench.daemon.asked(12).fields == word(bench.number))
  let service = try await bench.daemon.asked(2)
  #expect(service.fields == [4] + bytes("chat") + [1, 6] + bytes("room=4"))
  bench.tell(135, bench.number) { $0.put([2, 0, 0, 0, 0, 0]) }
  #expect(await task.value == nil)
  #expect(try await bench.daemon.asked(5).fields == word(service.number))
}

@Test(.timeLimit(.minutes(1))) func `gather withdraws the service when its task is cancelled`() async throws {
  let bench = try await Bench()
  let task = gathering(bench.session)
  let service = try await bench.daemon.asked(2).number
  try await Task.sleep(for: .milliseconds(20))
  task.cancel()
  #expect(try await bench.daemon.asked(5).fields == word(service))
  #expect(await task.value == nil)
}

@Test(.timeLimit(.minutes(1))) func `gather throws if the daemon refuses it or ends`() async throws {
  let bench = try await Bench()
  bench.daemon.answer(12, 1, "this daemon does not gather")
  #expect(await gathering(bench.session).value == CausewayError(.unsupported, "this daemon does not gather"))
  #expect(bench.daemon.count(2) == 0)
  bench.daemon.answer(12, 0)
  let task = gathering(bench.session)
  _ = try await bench.daemon.asked(2)
  try await Task.sleep(for: .milliseconds(20))
  bench.daemon.close()
  #expect(await task.value == .daemonEnded)
}

@Test(.timeLimit(.minutes(1))) func `a member is ejected with a text`() async throws {
  let bench = try await Bench(address)
  try await bench.session.eject(address, "out")
  #expect(try await bench.daemon.asked(19).fields.dropFirst(4) == vectors["request-eject"]![13...])
  bench.daemon.answer(19, 4, "the rules of the session do not allow it")
  let error = await thrown { () async throws(CausewayError) in try await bench.session.eject(address) }
  #expect(error?.reason == .notAllowed)
  let long = await thrown { () async throws(CausewayError) in
    try await bench.session.eject(address, String(repeating: "x", count: 64))
  }
  #expect(long?.reason == .invalid && bench.daemon.count(19) == 2)
}

@Test(.timeLimit(.minutes(1))) func `an application connects to an address without an invitation`() async throws {
  let bench = try await Bench()
  let connecting = Task {
    await thrown { () async throws(CausewayError) in
      try await bench.session.connect(to: address, timeout: .seconds(2))
    }
  }
  let request = try await bench.daemon.asked(21)
  #expect(request.fields == word(bench.number) + address.bytes + [0, 0, 7, 0xd0])
  bench.tell(133, request.number) { $0.put([0, 0, 0, 0, 2, 0]) }
  #expect(await connecting.value?.reason == .timedOut)
  let cancelled = Task {
    await thrown { () async throws(CausewayError) in try await bench.session.connect(to: address) }
  }
  let second = try await bench.daemon.asked(21)
  try await Task.sleep(for: .milliseconds(20))
  cancelled.cancel()
  #expect(await cancelled.value?.code == .cancelled)
  #expect(try await bench.daemon.asked(7).fields == word(second.number))
}

@Test(.timeLimit(.minutes(1))) func `an application accepts or rejects members`() async throws {
  let daemon = try DaemonStandIn()
  let session = try await daemon.connect().openSession("chat", decides: true)
  let opened = try await daemon.asked(4)
  #expect(opened.fields.last == 1 && opened.fields.count == 8)
  daemon.tell(
    packet(144, opened.number) {
      $0.put(address)
      $0.put([2, 1, 3] + bytes("bob") + [1, 0, 2, 0x30, 0])
    })
  var events = session.events.makeAsyncIterator()
  #expect(try await events.next() == .decisionWanted(address, bob, certificates: [[0x30, 0]]))
  for isAccepted in [true, false] {
    try await session.decide(address, isAccepted: isAccepted)
    #expect(try await daemon.asked(20).fields == word(opened.number) + address.bytes + [isAccepted ? 1 : 0])
  }
}

@Test(.timeLimit(.minutes(1))) func `an application knows its own address`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  let session = try await node.openSession("chat"), advertiser = try await node.advertise("chat")
  #expect(session.address == address && advertiser.address == address)
  daemon.answerWithoutEndpoint()
  let error = await thrown { () async throws(CausewayError) in try await node.openSession("chat") }
  #expect(error?.reason == .daemonBroken)
  #expect(await node.ended() == error)
}
