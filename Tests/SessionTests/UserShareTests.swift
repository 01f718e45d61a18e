import Primitives
import Session
import Testing

@testable import SessionStories

/// Places that the applications of one user leave to those of another one, however many they are.
@Suite struct UserShareTests {
  private let hall = Hall(18)

  /// A session of an application; of user 0, the operator, who may take whatever is free.
  private func open(_ application: UInt32, of user: UInt32, membersMax: Int = 64) throws -> SessionHandle {
    try hall.stations[0].sessions.open(
      2 + application, SessionRules(membersMax: membersMax),
      owner: SessionOwner(application: application, user: user, isFavoured: user == 0), now: hall.now)
  }

  /// How many invitations an application may send to these stations, four to each, until it is refused.
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

  @Test func `invitations`() throws {
    var count = 0
    for application in UInt32(0)..<10 { count += inviteAll(try open(application, of: 1), 1..<12) }
    // One of each application is sure, and of the rest the user has no more than twice what is left.
    #expect(count == 10 + 22)
    #expect(inviteAll(try open(10, of: 2), 12..<15) == 1 + 5)
    #expect(inviteAll(try open(11, of: 0), 15..<18) == 1 + 3)
  }

  @Test func `invitations to one node`() throws {
    let counts = try [open(0, of: 1), open(1, of: 1), open(2, of: 2)].map { inviteAll($0, 1..<2) }
    #expect(counts == [3, 0, 1])
  }

  @Test func `messages that have no result yet`() throws {
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
