import Testing

@testable import Causeway

private func invited(_ service: UInt32, _ number: UInt32) -> [UInt8] {
  var packet = vectors["event-invited"]!
  packet.replaceSubrange(5..<9, with: word(service))
  packet.replaceSubrange(9..<13, with: word(number))
  return packet
}

private func ended(_ object: UInt32, _ received: UInt32, _ outcome: UInt8, _ text: String = "") -> [UInt8] {
  packet(133, object) {
    $0.put(UInt64(received), count: 4)
    $0.put([outcome])
    $0.put(text)
  }
}

@Test(
  .timeLimit(.minutes(1)),
  arguments: [
    (0, nil, nil), (1, .unavailable, .declined), (2, .timedOut, .timedOut), (3, .cancelled, .cancelled),
    (4, .unavailable, .busy),
    (5, .unavailable, .full), (6, .unavailable, .noService), (7, .unsupported, .incompatible),
    (8, .notConnected, .ended),
    (77, .unknown, .other(77)),
  ] as [(UInt8, CausewayError.Code?, CausewayError.Reason?)])
func `the inviter is notified of the outcome`(outcome: UInt8, code: CausewayError.Code?, reason: CausewayError.Reason?)
  async throws
{
  let daemon = try DaemonStandIn()
  let session = try await daemon.connect().openSession("chat")
  let inviting = Task {
    await thrown { () async throws(CausewayError) in
      try await session.invite(address, context: bytes("hi"), timeout: .milliseconds(1500))
    }
  }
  let request = try await daemon.asked(6)
  #expect(request.fields.suffix(8) == [0, 0, 5, 0xdc, 0, 2] + bytes("hi"))
  daemon.tell(ended(request.number, 0, outcome, "why"))
  let error = await inviting.value
  #expect(error?.code == code && error?.reason == reason)
  if outcome == 1 { #expect(error?.text == "declined: why") }
}

@Test(.timeLimit(.minutes(1))) func `an invitation is cancelled with its task`() async throws {
  let daemon = try DaemonStandIn()
  let session = try await daemon.connect().openSession("chat")
  let inviting = Task { await thrown { () async throws(CausewayError) in try await session.invite(address) } }
  let request = try await daemon.asked(6)
  // The daemon's answer to the request must arrive first. Before the answer, an invitation cannot be cancelled.
  try await Task.sleep(for: .milliseconds(20))
  inviting.cancel()
  #expect(await inviting.value?.code == .cancelled)
  #expect(try await daemon.asked(7).fields == word(request.number))
}

@Test(.timeLimit(.minutes(1))) func `an invitation arrives with its context and is accepted`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  let session = try await node.openSession("chat"),
    advertiser = try await node.advertise("chat", info: ["b": "2", "a": "1"])
  let service = try await daemon.asked(2)
  #expect(service.fields == [4] + bytes("chat") + [2, 3] + bytes("a=1") + [3] + bytes("b=2"))
  let before = ContinuousClock.now
  daemon.tell(invited(service.number, 77))
  var invitations = advertiser.makeAsyncIterator()
  let invitation = try #require(try await invitations.next())
  let after = ContinuousClock.now
  #expect(invitation.from == address && invitation.peer == bob && invitation.context == bytes("join us"))
  #expect(invitation.memberCount == 3 && invitation.rules.membersMax == 8)
  #expect((before + .seconds(29)...after + .seconds(29)).contains(invitation.deadline))
  let accepting = Task { await thrown { () async throws(CausewayError) in try await invitation.accept(into: session) } }
  #expect(try await daemon.asked(8).fields == word(77) + word(session.number) + [0])
  daemon.tell(ended(service.number, 77, 0))
  #expect(await accepting.value == nil)
  #expect(
    await thrown { () async throws(CausewayError) in try await invitation.accept(into: session) }?.reason == .ended)
  #expect(daemon.count(8) == 1)
}

@Test(.timeLimit(.minutes(1))) func `an invitation is declined with a text, or by dropping it`() async throws {
  let daemon = try DaemonStandIn()
  let advertiser = try await daemon.connect().advertise("chat")
  let service = try await daemon.asked(2).number
  daemon.tell(invited(service, 77), invited(service, 78))
  var invitations = advertiser.makeAsyncIterator()
  do {
    let invitation = try #require(try await invitations.next())
    try await invitation.decline("later")
    #expect(try await daemon.asked(8).fields == word(77) + word(0) + [5] + bytes("later"))
  }
  do { _ = try await invitations.next() }
  #expect(try await daemon.asked(8).fields == word(78) + word(0) + [0])
}

@Test(.timeLimit(.minutes(1))) func `an invitation that ended before it was read is not reported`() async throws {
  let daemon = try DaemonStandIn()
  let advertiser = try await daemon.connect().advertise("chat")
  let service = try await daemon.asked(2).number
  daemon.tell(invited(service, 77), ended(service, 77, 3), invited(service, 78))
  var invitations = advertiser.makeAsyncIterator()
  while let invitation = try await invitations.next() {
    if invitation.number == 78 { break }
    #expect(try await invitation.outcome() == .cancelled)
  }
  daemon.tell(ended(service, 79, 3))
}

@Test(.timeLimit(.minutes(1))) func `more invitations than the limit break the protocol`() async throws {
  let daemon = try DaemonStandIn()
  let node = try await daemon.connect()
  let advertiser = try await node.advertise("chat")
  let service = try await daemon.asked(2).number
  for number in 0..<UInt32(Limits.invitationsMax) + 1 { daemon.tell(invited(service, number + 1)) }
  #expect(await node.ended()?.reason == .daemonBroken)
  _ = advertiser
}

@Test(.timeLimit(.minutes(1))) func `discovery info is replaced under the same request number`() async throws {
  let daemon = try DaemonStandIn()
  let advertiser = try await daemon.connect().advertise("chat")
  let first = try await daemon.asked(2)
  try await advertiser.update(info: ["room": "5"])
  let second = try await daemon.asked(2)
  #expect(second.number == first.number && second.fields.suffix(7) == [6] + bytes("room=5"))
}
