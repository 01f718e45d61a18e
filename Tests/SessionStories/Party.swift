import Primitives
import Session

/// Many applications on a few stations that all use auto-join.
///
/// `play` runs a random scenario: the applications start at different times, lose each other for a while, and restart.
/// At the end all are members of one session. A seed gives the same scenario on every machine.
public final class Party {
  struct Guest {
    let station: Int
    var session: SessionHandle
    let address: MemberAddress
  }

  let hall: Hall
  /// The applications of all stations, in ascending order of their addresses.
  private(set) var guests: [Guest] = []
  /// The number of invitations that have ended, counted at the inviter and at the invitee.
  public private(set) var endings = 0
  /// The number of invitations that arrived at each station (`asked`) and left each station (`invited`). Invitations
  /// within one station are not counted.
  private(set) var asked: [Int: Int] = [:]
  private(set) var invited: [Int: Int] = [:]
  /// Invitations that the applications were notified of. The applications accept all these invitations as auto-join
  /// does, like the daemon's local API.
  private var waiting: [(station: Int, invitation: Invitation)] = []
  /// Stations whose applications do not answer invitations.
  var silent: Set<Int> = []
  /// Called for each message between two stations, and can change the message. Returns false to drop the message.
  var passes: (inout SessionOutput, Int, Int) -> Bool = { _, _, _ in true }

  init(stations: Int, each: Int, seed: UInt64 = 1) {
    hall = Hall(stations, seed: seed)
    for station in hall.stations {
      for endpoint in 1...UInt32(each) {
        let address = MemberAddress(node: station.id, endpoint: endpoint)
        guests.append(Guest(station: station.number, session: open(endpoint, station), address: address))
      }
      station.application = { [unowned self, unowned station] event in
        switch event {
        case .invitationEnded: endings += 1
        case .invited(let invitation):
          if !silent.contains(station.number) { waiting.append((station.number, invitation)) }
        case .identified, .member, .decisionWanted, .message, .datagram, .sent, .room, .ended, .stream, .serviceFound,
          .serviceChanged, .serviceLost:
          break
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

  private func open(_ endpoint: UInt32, _ station: Hall.Station) -> SessionHandle {
    try! station.sessions.advertise(Service(endpoint: endpoint, type: Array("story".utf8)))
    return try! station.sessions.open(endpoint, SessionRules(membersMax: 64), now: hall.now)
  }

  /// Restarts a station. The applications of the restarted station open new sessions, and the applications of all other
  /// stations find them again.
  func restart(_ station: Int) {
    hall.crash(station)
    hall.run(seconds: 0.5)
    hall.start(station)
    waiting.removeAll { $0.station == station }
    let own = guests.indices.filter { guests[$0].station == station }
    for number in own { guests[number].session = open(guests[number].address.endpoint, hall.stations[station]) }
    begin(own)
    begin(guests.indices.filter { !own.contains($0) }, hearing: own)
  }

  /// Lets the guests in `some` gather (invite by auto-join) all guests, or only those in `hearing`.
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
      try? hall.stations[station].sessions.acceptGathered(invitation.handle, into: into.session)
      return true
    }
    hall.settle()
  }

  /// The number of guests in `some` that are connected with all others in `some`.
  func whole(_ some: [Int]) -> Int {
    let addresses = Set(some.map { guests[$0].address })
    return some.count { number in
      let members = hall.stations[guests[number].station].sessions.members(of: guests[number].session)
      return members.count { $0.state == .connected && addresses.contains($0.address) } == some.count - 1
    }
  }

  /// The time until the guests in `some` are members of one session, in seconds with one decimal. Nil if that takes
  /// longer than `seconds`.
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

  /// Plays a random scenario. Returns the first violation or nil, the seconds until all are in one session, and the
  /// counts of ended invitations and of guests.
  public static func play(_ seed: UInt64) -> (wrong: String?, seconds: Double?, endings: Int, guests: Int) {
    var random = SeededRandom(seed: seed ^ 0x9A_27)
    let party = Party(stations: 2 + Int(random.below(7)), each: 1 + Int(random.below(6)), seed: seed)
    party.hall.delay = (1, 1 + random.below(400))
    let all = Array(party.guests.indices)
    for number in all where random.chance(perThousand: 700) { party.begin([number]) }
    var restarts = 0
    for _ in 0..<12 {
      for station in party.hall.stations where random.chance(perThousand: 400) {
        station.island = Int(random.below(3))
      }
      if restarts < 4, random.chance(perThousand: 250) {
        party.restart(Int(random.below(UInt64(party.hall.stations.count))))
        restarts += 1
      }
      party.run(seconds: 1 + Int(random.below(5)))
      party.begin([all[Int(random.below(UInt64(all.count)))]])
    }
    party.begin(all)
    for station in party.hall.stations { station.island = 0 }
    let time = party.time(all, upTo: 120)
    var wrong = party.hall.wrong
    if time == nil {
      wrong =
        "\(all.count) at \(party.hall.stations.count): \(party.sessionCount) sessions, \(party.whole(all)) complete"
    } else if party.endings > 80 * all.count {
      wrong = "\(party.endings) ends of invitations for \(all.count)"
    }
    return (wrong, time, party.endings, all.count)
  }
}
