import Channel
import Primitives
import Testing
import TestSupport

@testable import Session

private let start = Instant.zero + .seconds(1000)
private let other = Identity(5).id
private let mine = SessionHandle(number: 1)

private func outgoing(
  _ number: UInt32, to node: NodeID = other, by application: UInt32 = 1, at time: Instant = start
) -> OutgoingInvitation {
  OutgoingInvitation(
    InvitationHandle(number: number), of: mine, SessionOwner(application: application, user: application),
    origin: SessionID(high: 1, low: 2), from: 1, to: MemberAddress(node: node, endpoint: 1), context: [],
    isGathering: false, for: .seconds(30), now: time)
}

@Suite struct OutgoingInvitationsTests {
  @Test func `an invitation is due at once and ends at its deadline`() {
    var all = OutgoingInvitations()
    all.add(outgoing(7))
    #expect(all.all.map(\.dueAt) == [start])
    all.sent(InvitationHandle(number: 7))
    #expect(all.nextDeadline(now: start) == start + .seconds(30))
    #expect(all.expire(start + .seconds(30)) == [InvitationHandle(number: 7)])
  }

  @Test func `an invitation ends once and stays until its invitee was notified`() {
    var all = OutgoingInvitations()
    all.add(outgoing(7))
    let handle = InvitationHandle(number: 7)
    #expect(all.end(handle, .cancelled, telling: .cancelled, start)?.handle == handle)
    #expect(all.end(handle, .timedOut, telling: .timedOut, start) == nil)
    all.removeEnded()
    #expect(all[handle]?.phase == .ending(.cancelled))
    all.sent(handle)
    all.removeEnded()
    #expect(all[handle] == nil)
  }

  @Test func `a message that was not delivered is due again`() {
    var all = OutgoingInvitations()
    all.add(outgoing(7))
    let handle = InvitationHandle(number: 7)
    all.sent(handle)
    all.repeatMessage(handle, at: start + .seconds(1))
    #expect(all.nextDeadline(now: start) == start + .seconds(1))
  }

  @Test func `an undeliverable notice of an invitation's end is given up`() {
    var all = OutgoingInvitations()
    all.add(outgoing(7))
    let handle = InvitationHandle(number: 7)
    _ = all.end(handle, .cancelled, telling: .cancelled, start)
    #expect(all.expire(start + SessionLimits.settleTime) == [])
    all.removeEnded()
    #expect(all.all.isEmpty)
  }
}

@Suite struct IncomingInvitationsTests {
  private func received(_ number: UInt32, seconds: UInt16 = 30) -> IncomingInvitation {
    let origin = SessionOrigin(
      founder: MemberAddress(node: other, endpoint: 1), point: PublicPoint(InlineArray(repeating: 4)),
      nonce: SessionID(high: 3, low: 4), rules: SessionRules())
    let invite = InviteMessage(
      number: number, seconds: seconds, from: 1, to: 2, memberCount: 1, origin: origin, context: [])
    return IncomingInvitation(
      InvitationHandle(number: 100 + number), invite, from: other, session: SessionID(high: 1, low: 2), now: start)
  }

  @Test func `an invitation is found by its own number and by the inviter's number`() {
    var all = IncomingInvitations()
    all.add(received(7))
    #expect(all.invitation(7, of: other)?.handle == InvitationHandle(number: 107))
    #expect(all.invitation(8, of: other) == nil && all.asked(InvitationHandle(number: 107)) != nil)
  }

  @Test func `an accepted invitation is no longer pending, and its answer is due`() {
    var all = IncomingInvitations()
    all.add(received(7))
    let handle = InvitationHandle(number: 107)
    all.accept(handle, into: mine, .accepted, offers: nil, waits: .seconds(3), start)
    #expect(all.asked(handle) == nil && all[handle]?.answerAt == start)
    all.answered(handle, start)
    #expect(all.nextDeadline(now: start) == start + .seconds(3))
  }

  @Test func `a declined invitation is charged to its inviter for a while`() {
    var all = IncomingInvitations()
    all.add(received(7))
    let handle = InvitationHandle(number: 107)
    _ = all.end(handle, .declined(explanation: []), answering: nil, explanation: [], start)
    all.removeEnded(start)
    #expect(all.chargedCount(of: other, start) == 1)
    let end = start + SessionLimits.invitationStandTime
    all.removeEnded(end)
    #expect(all.chargedCount(of: other, end) == 0 && all.all.isEmpty)
  }

  @Test func `an invitation that led to a connection is charged to no inviter`() {
    var all = IncomingInvitations()
    all.add(received(7))
    _ = all.end(InvitationHandle(number: 107), .connected, answering: nil, explanation: [], start)
    all.removeEnded(start)
    #expect(all.all.isEmpty)
  }
}
