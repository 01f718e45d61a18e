import Channel
import Primitives
import Session
import SessionSupport
import TestSupport

/// A random scenario with everything that applications and networks do: invitations, introductions, merges, leaves,
/// ejections, crashes, partitions, messages, streams, and applications that do not read. With every other seed one
/// member is malicious.
///
/// Each event is checked for safety. After the faults are over, the end of the scenario is checked for liveness. A seed
/// gives the same scenario on every machine.
public final class Story {
  struct Ask {
    var station: Int
    var life: UInt64
    var deadline: Instant
    var endedAt: Instant?
  }

  public let seed: UInt64
  let hall: Hall
  var random: SeededRandom
  let liar: Int?
  /// The handles of the open sessions of each station.
  var open: [Int: [SessionHandle]] = [:]
  /// Invitations that were sent or received, and introductions. The key has the station, its incarnation (run) and the
  /// handle.
  var asks: [String: Ask] = [:]
  let introductions = StoryIntroductions()
  var waiting: [(station: Int, life: UInt64, Invitation, at: Instant)] = []
  var sent: UInt64 = 0
  /// The number of the last message that each receiver got from each sender. The key has the receiver's incarnation and
  /// session, and the sender's incarnation.
  var heard: [String: UInt64] = [:]
  public internal(set) var deliveredCount = 0
  public internal(set) var connectedCount = 0
  /// Checks the streams of the scenario.
  public let witness = StreamWitness(pool: Hall.streamPool)
  /// Streams that were opened in the quiet phase, beside streams whose reader does not read.
  var races: [StreamWitness.Flow] = []
  /// Stations whose applications do not read messages.
  private var deaf: Set<Int> = []
  /// Messages that no application has read, with the receiver's incarnation and the sender.
  var unread: [(station: Int, life: UInt64, session: SessionHandle, from: MemberAddress, byteCount: Int)] = []
  /// The number of aliases: ids of sessions that were merged into others. All tables at the end are counted.
  public internal(set) var aliasCount = 0
  /// The number of messages that the malicious member has falsified.
  public internal(set) var lieCount = 0
  /// Whether the quiet phase has begun, in which no more faults happen.
  var isCalm = false
  /// Messages that were sent in the quiet phase; see `StoryTalks`.
  var talks: [Talk] = []
  public internal(set) var talkCount = 0

  public init(_ seed: UInt64) {
    self.seed = seed
    random = SeededRandom(seed: seed ^ 0x57_09)
    hall = Hall(3 + Int(random.below(5)), seed: seed)
    liar = seed % 2 == 0 ? Int(random.below(UInt64(hall.stations.count))) : nil
    hall.delay = (1, 1 + random.below(600))
    for station in hall.stations { listen(to: station) }
    if let liar {
      hall.tamper = { [unowned self] output, from, to in
        if from == liar && !isCalm && random.chance(perThousand: 400) { lie(&output) }
      }
    }
  }

  func fail(_ what: String) { if hall.wrong == nil { hall.wrong = what } }

  /// Plays the scenario. Returns the first violation, or nil.
  public func play() -> String? {
    for _ in 0..<200 {
      act()
      hall.settle()
      hall.run(seconds: Double(1 + random.below(600)) / 1000)
      if let wrong = hall.wrong { return wrong }
    }
    isCalm = true
    for station in hall.stations {
      station.island = 0
      if !station.isUp { hall.start(station.number) }
    }
    waiting = []
    for station in hall.stations where !deaf.contains(station.number) || seed % 3 != 0 { listenAgain(station) }
    // Open invitations expire during the 62 seconds. Twenty quiet seconds follow.
    hall.run(seconds: 62)
    introduceInCalm()
    hall.run(seconds: 20)
    beginRaces()
    beginTalks()
    hall.run(seconds: 20)
    check()
    checkStreams()
    checkTalks()
    checkIntroductions()
    return hall.wrong
  }

  // MARK: Random actions

  private func act() {
    let station = hall.stations[Int(random.below(UInt64(hall.stations.count)))]
    let number = station.number
    switch random.below(100) {
    case 0..<5: hall.stations[number].island = Int(random.below(2))
    case 5..<10: for station in hall.stations { station.island = 0 }
    case 10..<14:
      if station.isUp { crash(station) } else { hall.start(number) }
    case 14..<18: if !station.isUp { hall.start(number) }
    case 18..<24: leave(station)
    case 24..<27: eject(station)
    case 27..<46: invite(station)
    case 46..<50: introduce(station)
    case 50..<70: answer()
    case 70..<73: deaf.insert(number)
    case 73..<76: listenAgain(station)
    case 76..<86: stream(station)
    default: talk(station)
    }
  }

  private func crash(_ station: Hall.Station) {
    open[station.number] = nil
    let life = "\(station.number)/\(station.epoch)/"
    asks = asks.filter { !$0.key.hasPrefix(life) }
    waiting.removeAll { $0.station == station.number }
    unread.removeAll { $0.station == station.number }
    hall.crash(station.number)
  }

  /// A random session of the station. The session is new if the station has none, and sometimes otherwise.
  func session(_ station: Hall.Station) -> SessionHandle? {
    let handles = open[station.number] ?? []
    if !handles.isEmpty && !random.chance(perThousand: 150) { return handles[Int(random.below(UInt64(handles.count)))] }
    let rules = SessionRules(onlyFounderAdmits: seed % 5 == 0, membersMax: seed % 3 == 0 ? 4 : 16)
    guard let handle = try? station.sessions.open(1, rules, now: hall.now) else { return handles.first }
    open[station.number, default: []].append(handle)
    return handle
  }

  private func invite(_ station: Hall.Station) {
    guard station.isUp, let session = session(station) else { return }
    let to = hall.stations[Int(random.below(UInt64(hall.stations.count)))]
    let seconds = 1 + random.below(30)
    let invitation = try? station.sessions.invite(
      to.address, into: session, context: [1], timeout: .seconds(seconds), now: hall.now)
    guard let invitation else { return }
    asks["\(station.number)/\(station.epoch)/\(invitation.number)"] = Ask(
      station: station.number, life: station.epoch, deadline: hall.now + .seconds(seconds) + Hall.step * 2)
    if random.chance(perThousand: 50) { try? station.sessions.cancel(invitation, now: hall.now) }
  }

  private func answer() {
    guard let (number, life, invitation, _) = waiting.first else { return }
    waiting.removeFirst()
    let station = hall.stations[number]
    guard station.isUp, station.epoch == life else { return }
    if random.chance(perThousand: 100) { return }
    if random.chance(perThousand: 150) {
      try? station.sessions.decline(invitation.handle, now: hall.now)
    } else if let session = session(station) {
      try? station.sessions.accept(invitation.handle, into: session, now: hall.now)
    }
  }

  private func leave(_ station: Hall.Station) {
    guard station.isUp, let handle = open[station.number]?.first else { return }
    open[station.number]?.removeFirst()
    try? station.sessions.leave(handle, now: hall.now)
  }

  private func eject(_ station: Hall.Station) {
    guard station.isUp, let handle = open[station.number]?.first else { return }
    let members = station.sessions.members(of: handle)
    guard !members.isEmpty else { return }
    try? station.sessions.eject(
      handle, members[Int(random.below(UInt64(members.count)))].address, now: hall.now)
  }

  private func talk(_ station: Hall.Station) {
    guard station.isUp, let handle = open[station.number]?.first else { return }
    sent += 1
    var data: [UInt8] = [UInt8(station.number)]
    data.append(bigEndian: station.epoch)
    data.append(bigEndian: sent)
    data += [UInt8](repeating: 0, count: Int(random.below(8_000)))
    if let message = try? station.sessions.send(data, in: handle, now: hall.now, canSend: { _, _, _ in true }) {
      for output in message.outputs { hall.post(output, from: station) }
    }
  }

  // MARK: Events for applications

  private func listen(to station: Hall.Station) {
    station.application = { [unowned self, unowned station] event in
      checkRoom(station)
      let life = "\(station.number)/\(station.epoch)/"
      switch event {
      case .invited(let invitation):
        waiting.append((station.number, station.epoch, invitation, hall.now))
        asks[life + "\(invitation.handle.number)"] = Ask(
          station: station.number, life: station.epoch,
          deadline: invitation.deadline + SessionLimits.settleTime + Hall.step * 2)
      case .invitationEnded(let handle, let outcome):
        guard let ask = asks[life + "\(handle.number)"] else {
          // An introduction invites the other application, or is invited by that application, without an event for the
          // application.
          return introductions.lives.contains(life) ? () : fail("an unknown invitation ends")
        }
        introductionEnded(life, handle, outcome)
        if ask.endedAt != nil { return fail("an invitation ends twice at station \(station.number)") }
        if hall.now > ask.deadline { return fail("an invitation ends late at station \(station.number)") }
        asks[life + "\(handle.number)"]?.endedAt = hall.now
      case .ended(let handle, _):
        open[station.number]?.removeAll { $0 == handle }
        station.sessions.discard(handle)
        unread.removeAll { $0.station == station.number && $0.session == handle }
      case .sent(let id, let to, true): delivered(station, id, to)
      case .room(let handle, let to): tryAgain(station, handle, to)
      case .message(let handle, let from, let data): receive(station, handle, from, data)
      case .member(let handle, let address, let state):
        if state == .connected { connectedCount += 1 }
        introductions.states[life + "\(handle.number)", default: [:]][address] = state
      case .stream(let handle, let event): receive(station, handle, event)
      case .identified, .decisionWanted, .sent, .datagram, .serviceFound, .serviceChanged, .serviceLost:
        break
      }
    }
  }

  private func receive(_ station: Hall.Station, _ handle: SessionHandle, _ from: MemberAddress, _ data: [UInt8]) {
    deliveredCount += 1
    if deaf.contains(station.number) {
      unread.append((station.number, station.epoch, handle, from, data.count))
      let held = unread.filter { $0.station == station.number && $0.session == handle && $0.from == from }
      // The limit is one share plus one reservation, the credit that docs/protocol.md defines.
      if held.reduce(0, { $0 + $1.byteCount + 192 }) > 131_072 + 65_192 {
        fail("too many messages wait at station \(station.number)")
      }
    } else {
      station.sessions.taken(data.count, of: from, in: handle, now: hall.now)
    }
    let sender = hall.number(of: from.node)
    hearsTalk(station, handle, from, data)
    if sender == liar { return }
    guard data.count >= 17, Int(data[0]) == sender else { return fail("a message is truncated, or has another sender") }
    let bytes = data.span.bytes
    if bytes.word64(1) != hall.stations[sender].epoch && station.known[sender] == hall.stations[sender].epoch {
      fail("a message of a former epoch arrives at station \(station.number)")
    }
    let key = "\(station.number)/\(station.epoch)/\(handle.number)/\(sender)/\(bytes.word64(1))"
    if let last = heard[key], last >= bytes.word64(9) { fail("a message arrives twice or out of order") }
    heard[key] = bytes.word64(9)
  }

  func isDeaf(_ station: Int) -> Bool { deaf.contains(station) }

  /// Lets the application read its waiting messages, and from then on every message at once.
  private func listenAgain(_ station: Hall.Station) {
    guard deaf.remove(station.number) != nil else { return }
    for message in unread where message.station == station.number && message.life == station.epoch {
      station.sessions.taken(message.byteCount, of: message.from, in: message.session, now: hall.now)
    }
    unread.removeAll { $0.station == station.number }
  }

  // MARK: Final checks

  private func check() {
    // A malicious member may have sent an invitation that is valid for an hour, so its end need not have come.
    for (key, ask) in asks
    where ask.endedAt == nil && ask.deadline <= hall.now && hall.stations[ask.station].epoch == ask.life {
      let what = introductions.waits[key] == nil ? "invitation" : "connection by address"
      return fail("the \(what) never ends: \(key)")
    }
    var present: [(station: Int, handle: SessionHandle)] = []
    for station in hall.stations where station.number != liar {
      for handle in open[station.number] ?? [] { present.append((station.number, handle)) }
    }
    let companies = companies(
      of: present.compactMap { station, handle in
        hall.stations[station].sessions.table(of: handle).map { (hall.stations[station].address, $0) }
      }, mayMeet: { _, _ in true })
    if companies.count != present.count { return fail("a session disappeared without an end") }
    for (index, (number, handle)) in present.enumerated() {
      let sessions = hall.stations[number].sessions
      guard let table = sessions.table(of: handle) else { return }
      // The view of each member must contain all members of the session and no other station.
      let all = present.indices.filter { companies[$0] == companies[index] }.map { present[$0] }
      let view = hall.view(number, handle).filter { $0 != liar }
      if view != all.map({ $0.station }).sorted() {
        return fail("station \(number) lists \(view) in a session of \(all.map { $0.station })")
      }
      for other in all where hall.stations[other.station].sessions.table(of: other.handle)?.digest != table.digest {
        return fail("stations \(number) and \(other.station) have different tables of one session")
      }
      aliasCount += table.origins.count - 1
      for address in table.joined where hall.number(of: address.node) < 0 {
        return fail("a table contains an invented member")
      }
    }
  }

  /// Describes the state of every open session as text. The text helps a developer who replays a seed.
  public func report() -> String {
    var lines = ["seed \(seed), liar \(liar.map { "\($0)" } ?? "none")"]
    for station in hall.stations {
      for handle in open[station.number] ?? [] {
        lines.append("station \(station.number)")
        lines += station.sessions.report(handle, number: hall.number)
      }
    }
    return lines.joined(separator: "\n")
  }

  // MARK: Malicious messages

  private func lie(_ output: inout SessionOutput) {
    guard let liar else { return }
    lieCount += 1
    if lieAboutStreams(&output) { return }
    let cryptography = hall.stations[liar].cryptography
    if random.chance(perThousand: 300), !output.bytes.isEmpty {
      output.bytes[Int(random.below(UInt64(output.bytes.count)))] ^= UInt8(1 + random.below(255))
      return
    }
    guard output.kind == .table, var message = try? TableMessage(output.bytes.span.bytes, cryptography),
      var entries = message.entries, !entries.records.isEmpty
    else { return }
    let index = Int(random.below(UInt64(entries.records.count)))
    let signature = Signature(cryptography.sign([UInt8]("lie".utf8).span.bytes))
    switch random.below(5) {
    case 0: entries.records[index].ticket.version &+= 1
    case 1:
      entries.records[index].departure = Departure(isEjection: true, reason: .wanted, text: [], signature: signature)
    case 2: entries.records[index].departure = nil
    case 3:
      // An invented node, whose ticket names the admitter of another member.
      let invented = Identity(5000 + random.below(100))
      let point = invented.point
      entries.records[index].address = MemberAddress(node: invented.id, endpoint: 1)
      entries.records[index].point = PublicPoint(InlineArray { point[$0] })
      entries.records.sort { $0.session != $1.session ? $0.session < $1.session : $0.address < $1.address }
    default:
      entries.records[index].ticket.depth = entries.records[index].ticket.depth > 1 ? 1 : 2
    }
    message.entries = entries
    output.bytes = message.bytes
  }
}
