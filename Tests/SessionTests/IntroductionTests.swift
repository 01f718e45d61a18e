import Primitives
import Testing

@testable import Session
@testable import SessionStories

/// Introductions: two applications each connect to the address of the other. No address in these introductions is
/// advertised.
@Suite struct IntroductionTests {
  let hall = Hall(3)
  let sessions: [SessionHandle]

  init() {
    sessions = (0..<3).map { [hall] number in
      hall.stations[number].sessions.withdraw(1, now: hall.now)
      return hall.open(number)
    }
  }

  private func connect(_ number: Int, to other: Int, seconds: UInt64 = 20) throws -> InvitationHandle {
    let handle = try hall.stations[number].sessions.connect(
      hall.stations[other].address, into: sessions[number], timeout: .seconds(seconds), now: hall.now)
    hall.settle()
    return handle
  }

  private func ended(_ number: Int, _ handle: InvitationHandle) -> [InvitationOutcome] {
    hall.stations[number].events.compactMap {
      if case .invitationEnded(handle, let outcome) = $0 { outcome } else { nil }
    }
  }

  @Test func `two applications that connect to each other share a session, without being asked`() throws {
    let first = try connect(0, to: 1)
    hall.run(seconds: 3)
    let second = try connect(1, to: 0)
    #expect(hall.run(upTo: 1) { hall.view(0, sessions[0]) == [0, 1] && hall.view(1, sessions[1]) == [0, 1] } != nil)
    #expect(ended(0, first) == [.connected] && ended(1, second) == [.connected])
    #expect(hall.invited(0) == nil && hall.invited(1) == nil)
    #expect(hall.stations.allSatisfy { $0.sessions.introductions.isEmpty })
  }

  @Test func `two sessions with members merge when their members connect to each other`() throws {
    _ = try connect(0, to: 1)
    _ = try connect(1, to: 0)
    hall.run(seconds: 2)
    _ = try connect(2, to: 1)
    _ = try connect(1, to: 2)
    hall.run(seconds: 3)
    for number in 0..<3 { #expect(hall.view(number, sessions[number]) == [0, 1, 2]) }
  }

  @Test func `an application that does not wait appears absent to one that connects to it`() throws {
    let handle = try connect(0, to: 1, seconds: 15)
    hall.run(seconds: 14)
    #expect(ended(0, handle) == [] && hall.invited(1) == nil)
    hall.run(seconds: 2)
    #expect(ended(0, handle) == [.timedOut])
    // The application of station 0 no longer waits, so this connect does not reach it.
    _ = try connect(1, to: 0)
    hall.run(seconds: 5)
    #expect(hall.view(1, sessions[1]) == [1])
  }

  @Test func `an application waits for an address out of reach`() throws {
    hall.stations[1].island = 1
    hall.run(seconds: 5)
    let handle = try connect(0, to: 1)
    _ = try connect(1, to: 0)
    hall.run(seconds: 5)
    hall.stations[1].island = 0
    #expect(hall.run(upTo: 3) { ended(0, handle) == [.connected] } != nil)
  }

  @Test func `a wait is cancelled, or ends with its session`() throws {
    let first = try connect(0, to: 1)
    #expect(throws: SessionError.busy) { try connect(0, to: 1) }
    try hall.stations[0].sessions.cancel(first, now: hall.now)
    let second = try connect(0, to: 1)
    try hall.stations[0].sessions.leave(sessions[0], now: hall.now)
    hall.settle()
    #expect(ended(0, first) == [.cancelled] && ended(0, second) == [.sessionEnded])
  }

  @Test func `an invitation that arrived during a wait is not accepted after its end`() throws {
    let byAddress = (0..<3).sorted { hall.stations[$0].address < hall.stations[$1].address }
    let (alone, other, waits) = (byAddress[0], byAddress[1], byAddress[2])
    _ = try connect(waits, to: other)
    _ = try connect(other, to: waits)
    hall.run(seconds: 2)
    // If an application that is alone and a member of a session invite each other, the member's invitation has priority
    // for a while. In this test that invitation is lost.
    hall.tamper = { output, from, _ in if from == waits && output.kind == .invite { output.bytes = [] } }
    let wait = try connect(waits, to: alone)
    _ = try connect(alone, to: waits)
    hall.run(seconds: 1)
    try hall.stations[waits].sessions.cancel(wait, now: hall.now)
    hall.settle()
    hall.run(seconds: 5)
    #expect(hall.view(waits, sessions[waits]) == [waits, other].sorted())
    #expect(hall.view(alone, sessions[alone]) == [alone])
  }

  @Test func `an invitation is accepted into the session that waits for its inviter`() throws {
    hall.delay = (10, 10)
    let second = hall.open(0)
    let toFirst = try connect(0, to: 1)
    let toSecond = try hall.stations[0].sessions.connect(hall.stations[2].address, into: second, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    // The two invitations arrive at station 0 at once, and each must be accepted into the session that waits for its
    // inviter.
    _ = try connect(2, to: 0)
    _ = try connect(1, to: 0)
    hall.run(seconds: 3)
    #expect(ended(0, toFirst) == [.connected] && ended(0, toSecond) == [.connected])
    #expect(hall.view(0, sessions[0]) == [0, 1] && hall.view(0, second) == [0, 2])
  }

  @Test func `a decline ends the wait`() throws {
    try hall.stations[1].sessions.advertise(Service(endpoint: 1, type: Array("story".utf8)))
    let handle = try connect(0, to: 1)
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(1))
    try hall.stations[1].sessions.decline(asked.handle, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(ended(0, handle) == [.declined(explanation: [])])
  }

  /// Connects one application to up to 100 addresses. Returns how many connects succeed before one is refused.
  private func connectAll(_ owner: UInt32) throws -> Int {
    let session = try hall.stations[0].sessions.open(
      2 + owner, SessionRules(), owner: SessionOwner(application: owner), now: hall.now)
    for endpoint in UInt32(1)...100 {
      do throws(SessionError) {
        _ = try hall.stations[0].sessions.connect(
          MemberAddress(node: hall.stations[1].id, endpoint: endpoint), into: session, now: hall.now)
      } catch {
        #expect(error == .full)
        return Int(endpoint) - 1
      }
    }
    return 100
  }

  @Test func `applications that connect at their maximum rate leave slots for each other`() throws {
    let counts = try (0..<31).map { try connectAll(UInt32($0)) }
    #expect(counts[..<4] == [17, 9, 5, 3] && counts.allSatisfy { $0 >= 1 })
    #expect(counts.reduce(0, +) <= SessionLimits.introductionsMax)
  }

  @Test func `an application cannot connect to itself`() throws {
    #expect(throws: SessionError.invalid) {
      try hall.stations[0].sessions.connect(hall.stations[0].address, into: sessions[0], now: hall.now)
    }
  }
}
