import Primitives
import Session
import Testing

@testable import SessionStories

/// The applications of one user leave slots to those of another user, however many applications there are.
@Suite struct UserShareTests {
  private let hall = Hall(18)

  /// Opens a session for an application of a user. User 0 is the operator, who may use every free slot.
  private func open(_ application: UInt32, of user: UInt32, membersMax: Int = 64) throws -> SessionHandle {
    try hall.stations[0].sessions.open(
      2 + application, SessionRules(membersMax: membersMax),
      owner: SessionOwner(application: application, user: user, isFavoured: user == 0), now: hall.now)
  }

  /// Lets an application invite four addresses on each of these stations. Returns how many invitations succeed.
  private func inviteAll(_ session: SessionHandle, _ stations: Range<Int>) -> Int {
    var count = 0
    for station in stations {
      for endpoint in UInt32(1)...4 {
        let address = MemberAddress(node: hall.stations[station].id, endpoint: endpoint)
        if (try? hall.stations[0].sessions.invite(address, into: session, now: hall.now)) != nil { count += 1 }
      }
    }
    return count
  }

  @Test func `each user has a share of all invitations`() throws {
    var count = 0
    for application in UInt32(0)..<10 { count += inviteAll(try open(application, of: 1), 1..<12) }
    // Each application has one reserved slot. A user gets at most twice as many of the unreserved slots as remain
    // free.
    #expect(count == 10 + 22)
    #expect(inviteAll(try open(10, of: 2), 12..<15) == 1 + 5)
    #expect(inviteAll(try open(11, of: 0), 15..<18) == 1 + 3)
  }

  @Test func `each user has a share of the invitations to one node`() throws {
    let counts = try [open(0, of: 1), open(1, of: 1), open(2, of: 2), open(3, of: 0)].map { inviteAll($0, 1..<2) }
    // Users share three of the four slots at one node. A newcomer evicts the oldest invitation of the user, or of the
    // application, with the most slots. The operator may use all four.
    #expect(counts == [3, 1, 1, 4])
  }

  /// Sends an invitation with a timeout of 49 days, more than the limit. Returns nil if the invitation is refused.
  private func invite(_ session: SessionHandle, endpoint: UInt32) -> InvitationHandle? {
    let address = MemberAddress(node: hall.stations[1].id, endpoint: endpoint)
    return try? hall.stations[0].sessions.invite(
      address, into: session, timeout: .milliseconds(4_294_967_295), now: hall.now)
  }

  /// The invitations of station 0 that have ended since the last call, with their outcomes.
  private func ended() -> [InvitationHandle: InvitationOutcome] {
    var ended: [InvitationHandle: InvitationOutcome] = [:]
    while let event = hall.stations[0].sessions.nextEvent() {
      if case .invitationEnded(let handle, let outcome) = event { ended[handle] = outcome }
    }
    return ended
  }

  @Test func `users with long invitations block neither other users nor the operator`() throws {
    let first = try open(0, of: 1), second = try open(1, of: 2), third = try open(2, of: 3), own = try open(3, of: 0)
    var theirs: [InvitationHandle] = []
    for endpoint in UInt32(1)...3 { theirs.append(try #require(invite(first, endpoint: endpoint))) }
    #expect(invite(first, endpoint: 4) == nil)
    #expect(invite(second, endpoint: 1) != nil)
    #expect(ended() == [theirs[0]: .timedOut])
    #expect(invite(third, endpoint: 1) != nil)
    #expect(ended() == [theirs[1]: .timedOut])
    #expect(invite(own, endpoint: 1) != nil)
    // The operator's invitation uses the slot that is reserved for the operator, so no other invitation ends.
    #expect(ended() == [:])
  }

  @Test func `an invitation is evicted after 30 s if no user has more than the others`() throws {
    let sessions = try (UInt32(0)..<4).map { try open($0, of: $0 + 1) }
    let oldest = try #require(invite(sessions[0], endpoint: 1))
    #expect(invite(sessions[1], endpoint: 1) != nil && invite(sessions[2], endpoint: 1) != nil)
    hall.now = hall.now + .milliseconds(29_999)
    #expect(invite(sessions[3], endpoint: 1) == nil)
    hall.now = hall.now + .milliseconds(1)
    #expect(invite(sessions[3], endpoint: 1) != nil)
    #expect(ended() == [oldest: .timedOut])
  }

  @Test func `an application's invitation is not evicted for another one of its own`() throws {
    let session = try open(0, of: 1)
    for endpoint in UInt32(1)...3 { #expect(invite(session, endpoint: endpoint) != nil) }
    hall.now = hall.now + .seconds(60)
    #expect(invite(session, endpoint: 4) == nil && ended() == [:])
  }

  @Test func `a user that invites and cancels leaves the invitee's slots for this node to others`() throws {
    let sessions = hall.stations[0].sessions
    let session = try open(0, of: 1), other = try open(1, of: 2), own = try open(2, of: 0)
    func inviteAndCancel() throws -> Bool {
      guard let handle = invite(session, endpoint: 1) else { return false }
      try sessions.cancel(handle, now: hall.now)
      while sessions.nextOutput(now: hall.now, canSend: { _, _, _ in true }) != nil {}
      return true
    }
    var answers: [Bool] = []
    for _ in 0..<4 { answers.append(try inviteAndCancel()) }
    hall.now = hall.now + .seconds(1)
    for _ in 0..<2 { answers.append(try inviteAndCancel()) }
    #expect(answers == [true, true, true, false, true, false])
    // The limit does not apply to other users, to other invitees, or to the operator.
    #expect(invite(other, endpoint: 1) != nil)
    #expect(inviteAll(session, 2..<3) == 3)
    for _ in 0..<8 { try sessions.cancel(try #require(invite(own, endpoint: 1)), now: hall.now) }
  }

  @Test func `an invitation lasts at most an hour`() throws {
    let session = try open(0, of: 1)
    let handle = try #require(invite(session, endpoint: 1))
    hall.stations[0].sessions.handleTimeouts(now: hall.now + .seconds(3_599))
    #expect(ended() == [:])
    hall.stations[0].sessions.handleTimeouts(now: hall.now + .seconds(3_600))
    #expect(ended() == [handle: .timedOut])
  }

  @Test func `each user has a share of the messages without a result`() throws {
    let sessions = hall.stations[0].sessions
    var counts: [Int] = []
    for application in UInt32(0)..<8 {
      let session = try open(application, of: application < 7 ? 1 : 2, membersMax: 2)
      let theirs = hall.open(1, SessionRules(membersMax: 2))
      _ = try sessions.invite(hall.stations[1].address, into: session, now: hall.now)
      hall.settle()
      hall.run(seconds: 1)
      let invitation = try #require(hall.invited(1))
      try hall.stations[1].sessions.accept(invitation.handle, into: theirs, now: hall.now)
      hall.settle()
      hall.run(seconds: 2)
      var count = 0
      while (try? sessions.send([1], in: session, now: hall.now, canSend: { _, _, _ in true })) != nil { count += 1 }
      counts.append(count)
    }
    #expect(counts[..<7].reduce(0, +) <= 7 * 63 + 342, "\(counts)")
    #expect(counts[7] >= 63 + 80, "\(counts)")
  }
}
