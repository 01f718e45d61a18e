import Primitives
import SessionSupport
import TestSupport
import Testing

@testable import Session
@testable import SessionStories

/// The signatures that other nodes cause by inviting an application whose session has members. Auto-join answers with
/// the offer of a merge.
@Suite struct MergeOfferTests {
  private let hall: Hall
  private let session: SessionHandle
  private var sessions: Sessions { hall.stations[0].sessions }

  init() throws {
    hall = Hall(10)
    session = hall.open(0)
    hall.join(1, into: hall.open(1), by: 0, session)
    hall.run(seconds: 1)
    for station in 2...9 {
      try sessions.gather(hall.stations[station].address, into: session, now: hall.now)
    }
    _ = answers()
  }

  private func invite(from station: Int, _ number: UInt32) throws {
    let message = hall.invitation(from: station, number, seconds: 3_600, memberCount: 2)
    try sessions.receive(
      SessionKind.invite.rawValue, message.bytes.span.bytes, from: hall.stations[station].id, now: hall.now)
  }

  /// Removes the messages that station 0 can send. Returns the number of answers among them.
  private func answers(canSend: Bool = true) -> Int {
    sessions.handleTimeouts(now: hall.now)
    var count = 0
    while let output = sessions.nextOutput(now: hall.now, canSend: { _, _, _ in canSend }) {
      if output.kind == .answer { count += 1 }
      sessions.completed(output.tag, isDelivered: true, now: hall.now)
    }
    return count
  }

  private func pass(milliseconds: UInt64) { hall.now = hall.now + .milliseconds(milliseconds) }

  @Test func `the offer of a merge is signed once, however often it is sent`() throws {
    let before = sessions.signaturesMade
    try invite(from: 2, 1)
    for _ in 1...20 { #expect(answers(canSend: false) == 0) }
    #expect(answers() == 1)
    for _ in 1...20 {
      try invite(from: 2, 1)
      #expect(answers() == 0)
    }
    pass(milliseconds: 1_000)
    #expect(answers() == 1)
    #expect(sessions.signaturesMade == before + 1)
  }

  @Test func `auto-join sends at most one merge offer per 20 ms`() throws {
    let before = sessions.signaturesMade
    for station in 2...9 { try invite(from: station, 1) }
    for count in 1...8 as ClosedRange<UInt64> {
      #expect(answers() == 1)
      #expect(sessions.signaturesMade == before + count)
      pass(milliseconds: 20)
    }
  }

  @Test func `a node that invites and cancels causes at most four merge offers per second`() throws {
    let before = sessions.signaturesMade
    for number in 1...20 as ClosedRange<UInt32> {
      try invite(from: 2, number)
      _ = answers()
      let end = EndMessage(number: number, reason: .cancelled)
      try sessions.receive(SessionKind.end.rawValue, end.bytes.span.bytes, from: hall.stations[2].id, now: hall.now)
      _ = answers()
      pass(milliseconds: 40)
    }
    #expect(sessions.signaturesMade == before + 4)
  }
}
