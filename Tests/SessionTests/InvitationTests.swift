import Primitives
import Session
import Testing

@testable import SessionStories

@Suite struct InvitationTests {
  @Test func `an invitee that accepts is connected with the inviter`() {
    let hall = Hall(2)
    let a = hall.open(0), b = hall.open(1)
    #expect(hall.join(1, into: b, by: 0, a) == .connected)
    hall.run(seconds: 1)
    #expect(hall.view(0, a) == [0, 1])
    #expect(hall.view(1, b) == [0, 1])
    #expect(hall.stations[0].sessions.id(of: a) == hall.stations[1].sessions.id(of: b))
    #expect(hall.wrong == nil)
  }

  @Test func `an application that joins one member is connected with all`() {
    let hall = Hall(4)
    let sessions = (0..<4).map { hall.open($0) }
    // Each member invites the next station.
    for number in 1..<4 {
      #expect(hall.join(number, into: sessions[number], by: number - 1, sessions[number - 1]) == .connected)
    }
    hall.run(seconds: 2)
    for number in 0..<4 { #expect(hall.view(number, sessions[number]) == [0, 1, 2, 3]) }
    #expect(hall.wrong == nil)
  }

  @Test func `the context reaches the invitee, which may decline with a text`() throws {
    let hall = Hall(2)
    let a = hall.open(0)
    _ = hall.open(1)
    let number = try hall.stations[0].sessions.invite(
      hall.stations[1].address, into: a, context: [1, 2, 3], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(1))
    #expect(asked.context == [1, 2, 3])
    #expect(asked.from == hall.stations[0].address)
    try hall.stations[1].sessions.decline(asked.handle, explanation: Array("not now".utf8), now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.invitationEnded(number, .declined(explanation: Array("not now".utf8)))))
    #expect(
      hall.stations[1].events.contains(.invitationEnded(asked.handle, .declined(explanation: Array("not now".utf8)))))
  }

  @Test func `the end of an invitation stays due until it is handled`() throws {
    let hall = Hall(2)
    let sessions = hall.stations[0].sessions
    _ = try sessions.invite(hall.stations[1].address, into: hall.open(0), timeout: .seconds(10), now: hall.now)
    let end = hall.now + .seconds(10)
    #expect(sessions.nextDeadline(now: end) == end)
    #expect(sessions.nextDeadline(now: end + .seconds(5)) == end)
    sessions.handleTimeouts(now: end + .seconds(5))
    #expect(sessions.nextDeadline(now: end + .seconds(5)) > end + .seconds(5))
  }

  @Test func `an invitation without a timeout lasts 30 seconds`() throws {
    let hall = Hall(2)
    let a = hall.open(0)
    let number = try hall.stations[0].sessions.invite(hall.stations[1].address, into: a, now: hall.now)
    hall.settle()
    hall.run(seconds: 29.9)
    #expect(!hall.stations[0].events.contains(.invitationEnded(number, .timedOut)))
    hall.run(seconds: 0.2)
    #expect(hall.stations[0].events.contains(.invitationEnded(number, .timedOut)))
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(1))
    #expect(hall.stations[1].events.contains(.invitationEnded(asked.handle, .timedOut)))
  }

  @Test func `a cancelled invitation ends at both ends`() throws {
    let hall = Hall(2)
    let a = hall.open(0)
    let number = try hall.stations[0].sessions.invite(hall.stations[1].address, into: a, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(1))
    try hall.stations[0].sessions.cancel(number, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.invitationEnded(number, .cancelled)))
    #expect(hall.stations[1].events.contains(.invitationEnded(asked.handle, .cancelled)))
    #expect(throws: SessionError.unknown) {
      try hall.stations[1].sessions.accept(asked.handle, into: hall.open(1), now: hall.now)
    }
  }

  @Test func `an invitation to an absent service fails with that reason`() throws {
    let hall = Hall(2)
    let a = hall.open(0)
    let nowhere = MemberAddress(node: hall.stations[1].id, endpoint: 9)
    let number = try hall.stations[0].sessions.invite(nowhere, into: a, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.invitationEnded(number, .noService)))
  }

  @Test func `a full session admits no one`() {
    let hall = Hall(3)
    let a = hall.open(0, SessionRules(membersMax: 2))
    let b = hall.open(1)
    _ = hall.join(1, into: b, by: 0, a)
    #expect(throws: SessionError.full) {
      try hall.stations[0].sessions.invite(hall.stations[2].address, into: a, now: hall.now)
    }
  }

  @Test func `two applications that invite each other share a session, and both are asked`() throws {
    let hall = Hall(2)
    let sessions = [hall.open(0), hall.open(1)]
    let numbers = try (0..<2).map {
      try hall.stations[$0].sessions.invite(hall.stations[1 - $0].address, into: sessions[$0], now: hall.now)
    }
    hall.settle()
    hall.run(seconds: 1)
    for number in 0..<2 {
      let asked = try #require(hall.invited(number))
      try hall.stations[number].sessions.accept(asked.handle, into: sessions[number], now: hall.now)
    }
    hall.settle()
    hall.run(seconds: 2)
    for number in 0..<2 {
      #expect(hall.view(number, sessions[number]) == [0, 1])
      #expect(hall.stations[number].events.contains(.invitationEnded(numbers[number], .connected)))
      #expect(hall.stations[number].events.count { if case .invitationEnded = $0 { true } else { false } } == 2)
    }
    #expect(hall.stations[0].sessions.id(of: sessions[0]) == hall.stations[1].sessions.id(of: sessions[1]))
  }

  @Test func `a fifth invitation of one node is answered busy`() throws {
    let hall = Hall(2)
    let sessions = (0..<5).map { _ in hall.open(0) }
    for session in sessions[..<4] {
      _ = try hall.stations[0].sessions.invite(hall.stations[1].address, into: session, now: hall.now)
    }
    #expect(throws: SessionError.full) {
      try hall.stations[0].sessions.invite(hall.stations[1].address, into: sessions[4], now: hall.now)
    }
  }

  @Test func `an invitee that restarts is asked again, and the invitation still times out`() throws {
    let hall = Hall(2)
    let a = hall.open(0)
    let number = try hall.stations[0].sessions.invite(
      hall.stations[1].address, into: a, timeout: .seconds(10), now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    hall.crash(1)
    hall.run(seconds: 1)
    hall.start(1)
    hall.run(seconds: 20)
    #expect(hall.stations[0].events.count { $0 == .invitationEnded(number, .timedOut) } == 1)
  }

  /// Lets one application invite four addresses on each other node. Returns how many invitations succeed before one is
  /// refused.
  private func inviteAll(_ hall: Hall, _ owner: UInt32) throws -> Int {
    let session = try hall.stations[0].sessions.open(
      2 + owner, SessionRules(membersMax: 64), owner: SessionOwner(application: owner), now: hall.now)
    var count = 0
    for station in hall.stations.dropFirst() {
      for endpoint in UInt32(1)...4 {
        let address = MemberAddress(node: station.id, endpoint: endpoint)
        do throws(SessionError) {
          _ = try hall.stations[0].sessions.invite(address, into: session, now: hall.now)
          count += 1
        } catch { #expect(error == .full) }
      }
    }
    return count
  }

  @Test func `applications that invite as often as they may leave slots for each other`() throws {
    let hall = Hall(18)
    let counts = try (0..<31).map { try inviteAll(hall, UInt32($0)) }
    #expect(counts[..<4] == [17, 9, 5, 3] && counts.allSatisfy { $0 >= 1 })
    #expect(counts.reduce(0, +) <= SessionLimits.invitationsMax)
  }

  @Test func `invitations of an ended application use no reserved slots`() throws {
    let hall = Hall(18)
    let sessions = hall.stations[0].sessions
    // The sessions have ended, but their invitees have not been notified yet.
    for number in UInt32(0)..<8 {
      let session = try sessions.open(
        100, SessionRules(), owner: SessionOwner(application: 100 + number), now: hall.now)
      for station in hall.stations.dropFirst() {
        _ = try? sessions.invite(station.address, into: session, now: hall.now)
      }
      try sessions.leave(session, now: hall.now)
    }
    let counts = try (0..<16).map { try inviteAll(hall, UInt32($0)) }
    #expect(counts.allSatisfy { $0 >= 1 })
  }
}
