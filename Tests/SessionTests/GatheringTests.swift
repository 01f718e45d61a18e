import Primitives
import Session
import Testing

@testable import SessionStories

@Suite struct GatheringTests {
  /// Two stations that each have one session: `low` has the lower address, `high` the higher address. `invites` returns
  /// the stations that have sent an invitation, in order.
  private func pair() -> (hall: Hall, low: Int, high: Int, sessions: [SessionHandle], invites: () -> [Int]) {
    let hall = Hall(2)
    let sessions = (0..<2).map { hall.open($0) }
    let low = hall.stations[0].address < hall.stations[1].address ? 0 : 1
    var invites: [Int] = []
    hall.tamper = { output, from, _ in if output.kind == .invite { invites.append(from) } }
    return (hall, low, 1 - low, sessions, { invites })
  }

  private func gather(_ hall: Hall, _ number: Int, _ session: SessionHandle, _ other: Int) throws {
    try hall.stations[number].sessions.gather(hall.stations[other].address, into: session, now: hall.now)
    hall.settle()
  }

  @Test func `the lower one of two auto-joining addresses invites, without asking the application`() throws {
    let (hall, low, high, sessions, invites) = pair()
    try gather(hall, high, sessions[high], low)
    try gather(hall, low, sessions[low], high)
    hall.run(seconds: 15)
    #expect(invites() == [low])
    #expect(hall.view(0, sessions[0]) == [0, 1] && hall.view(1, sessions[1]) == [0, 1])
    #expect(hall.invited(0) == nil && hall.invited(1) == nil)
  }

  @Test func `the higher address takes over if the lower one does not invite`() throws {
    let (hall, low, high, sessions, invites) = pair()
    try gather(hall, high, sessions[high], low)
    hall.run(seconds: 4)
    #expect(invites().isEmpty)
    hall.run(seconds: 4)
    #expect(invites() == [high])
    let asked = try #require(hall.invited(low))
    try hall.stations[low].sessions.accept(asked.handle, into: sessions[low], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.view(0, sessions[0]) == [0, 1])
  }

  @Test func `applications that auto-join as much as they may leave slots for each other`() throws {
    let sessions = Hall(2).stations[0].sessions, now = Instant.zero + .seconds(1)
    var counts: [Int] = []
    for owner in UInt32(1)...31 {
      let session = try sessions.open(owner, SessionRules(), owner: SessionOwner(application: owner), now: now)
      var count = 0
      for number in UInt64(1)...600 {
        let address = MemberAddress(node: NodeID(high: 1, low: number), endpoint: 1)
        guard (try? sessions.gather(address, into: session, now: now)) != nil else { break }
        count += 1
      }
      counts.append(count)
    }
    #expect(counts[..<3] == [544, 288, 160] && counts.allSatisfy { $0 >= 32 })
    #expect(counts.reduce(0, +) <= SessionLimits.gatheringsMax)
  }

  @Test func `an address that declined is not invited again, and one out of reach is invited on return`() throws {
    let (hall, low, high, sessions, invites) = pair()
    hall.stations[high].island = 1
    hall.run(seconds: 1)
    try gather(hall, low, sessions[low], high)
    hall.run(seconds: 30)
    #expect(invites().isEmpty)
    hall.stations[high].island = 0
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(high))
    try hall.stations[high].sessions.decline(asked.handle, now: hall.now)
    hall.settle()
    hall.run(seconds: 60)
    #expect(invites() == [low])
  }

  @Test func `an address that refuses a session's invitation while it invites is invited once and accepted`() throws {
    let hall = Hall(3)
    let first = hall.open(0), second = hall.open(1)
    hall.join(1, into: second, by: 0, first)
    hall.run(seconds: 1)
    // Endpoint 7 is not an advertised service of its node. So the node refuses an invitation to endpoint 7 at once.
    let third = try hall.stations[2].sessions.open(7, SessionRules(), now: hall.now)
    var invites: [Int] = []
    hall.tamper = { output, from, _ in if output.kind == .invite { invites.append(from) } }
    _ = try hall.stations[2].sessions.invite(hall.stations[0].address, into: third, now: hall.now)
    hall.settle()
    _ = hall.run(upTo: 1) { hall.stations[0].events.contains { if case .invited = $0 { true } else { false } } }
    let asked = try #require(hall.invited(0))
    try hall.stations[0].sessions.acceptGathered(asked.handle, into: first)
    hall.settle()
    hall.run(seconds: 1.5)
    #expect(invites == [2, 0])
    hall.run(seconds: 3)
    #expect(invites == [2, 0])
    #expect(hall.view(0, first) == [0, 1, 2])
  }
}
