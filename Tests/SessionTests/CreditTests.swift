import Channel
import Primitives
import Session
import Testing

@testable import SessionStories

private let large = SessionRules(membersMax: 64)

@Suite struct CreditTests {
  private func send(_ hall: Hall, _ number: Int, _ session: SessionHandle, _ byteCount: Int, to: Int) -> Bool {
    let message = try? hall.stations[number].sessions.send(
      [UInt8](repeating: 0, count: byteCount), in: session, to: [hall.stations[to].address], now: hall.now,
      canSend: { _, _, _ in true })
    for output in message?.outputs ?? [] { hall.post(output, from: hall.stations[number]) }
    hall.settle()
    return message != nil
  }

  private func loans(_ hall: Hall, _ number: Int) -> UInt64 { hall.stations[number].sessions.roomGranted.loans }
  private func shares(_ hall: Hall, _ number: Int) -> UInt64 { hall.stations[number].sessions.roomGranted.shares }

  @Test func `a member whose share is too small for a message borrows room for one`() {
    let (hall, sessions) = joined(2, large)
    #expect(shares(hall, 1) == 768 * 1024 / 64)
    for _ in 0..<3 {
      #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
      hall.run(seconds: 1)
      #expect(hall.stations[0].events.contains(.room(sessions[0], hall.stations[1].address)))
      hall.stations[0].events = []
      #expect(send(hall, 0, sessions[0], 65_000, to: 1))
      #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
      hall.run(seconds: 1)
      #expect(!hall.stations[0].events.contains(.room(sessions[0], hall.stations[1].address)), "nothing was read")
      hall.stations[1].sessions.taken(65_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
      hall.settle()
      hall.run(seconds: 12)
    }
  }

  @Test func `unused borrowed room is given back`() {
    let (hall, sessions) = joined(2, large)
    #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
    hall.run(seconds: 1)
    #expect(loans(hall, 1) == 65_192 - 768 * 1024 / 64)
    hall.run(seconds: 11)
    #expect(loans(hall, 1) == 0)
    #expect(send(hall, 0, sessions[0], 10_000, to: 1), "it has its share as before")
    #expect(hall.stations[0].sessions.members(of: sessions[0]).map { $0.state } == [.connected])
  }

  @Test func `the rest of the room for a larger message than the one sent is given back`() {
    let (hall, sessions) = joined(2, large)
    hall.delay = (100, 100)
    #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
    hall.run(seconds: 0.15)
    // The update that grants credit for the long message has not arrived yet.
    #expect(!send(hall, 0, sessions[0], 20_000, to: 1))
    hall.run(seconds: 1)
    #expect(send(hall, 0, sessions[0], 20_000, to: 1))
    hall.run(seconds: 1)
    hall.stations[1].sessions.taken(20_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
    #expect(loans(hall, 1) > 0)
    hall.run(seconds: 11)
    #expect(loans(hall, 1) == 0)
    #expect(send(hall, 0, sessions[0], 10_000, to: 1), "it has its share as before")
  }

  @Test func `an application is notified of room that a handshake grants`() throws {
    let hall = Hall(2)
    let sessions = (0..<2).map { hall.open($0, large) }
    var met: MeetMessage?
    hall.tamper = { output, from, _ in
      if from == 0 { return }
      if output.kind == .meet { met = try? MeetMessage(output.bytes.span.bytes) }
      guard output.kind == .window, var meet = met, let window = try? WindowMessage(output.bytes.span.bytes) else {
        return
      }
      // The handshake message was sent before the window update, arrives after it, and has the same limit.
      meet.window = window.limit
      output.kind = .meet
      output.bytes = meet.bytes
    }
    #expect(hall.join(1, into: sessions[1], by: 0, sessions[0]) == .connected)
    hall.run(seconds: 2)
    #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
    hall.run(seconds: 1)
    #expect(hall.stations[0].events.contains(.room(sessions[0], hall.stations[1].address)))
    #expect(send(hall, 0, sessions[0], 65_000, to: 1))
  }

  @Test func `borrowed room that is never used is reclaimed when another member waits`() {
    let (hall, sessions) = joined(17, large)
    // No member returns the credit that is unused.
    hall.tamper = { output, _, _ in
      guard output.kind == .need, var need = try? NeedMessage(output.bytes.span.bytes) else { return }
      need.givenBack = 0
      output.bytes = need.bytes
    }
    for number in 1..<17 { #expect(!send(hall, number, sessions[number], 65_000, to: 0)) }
    hall.run(seconds: 1)
    func waiting() -> Int {
      (1..<17).filter { number in
        !hall.stations[number].events.contains(.room(sessions[number], hall.stations[0].address))
      }.count
    }
    #expect(loans(hall, 0) <= 699_051, "an application has two thirds at most")
    #expect(waiting() > 0 && waiting() < 8)
    hall.run(seconds: 70)
    #expect(waiting() == 0)
  }

  @Test func `a member that gives back more than it has must repeat its handshake`() {
    let (hall, sessions) = joined(2, large)
    hall.tamper = { output, _, _ in
      guard output.kind == .need, var need = try? NeedMessage(output.bytes.span.bytes) else { return }
      need.givenBack = 1 << 40
      output.bytes = need.bytes
    }
    #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
    hall.run(seconds: 1)
    #expect(hall.stations[1].events.contains(.member(sessions[1], hall.stations[0].address, .connecting)))
  }

  @Test func `a member that requests more than one message must repeat its handshake`() {
    let (hall, sessions) = joined(2, large)
    hall.tamper = { output, _, _ in
      guard output.kind == .need, var need = try? NeedMessage(output.bytes.span.bytes) else { return }
      need.limit = 200_000
      output.bytes = need.bytes
    }
    #expect(!send(hall, 0, sessions[0], 65_000, to: 1))
    hall.run(seconds: 1)
    #expect(hall.stations[1].events.contains(.member(sessions[1], hall.stations[0].address, .connecting)))
    #expect(loans(hall, 1) == 0)
  }

  @Test func `unread messages of a member that left keep their room until they are read`() throws {
    let (hall, sessions) = joined(2, large)
    for _ in 0..<3 { #expect(send(hall, 0, sessions[0], 1_000, to: 1)) }
    hall.run(seconds: 1)
    try hall.stations[0].sessions.leave(sessions[0], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    for left in [UInt64(2), 1, 0] {
      hall.stations[1].sessions.taken(1_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
      #expect(shares(hall, 1) == left * 1_192)
    }
  }

  @Test func `unread messages of an ended session keep their room until they are read or discarded`() throws {
    let (hall, sessions) = joined(2, large)
    for _ in 0..<3 { #expect(send(hall, 0, sessions[0], 1_000, to: 1)) }
    hall.run(seconds: 1)
    try hall.stations[0].sessions.eject(sessions[0], hall.stations[1].address, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(shares(hall, 1) == 3 * 1_192)
    hall.stations[1].sessions.taken(1_000, of: hall.stations[0].address, in: sessions[1], now: hall.now)
    #expect(shares(hall, 1) == 2 * 1_192)
    hall.stations[1].sessions.discard(sessions[1])
    #expect(shares(hall, 1) == 0 && loans(hall, 1) == 0)
  }

  @Test func `shares shrink with each new session, and grow again when sessions end`() throws {
    let hall = Hall(2)
    var sessions: [SessionHandle] = [], each: [UInt64] = []
    for _ in 0..<10 {
      let before = shares(hall, 1)
      let rules = SessionRules(membersMax: 2)
      let ours = hall.open(0, rules), theirs = hall.open(1, rules)
      #expect(hall.join(1, into: theirs, by: 0, ours) == .connected)
      hall.run(seconds: 2)
      sessions.append(theirs)
      each.append(shares(hall, 1) - before)
    }
    #expect(each[0] == 128 * 1024 && each == each.sorted(by: >) && each[9] < 32 * 1024, "\(each)")
    #expect(shares(hall, 1) <= 768 * 1024)
    for session in sessions.prefix(9) { try hall.stations[1].sessions.leave(session, now: hall.now) }
    for session in sessions.prefix(9) { hall.stations[1].sessions.discard(session) }
    #expect(shares(hall, 1) == each[9])
  }

  @Test func `a member out of reach keeps room only for what it has sent`() {
    let (hall, sessions) = joined(2)
    #expect(send(hall, 0, sessions[0], 1_000, to: 1))
    hall.run(seconds: 1)
    hall.stations[0].island = 1
    hall.run(seconds: 1)
    #expect(shares(hall, 1) == 1_192)
    hall.stations[0].island = 0
    hall.run(seconds: 3)
    #expect(shares(hall, 1) == 96 * 1024)
  }
}
