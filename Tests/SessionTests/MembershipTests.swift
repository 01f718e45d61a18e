import Primitives
import Session
import Testing

@testable import SessionStories

/// Creates a hall of `all` stations, or of `count`. The first `count` stations are members of one session.
func joined(
  _ count: Int, of all: Int? = nil, _ rules: SessionRules = SessionRules(), owner: SessionOwner = SessionOwner(),
  seed: UInt64 = 1
) -> (Hall, [SessionHandle]) {
  let hall = Hall(all ?? count, seed: seed)
  let sessions = (0..<count).map { hall.open($0, rules, owner: owner) }
  for number in 1..<count { hall.join(number, into: sessions[number], by: 0, sessions[0]) }
  hall.run(seconds: 2)
  for station in hall.stations { station.events = [] }
  return (hall, sessions)
}

@Suite struct MembershipTests {
  @Test func `a departure is sent to all members, with its text`() throws {
    let (hall, sessions) = joined(3)
    try hall.stations[2].sessions.leave(sessions[2], text: Array("bye".utf8), now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    for number in 0..<2 {
      #expect(hall.view(number, sessions[number]) == [0, 1])
      #expect(
        hall.stations[number].events.contains(
          .member(sessions[number], hall.stations[2].address, .left(.wanted, text: Array("bye".utf8)))))
    }
    #expect(hall.stations[2].events.contains(.ended(sessions[2], .left)))
  }

  @Test func `a member that left returns with a new ticket`() throws {
    let (hall, sessions) = joined(3)
    var last = sessions[2]
    for by in [1, 0, 1] {
      try hall.stations[2].sessions.leave(last, now: hall.now)
      hall.settle()
      hall.run(seconds: 1)
      #expect(hall.view(0, sessions[0]) == [0, 1])
      last = hall.open(2)
      #expect(hall.join(2, into: last, by: by, sessions[by]) == .connected)
      hall.run(seconds: 2)
      for number in 0..<2 { #expect(hall.view(number, sessions[number]) == [0, 1, 2]) }
      #expect(hall.view(2, last) == [0, 1, 2])
    }
  }

  @Test func `a member out of reach is away, and returns without an invitation`() {
    let (hall, sessions) = joined(3)
    hall.stations[2].island = 1
    hall.run(seconds: 1)
    #expect(hall.view(0, sessions[0]) == [0, 1])
    #expect(hall.view(2, sessions[2]) == [2])
    #expect(hall.stations[0].events.contains(.member(sessions[0], hall.stations[2].address, .away)))
    hall.stations[2].island = 0
    hall.run(seconds: 2)
    for number in 0..<3 { #expect(hall.view(number, sessions[number]) == [0, 1, 2]) }
  }

  @Test func `a departure reaches a member that was away meanwhile`() throws {
    let (hall, sessions) = joined(3)
    hall.stations[2].island = 1
    hall.run(seconds: 1)
    try hall.stations[1].sessions.leave(sessions[1], now: hall.now)
    hall.settle()
    hall.run(seconds: 2)
    hall.crash(1)
    hall.stations[2].island = 0
    hall.run(seconds: 5)
    #expect(hall.stations[2].events.contains(.member(sessions[2], hall.stations[1].address, .left(.wanted, text: []))))
  }

  @Test func `a departure that waits for its signature arrives once it is signed, however late`() throws {
    let (hall, sessions) = joined(2)
    let leaver = hall.stations[1].sessions, address = hall.stations[1].address
    let before = leaver.signaturesMade
    try leaver.leave(sessions[1], signsLater: true, now: hall.now)
    hall.settle()
    #expect(hall.stations[1].events.contains(.ended(sessions[1], .left)))
    hall.run(seconds: 90)
    #expect(leaver.signaturesMade == before && leaver.owesDeparture(sessions[1]))
    #expect(hall.view(0, sessions[0]) == [0, 1])
    leaver.signDeparture(from: sessions[1], now: hall.now)
    #expect(leaver.signaturesMade == before + 1 && !leaver.owesDeparture(sessions[1]))
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.member(sessions[0], address, .left(.wanted, text: []))))
  }

  @Test func `a session keeps its slot until its departure is signed`() throws {
    let (hall, sessions) = joined(2)
    let leaver = hall.stations[1].sessions
    try leaver.leave(sessions[1], signsLater: true, now: hall.now)
    for _ in 1..<SessionLimits.sessionsMax { _ = try leaver.open(1, SessionRules(), now: hall.now) }
    #expect(throws: SessionError.full) { try leaver.open(1, SessionRules(), now: hall.now) }
    leaver.signDeparture(from: sessions[1], now: hall.now)
    _ = try leaver.open(1, SessionRules(), now: hall.now)
  }

  @Test func `a member that restarts is away at once, and returns when it is invited`() {
    let (hall, sessions) = joined(2)
    hall.crash(1)
    hall.start(1)
    let seconds = hall.run(upTo: 1) { hall.view(0, sessions[0]) == [0] }
    #expect(seconds != nil)
    let again = hall.open(1)
    #expect(hall.join(1, into: again, by: 0, sessions[0]) == .connected)
    #expect(hall.view(0, sessions[0]) == [0, 1])
  }

  @Test func `only the founder can eject members`() throws {
    let (hall, sessions) = joined(3)
    #expect(throws: SessionError.notAllowed) {
      try hall.stations[1].sessions.eject(sessions[1], hall.stations[2].address, now: hall.now)
    }
    try hall.stations[0].sessions.eject(sessions[0], hall.stations[2].address, text: Array("no".utf8), now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.view(1, sessions[1]) == [0, 1])
    #expect(hall.stations[2].events.contains(.ended(sessions[2], .ejected(text: Array("no".utf8)))))
  }

  @Test func `only the founder admits members if the rules require it`() {
    let (hall, sessions) = joined(2, of: 3, SessionRules(onlyFounderAdmits: true))
    #expect(throws: SessionError.notAllowed) {
      try hall.stations[1].sessions.invite(hall.stations[2].address, into: sessions[1], now: hall.now)
    }
  }

  @Test func `a rejected certificate separates only two members`() throws {
    let hall = Hall(3)
    let a = try hall.stations[0].sessions.open(1, SessionRules(), decidesOnMembers: true, now: hall.now)
    let others = [hall.open(1), hall.open(2)]
    hall.stations[0].application = { event in
      if case .decisionWanted(let handle, let address) = event {
        try? hall.stations[0].sessions.decide(
          handle, address, accepts: address == hall.stations[1].address, now: hall.now)
      }
    }
    hall.join(1, into: others[0], by: 0, a)
    hall.run(seconds: 1)
    #expect(hall.view(0, a) == [0, 1])
    hall.join(2, into: others[1], by: 1, others[0])
    hall.run(seconds: 15)
    #expect(hall.view(0, a) == [0, 1])
    #expect(hall.view(1, others[0]) == [0, 1, 2])
    #expect(hall.view(2, others[1]) == [1, 2])
  }

  @Test func `a session can have 64 members`() {
    let hall = Hall(64)
    let rules = SessionRules(membersMax: 64)
    let sessions = (0..<64).map { hall.open($0, rules) }
    for number in 1..<64 { hall.join(number, into: sessions[number], by: number / 2, sessions[number / 2]) }
    hall.run(seconds: 3)
    for number in 0..<64 { #expect(hall.view(number, sessions[number]) == Array(0..<64)) }
    #expect(hall.wrong == nil)
  }
}

@Suite struct MergeTests {
  @Test func `two sessions whose members exceed the limit do not merge, and the inviter is notified`() {
    let hall = Hall(4)
    let rules = SessionRules(membersMax: 3)
    let sessions = (0..<4).map { hall.open($0, rules) }
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.join(3, into: sessions[3], by: 2, sessions[2])
    #expect(hall.join(2, into: sessions[2], by: 0, sessions[0]) == .full)
    hall.run(seconds: 1)
    #expect(hall.view(1, sessions[1]) == [0, 1] && hall.view(3, sessions[3]) == [2, 3])
  }

  @Test func `two sessions with members merge into one with the lower id`() {
    let hall = Hall(4)
    let sessions = (0..<4).map { hall.open($0) }
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.join(3, into: sessions[3], by: 2, sessions[2])
    let ids = [0, 2].map { hall.stations[$0].sessions.id(of: sessions[$0])! }
    #expect(hall.join(2, into: sessions[2], by: 1, sessions[1]) == .connected)
    hall.run(seconds: 5)
    for number in 0..<4 {
      #expect(hall.view(number, sessions[number]) == [0, 1, 2, 3])
      #expect(hall.stations[number].sessions.id(of: sessions[number]) == ids.min())
    }
  }

  @Test func `sessions with different rules do not merge`() throws {
    let hall = Hall(4)
    let sessions = (0..<4).map { hall.open($0, SessionRules(onlyFounderAdmits: $0 > 1)) }
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.join(3, into: sessions[3], by: 2, sessions[2])
    _ = try hall.stations[0].sessions.invite(hall.stations[2].address, into: sessions[0], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(2))
    #expect(throws: SessionError.incompatible) {
      try hall.stations[2].sessions.accept(asked.handle, into: sessions[2], now: hall.now)
    }
  }

  @Test func `crossing merges leave as many members as the limit allows`() {
    let hall = Hall(6)
    let rules = SessionRules(membersMax: 4)
    let sessions = (0..<6).map { hall.open($0, rules) }
    // Three sessions have two members each. Two merges between these sessions happen at the same time.
    for number in [0, 2, 4] { hall.join(number + 1, into: sessions[number + 1], by: number, sessions[number]) }
    for number in [0, 4] {
      _ = try? hall.stations[number].sessions.invite(
        hall.stations[2 + number / 4].address, into: sessions[number], now: hall.now)
    }
    hall.settle()
    hall.run(seconds: 1)
    for number in [2, 3] {
      if let asked = hall.invited(number) {
        try? hall.stations[number].sessions.accept(asked.handle, into: sessions[number], now: hall.now)
      }
    }
    hall.settle()
    hall.run(seconds: 20)
    let stays = (0..<6).filter { hall.stations[$0].sessions.id(of: sessions[$0]) != nil }
    #expect(stays.count == 4)
    for number in stays { #expect(hall.view(number, sessions[number]) == stays) }
  }
}
