import Channel
import Primitives
import Session
import Testing

@testable import SessionStories

/// Many applications on a few stations that gather each other.
private final class Party {
  struct Guest {
    let station: Int
    let session: SessionHandle
    let address: MemberAddress
  }

  let hall: Hall
  /// By address.
  private(set) var guests: [Guest] = []
  /// Ends of invitations, at both ends of each.
  private(set) var endings = 0
  /// Invitations to each station and from each, of other stations.
  private(set) var asked: [Int: Int] = [:]
  private(set) var invited: [Int: Int] = [:]
  /// Invitations that could not be accepted yet, as the local API keeps them.
  private var waiting: [(station: Int, invitation: Invitation)] = []
  /// Stations whose applications say nothing to invitations.
  var silent: Set<Int> = []
  /// What becomes of a message between two stations: false drops it.
  var passes: (inout SessionOutput, Int, Int) -> Bool = { _, _, _ in true }

  init(stations: Int, each: Int, seed: UInt64 = 1) {
    hall = Hall(stations, seed: seed)
    for station in hall.stations {
      for endpoint in 1...UInt32(each) {
        try! station.sessions.advertise(Service(endpoint: endpoint, type: Array("story".utf8)))
        let session = try! station.sessions.open(endpoint, SessionRules(membersMax: 64), now: hall.now)
        let address = MemberAddress(node: station.id, endpoint: endpoint)
        guests.append(Guest(station: station.number, session: session, address: address))
      }
      station.application = { [unowned self, unowned station] event in
        switch event {
        case .invitationEnded: endings += 1
        case .invited(let invitation):
          if !silent.contains(station.number) { waiting.append((station.number, invitation)) }
        default: break
        }
      }
    }
    guests.sort { $0.address < $1.address }
    hall.tamper = { [unowned self] output, from, to in
      if output.kind == .invite {
        invited[from, default: 0] += 1
        asked[to, default: 0] += 1
      }
      if !passes(&output, from, to) { output.bytes = [] }
    }
  }

  /// Some begin to gather all.
  func begin(_ some: some Sequence<Int>, hearing: [Int]? = nil) {
    for number in some where !silent.contains(guests[number].station) {
      for other in hearing ?? Array(guests.indices) where other != number {
        try? hall.stations[guests[number].station].sessions.gather(
          guests[other].address, into: guests[number].session, now: hall.now)
      }
    }
    hall.settle()
  }

  func run(seconds: Int) {
    for _ in 0..<seconds {
      hall.run(seconds: 1)
      answer()
    }
  }

  private func answer() {
    waiting.removeAll { station, invitation in
      let into = guests.first { $0.station == station && $0.address.endpoint == invitation.to }
      guard let into else { return true }
      let isAccepted =
        (try? hall.stations[station].sessions.accept(invitation.handle, into: into.session, now: hall.now)) != nil
      return isAccepted || invitation.deadline < hall.now
    }
    hall.settle()
  }

  /// How many of some are connected with all others of them.
  func whole(_ some: [Int]) -> Int {
    let addresses = Set(some.map { guests[$0].address })
    return some.count { number in
      let members = hall.stations[guests[number].station].sessions.members(of: guests[number].session)
      return members.count { $0.state == .connected && addresses.contains($0.address) } == some.count - 1
    }
  }

  /// Seconds until some are one session, to a tenth; nil when they are not.
  func time(_ some: [Int], upTo seconds: Int) -> Double? {
    for tenth in 0..<seconds * 10 {
      if whole(some) == some.count && Set(some.map { id($0) }).count == 1 { return Double(tenth) / 10 }
      hall.run(seconds: 0.1)
      if tenth % 10 == 9 { answer() }
    }
    return nil
  }

  func id(_ number: Int) -> SessionID? {
    hall.stations[guests[number].station].sessions.id(of: guests[number].session)
  }

  func table(_ number: Int) -> SessionTable? {
    hall.stations[guests[number].station].sessions.table(of: guests[number].session)
  }

  var sessionCount: Int { Set(guests.indices.map { id($0) }).count }
  var verifyCount: Int { hall.stations.map { $0.cryptography.verifyCount }.max() ?? 0 }
}

@Suite struct PartyTests {
  @Test(arguments: [(4, 16), (16, 4), (64, 1), (1, 16), (2, 1)])
  func `applications that gather at once come into one session, each by one invitation`(_ stations: Int, _ each: Int) {
    let party = Party(stations: stations, each: each)
    let all = Array(party.guests.indices)
    party.begin(all)
    let time = party.time(all, upTo: 15)
    print(
      "gather: \(stations) × \(each) in \(time ?? -1) s, \(party.endings) ends of invitations, \(party.sessionCount) sessions,"
        + " \(party.hall.sentMessages) messages, \(party.hall.sentBytes) bytes, \(party.verifyCount) signatures")
    #expect(time != nil)
    #expect(party.endings <= 2 * all.count)
    #expect(party.table(0)?.origins.count == 1)
  }

  @Test func `a table is not sent whole to each of those that join at once`() {
    let party = Party(stations: 32, each: 1)
    let all = Array(party.guests.indices)
    party.begin(all)
    #expect(party.time(all, upTo: 15) != nil)
    party.run(seconds: 30)
    // Each has its table by the welcome. Between each two go meets, a record, and digests.
    let entries = party.table(0)!.entries
    let tableBytes = TableMessage(session: entries.origins[0].id, from: 1, to: 1, asks: false, digest: party.table(0)!.digest, entries: entries).bytes.count
    #expect(party.hall.sentBytes < 32 * tableBytes + 32 * 31 * 1_200, "\(party.hall.sentBytes)")
    for number in all { #expect(party.table(number)?.digest == party.table(0)?.digest) }
  }

  @Test func `a node verifies a member's signatures once, however many of its applications are in the session`() {
    let party = Party(stations: 4, each: 8)
    let all = Array(party.guests.indices)
    party.begin(all)
    #expect(party.time(all, upTo: 15) != nil)
    // A ticket has two signatures.
    #expect(party.verifyCount <= 2 * 32 + 8, "\(party.verifyCount)")
  }

  @Test func `two halves that have gathered become one session when they hear each other`() {
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

  @Test func `sixteen islands that have gathered become one session`() {
    let party = Party(stations: 16, each: 3)
    let all = Array(party.guests.indices)
    for station in party.hall.stations { station.island = station.number }
    party.begin(all)
    party.run(seconds: 5)
    #expect(party.sessionCount == 16)
    for station in party.hall.stations { station.island = 0 }
    #expect(party.time(all, upTo: 60) != nil, "\(party.sessionCount)")
    #expect(party.endings <= 8 * all.count)
  }

  @Test func `whoever comes later joins the session and is not merged with it, in whatever order`() {
    let party = Party(stations: 24, each: 1)
    // Each has a lower address than all before it.
    for number in party.guests.indices.reversed() {
      party.begin([number], hearing: Array(party.guests.indices[number...]))
      party.begin(party.guests.indices[(number + 1)...], hearing: [number])
      party.run(seconds: 1)
    }
    let all = Array(party.guests.indices)
    #expect(party.time(all, upTo: 15) != nil, "\(party.sessionCount)")
    #expect(party.table(0)!.origins.count <= 2)
  }

  @Test func `the lowest of all does not answer, and the others gather without it`() {
    let party = Party(stations: 12, each: 2)
    party.silent = [party.guests[0].station]
    let all = Array(party.guests.indices[2...])
    party.begin(all)
    let time = party.time(all, upTo: 30)
    print("gather: the lowest is silent, the others in \(time ?? -1) s, \(party.endings) ends of invitations")
    #expect(time != nil)
    // Its two applications are asked by the lowest of each other station, again and again, but after longer and longer pauses.
    party.run(seconds: 600)
    #expect(party.asked[party.guests[0].station, default: 0] <= 2 * 11 * 8, "\(party.asked)")
  }

  @Test func `one that invites all and welcomes nobody keeps nobody from gathering`() {
    let party = Party(stations: 12, each: 1)
    let liar = party.guests[0].station
    party.passes = { output, from, _ in from != liar || output.kind != .welcome }
    party.begin(party.guests.indices)
    let others = Array(party.guests.indices[1...])
    let time = party.time(others, upTo: 60)
    print("gather: one that never welcomes, the others in \(time ?? -1) s")
    #expect(time != nil)
  }

  @Test func `one that is always busy, and one that always declines, keep nobody from gathering`() {
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

  @Test func `a member of the session takes over when the one that is to invite does not`() {
    let party = Party(stations: 6, each: 1)
    let early = Array(party.guests.indices[..<5])
    party.begin(early, hearing: early)
    #expect(party.time(early, upTo: 5) != nil)
    // The lowest of them invites nobody any more, and the newcomer does not either.
    party.begin(early[1...], hearing: [5])
    party.run(seconds: 4)
    #expect(party.whole(early) == 5 && party.invited[party.guests[1].station, default: 0] == 0)
    #expect(party.asked[party.guests[5].station, default: 0] == 0)
    party.run(seconds: 3)
    #expect(party.invited[party.guests[1].station, default: 0] == 1)
    #expect(party.asked[party.guests[5].station, default: 0] == 1)
  }

  @Test func `applications that begin to gather and are cut off at random end in one session`() {
    for seed in 1...12 as ClosedRange<UInt64> {
      let party = Party(stations: 6, each: 4, seed: seed)
      var random = SeededRandom(seed: seed)
      party.hall.delay = (1, 1 + random.below(400))
      let all = Array(party.guests.indices)
      for number in all { if random.chance(perThousand: 700) { party.begin([number]) } }
      for _ in 0..<12 {
        for station in party.hall.stations { station.island = Int(random.below(3)) }
        party.run(seconds: 1 + Int(random.below(4)))
        party.begin([all[Int(random.below(UInt64(all.count)))]])
      }
      party.begin(all)
      for station in party.hall.stations { station.island = 0 }
      let time = party.time(all, upTo: 90)
      #expect(time != nil, "seed \(seed): \(party.sessionCount) sessions, \(party.whole(all)) whole")
      #expect(party.endings <= 60 * all.count, "seed \(seed): \(party.endings)")
    }
  }
}
