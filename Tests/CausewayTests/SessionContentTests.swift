import Testing

@testable import Causeway

private let one = Address.numbered(1), two = Address.numbered(2)

private func content() -> SessionContent {
  var content = SessionContent()
  _ = content.grant()
  return content
}

private func all(_ content: inout SessionContent) -> [SessionEvent] {
  var taken: [SessionEvent] = []
  while let event = content.take() { taken.append(event) }
  return taken
}

private func message(_ text: String, _ sender: Member) -> SessionEvent {
  .message(Message(sender: sender, bytes: bytes(text), isReliable: true))
}

@Test func `only the last one of several unread states is reported`() {
  var session = content()
  for state in [.connecting, .connected, .away, .connected, .paused] as [Member.State] {
    _ = session.apply(.member(member(state, one)))
  }
  _ = session.apply(.member(member(.connected, two)))
  #expect(all(&session) == [.member(member(.paused, one)), .member(member(.connected, two))])
  #expect(session.members == [one: member(.paused, one), two: member(.connected, two)])
}

@Test func `a connected state precedes a member's messages, and a left state follows them`() {
  var session = content()
  _ = session.apply(.member(member(.connected, one)))
  _ = session.apply(.message(from: one, isReliable: true, bytes("a")))
  _ = session.apply(.member(member(.away, one)))
  _ = session.apply(.member(member(.left("bye"), one)))
  let told = all(&session)
  #expect(
    told == [
      .member(member(.connected, one)), message("a", member(.connected, one)), .member(member(.left("bye"), one)),
    ])
  #expect(session.members.isEmpty)
}

@Test func `a state that was read is not replaced by a later one`() {
  var session = content()
  _ = session.apply(.member(member(.connected, one)))
  #expect(session.take() == .member(member(.connected, one)))
  _ = session.apply(.member(member(.away, one)))
  _ = session.apply(.room(one))
  _ = session.apply(.room(one))
  #expect(all(&session) == [.member(member(.away, one)), .room(one)])
}

@Test func `a pending decision about a member is queued once`() {
  var session = content()
  for _ in 0..<3 { _ = session.apply(.decisionWanted(one, bob, certificates: [[1]])) }
  #expect(all(&session) == [.decisionWanted(one, bob, certificates: [[1]])])
  _ = session.apply(.decisionWanted(one, bob, certificates: [[1]]))
  #expect(all(&session) == [.decisionWanted(one, bob, certificates: [[1]])])
}

@Test func `the window grows as messages are read`() {
  var session = SessionContent()
  #expect(session.grant() == 262_144)
  #expect(session.grant() == nil)
  for _ in 0..<4 {
    #expect(session.apply(.message(from: one, isReliable: true, [UInt8](repeating: 0, count: 65_000))) == nil)
  }
  #expect(session.grant() == nil)
  for _ in 0..<2 { _ = session.take() }
  // Two messages have fewer bytes than half a window, so no credit is granted yet.
  #expect(session.grant() == nil)
  _ = session.take()
  #expect(session.grant() == 3 * 65_064 + 262_144)
}

@Test func `messages beyond the window break the protocol`() {
  var session = content()
  var count = 0
  while count < 100_000, session.apply(.message(from: one, isReliable: true, [])) == nil { count += 1 }
  #expect(count == 262_144 / 64)
}

@Test func `more members than the limit break the protocol`() {
  var session = content(), count = 0
  while count < 100_000, session.apply(.member(member(.connected, .numbered(count)))) == nil { count += 1 }
  #expect(count == Limits.membersMax)
  session = content()
  count = 0
  while count < 100_000, session.apply(.member(member(.crashed, .numbered(count)))) == nil { count += 1 }
  #expect(count == Limits.eventsMax)
}
