import Channel
import Primitives
import Session
import Testing

@testable import SessionStories

@Suite struct PartyTests {
  @Test(arguments: [(4, 16), (16, 4), (64, 1), (1, 16), (2, 1)])
  func `applications that auto-join at once form one session, with one invitation each`(_ stations: Int, _ each: Int) {
    let party = Party(stations: stations, each: each)
    let all = Array(party.guests.indices)
    party.begin(all)
    let time = party.time(all, upTo: 15)
    print(
      "gather: \(stations) × \(each) in \(time ?? -1) s, \(party.endings) ends of invitations,"
        + " \(party.sessionCount) sessions, \(party.hall.sentMessages) messages, \(party.hall.sentBytes) bytes,"
        + " \(party.verifyCount) signatures")
    #expect(time != nil)
    #expect(party.endings <= 2 * all.count)
    #expect(party.table(0)?.origins.count == 1)
  }

  @Test func `a joining member does not receive the whole table from every other member`() {
    let party = Party(stations: 32, each: 1)
    let all = Array(party.guests.indices)
    party.begin(all)
    #expect(party.time(all, upTo: 15) != nil)
    party.run(seconds: 30)
    // Each member receives the table once, with its welcome. Each pair of members also exchanges handshake messages,
    // one record, and digests.
    let entries = party.table(0)!.entries
    let table = TableMessage(
      session: entries.origins[0].id, from: 1, to: 1, asks: false, digest: party.table(0)!.digest, entries: entries)
    #expect(party.hall.sentBytes < 32 * table.bytes.count + 32 * 31 * 1_200, "\(party.hall.sentBytes)")
    for number in all { #expect(party.table(number)?.digest == party.table(0)?.digest) }
  }

  @Test func `a node verifies a member's signatures once for all of its applications`() {
    let party = Party(stations: 4, each: 8)
    let all = Array(party.guests.indices)
    party.begin(all)
    #expect(party.time(all, upTo: 15) != nil)
    // All 32 tickets have two signatures each. The 2 × 8 is for the sessions that the eight applications of a station
    // have founded.
    #expect(party.verifyCount <= 2 * 32 + 2 * 8, "\(party.verifyCount)")
  }

  @Test func `two separate halves that auto-joined merge when they reach each other`() {
    let party = Party(stations: 8, each: 8)
    let all = Array(party.guests.indices)
    for station in party.hall.stations { station.island = station.number % 2 }
    party.begin(all)
    let halves = (0..<2).map { half in all.filter { party.guests[$0].station % 2 == half } }
    for half in halves { #expect(party.time(half, upTo: 15) != nil) }
    #expect(party.sessionCount == 2)
    let before = party.endings
    for station in party.hall.stations { station.island = 0 }
    let time = party.time(all, upTo: 20)
    print("gather: halves in \(time ?? -1) s, \(party.endings - before) ends of invitations")
    #expect(time != nil)
    #expect(party.endings - before <= 16)
    #expect(party.table(0)?.origins.count == 2)
  }

  @Test(arguments: [(16, 3), (32, 2)])
  func `separate islands that auto-joined merge into one session`(_ islands: Int, _ each: Int) {
    let party = Party(stations: islands, each: each)
    let all = Array(party.guests.indices)
    for station in party.hall.stations { station.island = station.number }
    party.begin(all)
    party.run(seconds: 5)
    #expect(party.sessionCount == islands)
    for station in party.hall.stations { station.island = 0 }
    #expect(party.time(all, upTo: 60) != nil, "\(party.sessionCount)")
    #expect(party.endings <= 8 * all.count)
  }

  @Test func `an application that starts later joins the session without a merge, in any order`() {
    let party = Party(stations: 24, each: 1)
    // Each newcomer has a lower address than all applications that came earlier.
    for number in party.guests.indices.reversed() {
      party.begin([number], hearing: Array(party.guests.indices[number...]))
      party.begin(party.guests.indices[(number + 1)...], hearing: [number])
      party.run(seconds: 1)
    }
    let all = Array(party.guests.indices)
    #expect(party.time(all, upTo: 15) != nil, "\(party.sessionCount)")
    #expect(party.table(0)!.origins.count <= 2)
  }

  @Test func `an application that invites a session that does not know it is invited back, not merged`() {
    let party = Party(stations: 20, each: 1)
    for number in party.guests.indices.reversed() {
      party.begin([number], hearing: Array(party.guests.indices[number...]))
      party.run(seconds: 2)
    }
    let all = Array(party.guests.indices)
    #expect(party.time(all, upTo: 15) != nil, "\(party.sessionCount)")
    #expect(party.table(0)!.origins.count <= 2)
  }

  @Test func `an application that does not answer delays the next one by two seconds`() {
    let party = Party(stations: 12, each: 1)
    party.silent = [party.guests[1].station]
    let others = party.guests.indices.filter { $0 != 1 }
    party.begin(others)
    #expect(party.time(others, upTo: 5) != nil)
  }

  @Test func `the others form a session although the lowest address does not answer`() {
    let party = Party(stations: 12, each: 2)
    party.silent = [party.guests[0].station]
    let all = Array(party.guests.indices[2...])
    party.begin(all)
    let time = party.time(all, upTo: 30)
    print("gather: the lowest is silent, the others in \(time ?? -1) s, \(party.endings) ends of invitations")
    #expect(time != nil)
    // On each other station, the application with the lowest address invites both silent applications again and again,
    // with growing pauses.
    party.run(seconds: 600)
    #expect(party.asked[party.guests[0].station, default: 0] <= 2 * 11 * 8, "\(party.asked)")
  }

  @Test func `an application that invites all and welcomes none does not prevent the session`() {
    let party = Party(stations: 12, each: 1)
    let liar = party.guests[0].station
    party.passes = { output, from, _ in from != liar || output.kind != .welcome }
    party.begin(party.guests.indices)
    let others = Array(party.guests.indices[1...])
    let time = party.time(others, upTo: 60)
    print("gather: one that never welcomes, the others in \(time ?? -1) s")
    #expect(time != nil)
  }

  @Test func `an application that is always busy or always declines does not prevent the session`() {
    for answer in [InvitationAnswer.busy, .declined] {
      let party = Party(stations: 12, each: 1)
      let liar = party.guests[6].station
      party.passes = { output, from, _ in
        if from == liar && output.kind == .answer {
          output.bytes = Array(output.bytes[..<4]) + [answer.rawValue, 0]
        }
        return true
      }
      let others = party.guests.indices.filter { $0 != 6 }
      party.begin(others)
      #expect(party.time(others, upTo: 5) != nil)
      party.run(seconds: 600)
      let most = answer == .declined ? 11 : 11 * 16
      #expect(party.asked[liar, default: 0] <= 12 + most, "\(party.asked)")
    }
  }

  @Test func `another member takes over if the responsible one does not invite`() {
    let party = Party(stations: 6, each: 1)
    let early = Array(party.guests.indices[..<5])
    party.begin(early, hearing: early)
    #expect(party.time(early, upTo: 5) != nil)
    // The member with the lowest address invites nobody, and the newcomer does not invite either.
    party.begin(early[1...], hearing: [5])
    party.run(seconds: 4)
    #expect(party.whole(early) == 5 && party.invited[party.guests[1].station, default: 0] == 0)
    #expect(party.asked[party.guests[5].station, default: 0] == 0)
    party.run(seconds: 3)
    #expect(party.invited[party.guests[1].station, default: 0] == 1)
    #expect(party.asked[party.guests[5].station, default: 0] == 1)
  }

  @Test func `auto-joining applications with random partitions and restarts end in one session`() {
    for seed in 1...20 as ClosedRange<UInt64> {
      let story = Party.play(seed)
      #expect(story.wrong == nil, "seed \(seed): \(story.wrong ?? "")")
    }
  }
}
