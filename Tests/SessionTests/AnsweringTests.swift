import Primitives
import Session
import TestSupport
import SessionSupport
import Testing

@testable import SessionStories

/// A node that receives arbitrary messages from other nodes and answers these messages.
@Suite struct AnsweringTests {
  /// A hall in which station 0 answers and has found all other stations.
  private func hall(_ count: Int) -> Hall {
    let hall = Hall(count)
    hall.settle()
    return hall
  }

  private func invite(_ hall: Hall, from station: Int, _ number: UInt32, _ rules: SessionRules = SessionRules()) throws
  {
    let message = hall.invitation(from: station, number, seconds: 30, rules: rules)
    try hall.stations[0].sessions.receive(
      SessionKind.invite.rawValue, message.bytes.span.bytes, from: hall.stations[station].id, now: hall.now)
  }

  private func meet(_ hall: Hall, from station: Int, _ endpoint: UInt32) throws {
    let message = MeetMessage(
      session: SessionID(high: 9, low: 9), from: endpoint, to: 1, number: 1, echo: 0,
      digest: TableDigest(InlineArray(repeating: 0)), window: 1)
    try hall.stations[0].sessions.receive(
      SessionKind.meet.rawValue, message.bytes.span.bytes, from: hall.stations[station].id, now: hall.now)
  }

  /// Removes the messages that station 0 has to send. Returns those of one kind.
  private func said(_ hall: Hall, _ kind: SessionKind) -> [[UInt8]] {
    var all: [[UInt8]] = []
    while let output = hall.stations[0].sessions.nextOutput(now: hall.now, canSend: { _, _, _ in true }) {
      if output.kind == kind { all.append(output.bytes) }
    }
    return all
  }

  private func answers(_ hall: Hall) throws -> [InvitationAnswer] {
    try said(hall, .answer).map { try AnswerMessage($0.span.bytes, hall.stations[0].cryptography).answer }
  }

  private func questions(_ hall: Hall) -> Int {
    var count = 0
    while let event = hall.stations[0].sessions.nextEvent() { if case .invited = event { count += 1 } }
    return count
  }

  @Test func `an application is asked about four invitations of a node, and four more are answered busy`() throws {
    let hall = hall(2)
    for number in 1...20 as ClosedRange<UInt32> { try invite(hall, from: 1, number) }
    #expect(questions(hall) == SessionLimits.invitationsPerNodeMax)
    #expect(try answers(hall) == Array(repeating: .busy, count: SessionLimits.invitationsPerNodeMax))
  }

  @Test func `an application is asked about at most thirty-two invitations of pinned nodes`() throws {
    let hall = hall(10)
    for station in 1...9 {
      hall.stations[0].sessions.note(hall.stations[station].id, ingress: UInt64(station), isPinned: true)
    }
    for station in 1...8 {
      for number in 1...4 as ClosedRange<UInt32> { try invite(hall, from: station, number) }
    }
    #expect(questions(hall) == SessionLimits.invitationsPerServiceMax)
    #expect(try answers(hall).isEmpty)
    try invite(hall, from: 9, 1)
    #expect(questions(hall) == 1)
    #expect(try answers(hall) == [.busy])
  }

  @Test func `an application is not asked about an inviter that its rules exclude`() throws {
    let hall = hall(2)
    hall.stations[0].sessions.peerFound(hall.stations[1].id, epoch: 1, isSealed: false, now: hall.now)
    try invite(hall, from: 1, 1, SessionRules(onlySealed: true))
    #expect(questions(hall) == 0)
    #expect(try answers(hall) == [.incompatible])
    try invite(hall, from: 1, 2, SessionRules(onlySealed: false))
    #expect(questions(hall) == 1)
  }

  @Test func `two applications per node that regard this one as a member are answered`() throws {
    let hall = hall(2)
    for endpoint in 1...6 as ClosedRange<UInt32> { try meet(hall, from: 1, endpoint) }
    #expect(said(hall, .table).count == SessionLimits.stalePerNodeMax)
  }

  @Test func `four pinned nodes that regard this one as a member are answered`() throws {
    let hall = hall(7)
    for station in 1...6 {
      hall.stations[0].sessions.note(hall.stations[station].id, ingress: UInt64(station), isPinned: true)
      try meet(hall, from: station, 1)
    }
    #expect(said(hall, .table).count == SessionLimits.staleMax)
  }
}
