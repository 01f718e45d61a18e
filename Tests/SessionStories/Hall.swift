import Channel
import Primitives
import SealSupport
import Session
import SessionSupport
import TestSupport

/// Nodes with sessions in one process. The hall simulates the guarantees of the channels below sessions, and takes all
/// randomness from one seed.
///
/// A message arrives in the order of its direction and lane, or it fails. Messages between nodes that cannot reach each
/// other are delayed, for at most 60 s. A node that restarts forgets everything, and messages on their way to that node
/// fail.
final class Hall {
  final class Station {
    let number: Int
    let cryptography: StandInCryptography
    var sessions: Sessions
    /// The budget for signature checks. Each other station is charged as a link of its own.
    var checks = CheckBudget()
    var epoch: UInt64 = 1
    var isUp = true
    /// Stations with the same number here can reach each other.
    var island = 0
    /// The peers that this station was notified of, with their epochs.
    var known: [Int: UInt64] = [:]
    /// The events of this station that the test has not removed yet.
    var events: [SessionEvent] = []
    /// Receives each event, if set, so that no event is stored in `events`.
    var application: ((SessionEvent) -> Void)?

    init(_ number: Int, seed: UInt64) {
      self.number = number
      cryptography = StandInCryptography(Identity(UInt64(number) + 1000))
      sessions = Self.start(cryptography, seed)
    }

    static func start(_ cryptography: StandInCryptography, _ seed: UInt64) -> Sessions {
      let point = cryptography.identity.point
      let sessions = Sessions(
        local: cryptography.identity.id, point: PublicPoint(InlineArray { point[$0] }), cryptography, seed: seed,
        streamBytesMax: UInt64(SessionLimits.streamsMax) * SessionLimits.streamWindowSure + UInt64(Hall.streamPool))
      try! sessions.advertise(Service(endpoint: 1, type: Array("story".utf8)))
      return sessions
    }

    var id: NodeID { cryptography.identity.id }
    /// The address of endpoint 1 on this station.
    var address: MemberAddress { MemberAddress(node: id, endpoint: 1) }
  }

  struct Letter {
    var output: SessionOutput
    var from: (number: Int, epoch: UInt64)
    var to: (number: Int, epoch: UInt64)
    var at: Instant
    /// Whether the receiver has handled the message. The sender is notified at `at`.
    var isDelivered = false
    var sentAt: Instant
  }

  static let step = TimeSpan.milliseconds(20)
  /// The number of bytes that all streams to one station share, beyond the guaranteed window of each stream. The pool
  /// is small, so that all its bytes are used.
  static let streamPool = 1_048_576

  var now = Instant.zero + .seconds(1000)
  var random: SeededRandom
  var stations: [Station] = []
  /// The messages on their way, in the order of sending.
  var letters: [Letter] = []
  /// The least and the greatest transit time in milliseconds.
  var delay: (least: UInt64, most: UInt64) = (1, 40)
  var wrong: String?
  /// Called for each message that arrives. The closure can change the message.
  var tamper: ((inout SessionOutput, _ from: Int, _ to: Int) -> Void)?
  var sentBytes = 0
  var sentMessages = 0

  init(_ count: Int, seed: UInt64 = 1) {
    random = SeededRandom(seed: seed)
    stations = (0..<count).map { Station($0, seed: seed &* 77 &+ UInt64($0)) }
    settle()
  }

  func number(of id: NodeID) -> Int { stations.firstIndex { $0.id == id } ?? -1 }

  func reach(_ a: Int, _ b: Int) -> Bool {
    stations[a].isUp && stations[b].isUp && stations[a].island == stations[b].island
  }

  // MARK: Time

  func run(seconds: Double) {
    let end = now + .milliseconds(UInt64(seconds * 1000))
    while now < end, wrong == nil {
      now = now + Self.step
      tellReach()
      deliver()
      for station in stations where station.isUp {
        check(station)
        if station.sessions.nextDeadline(now: now - Self.step) <= now { station.sessions.handleTimeouts(now: now) }
        drain(station)
      }
    }
  }

  /// Delivers reachability changes and all output, without letting time pass.
  func settle() {
    tellReach()
    for station in stations where station.isUp { drain(station) }
  }

  /// Runs until `condition` holds, at most `seconds`. Returns the seconds until then, or nil if `condition` never held.
  func run(upTo seconds: Double, until condition: () -> Bool) -> Double? {
    let start = now
    while wrong == nil {
      if condition() { return Double((now - start).milliseconds) / 1000 }
      if (now - start).milliseconds >= UInt64(seconds * 1000) { return nil }
      run(seconds: 0.02)
    }
    return nil
  }

  private func tellReach() {
    for a in stations where a.isUp {
      for b in stations where a !== b {
        if reach(a.number, b.number) {
          if a.known[b.number] != b.epoch {
            if a.known[b.number] != nil { fail(to: b.number, from: a.number) }
            a.known[b.number] = b.epoch
            a.sessions.peerFound(b.id, epoch: b.epoch, now: now)
          }
        } else if a.known[b.number] != nil {
          a.known[b.number] = nil
          a.sessions.peerLost(b.id)
        }
      }
    }
  }

  private func deliver() {
    var index = 0
    var blocked: Set<Int> = []
    while index < letters.count {
      let letter = letters[index]
      let sender = stations[letter.from.number], receiver = stations[letter.to.number]
      guard sender.isUp, sender.epoch == letter.from.epoch else {
        letters.remove(at: index)
        continue
      }
      let lane = letter.output.lane.map { Int($0.rawValue) } ?? 2
      let direction = (letter.from.number * 1000 + letter.to.number) * 3 + lane
      if !letter.isDelivered, receiver.epoch != letter.to.epoch {
        letters.remove(at: index)
        if letter.output.lane != nil { sender.sessions.completed(letter.output.tag, isDelivered: false, now: now) }
        continue
      }
      if !letter.isDelivered, now - letter.sentAt > .seconds(60) {
        letters.remove(at: index)
        sender.sessions.completed(letter.output.tag, isDelivered: false, now: now)
        continue
      }
      guard letter.at <= now, reach(letter.from.number, letter.to.number),
        letter.isDelivered || !blocked.contains(direction)
      else {
        if !letter.isDelivered { blocked.insert(direction) }
        index += 1
        continue
      }
      if letter.isDelivered {
        letters.remove(at: index)
        sender.sessions.completed(letter.output.tag, isDelivered: true, now: now)
        continue
      }
      var output = letter.output
      tamper?(&output, letter.from.number, letter.to.number)
      guard var allowance = allowance(of: receiver, output, from: sender) else {
        blocked.insert(direction)
        index += 1
        continue
      }
      defer { receiver.checks.giveBack(allowance.left, by: sender.number) }
      do {
        try receiver.sessions.receive(
          output.kind.rawValue, output.bytes.span.bytes, from: sender.id, over: output.lane, allowance: &allowance,
          now: now)
      } catch {
        if tamper == nil { wrong = "\(output.kind) refused: \(error)" }
      }
      if output.lane == nil {
        letters.remove(at: index)
      } else {
        letters[index].isDelivered = true
        letters[index].at = now + .milliseconds(delay.least + random.below(delay.most - delay.least + 1))
        index += 1
      }
    }
  }

  /// The number of signature checks that the station may spend on a message now, or nil if the message must wait.
  private func allowance(of station: Station, _ output: SessionOutput, from sender: Station) -> CheckAllowance? {
    let (kind, byteCount) = (output.kind.rawValue, output.bytes.count)
    guard station.sessions.mayReceive(kind, byteCount: byteCount, from: sender.id, behind: sender.number) else {
      return nil
    }
    guard Sessions.mayHaveRecords(kind, byteCount: byteCount) else {
      return CheckAllowance(holder: sender.number, checks: 0)
    }
    station.checks.beginPiece(now: now)
    let granted = station.checks.takeForTables(by: sender.number, now: now)
    return granted == 0 ? nil : CheckAllowance(holder: sender.number, checks: granted)
  }

  /// Continues to verify waiting tables, as long as the links that are charged have checks left.
  private func check(_ station: Station) {
    var hasChecked = true
    while hasChecked {
      hasChecked = false
      for _ in 0..<station.sessions.inCheckCount {
        guard let holder = station.sessions.nextHolderInCheck() else { break }
        station.checks.beginPiece(now: now)
        let granted = station.checks.takeForTables(by: holder, now: now)
        if granted == 0 { continue }
        var allowance = CheckAllowance(holder: holder, checks: granted)
        station.sessions.check(&allowance, now: now)
        station.checks.giveBack(allowance.left, by: holder)
        hasChecked = hasChecked || allowance.left < granted
      }
    }
  }

  private func fail(to: Int, from: Int) {
    let failed = letters.filter { $0.from.number == from && $0.to.number == to }
    letters.removeAll { $0.from.number == from && $0.to.number == to }
    for letter in failed where letter.output.lane != nil {
      stations[from].sessions.completed(letter.output.tag, isDelivered: letter.isDelivered, now: now)
    }
  }

  func drain(_ station: Station) {
    var count = 0
    while true {
      while let output = station.sessions.nextOutput(now: now, canSend: { _, _, _ in true }) {
        post(output, from: station)
        count += 1
        if count > 20_000 {
          wrong = "station \(station.number) sends endlessly: \(output.kind)"
          return
        }
      }
      guard let event = station.sessions.nextEvent() else { break }
      if let application = station.application { application(event) } else { station.events.append(event) }
    }
  }

  func post(_ output: SessionOutput, from station: Station) {
    let to = number(of: output.to)
    if to < 0 { return station.sessions.completed(output.tag, isDelivered: false, now: now) }
    sentBytes += output.bytes.count
    sentMessages += 1
    let epoch = station.known[to] ?? stations[to].epoch
    letters.append(
      Letter(
        output: output, from: (station.number, station.epoch), to: (to, epoch),
        at: now + .milliseconds(delay.least + random.below(delay.most - delay.least + 1)), sentAt: now))
  }

  // MARK: Faults of stations

  func crash(_ number: Int) {
    stations[number].isUp = false
    stations[number].known = [:]
    stations[number].events = []
  }

  func start(_ number: Int) {
    let station = stations[number]
    station.epoch += 1
    station.isUp = true
    station.sessions = Station.start(station.cryptography, random.next())
    station.checks = CheckBudget()
    station.events = []
  }

  // MARK: Actions of applications

  func open(
    _ number: Int, _ rules: SessionRules = SessionRules(), owner: SessionOwner = SessionOwner()
  ) -> SessionHandle {
    try! stations[number].sessions.open(1, rules, owner: owner, now: now)
  }

  /// Removes and returns the first invitation that station `number` has received and not handled, or nil.
  func invited(_ number: Int) -> Invitation? {
    for (index, event) in stations[number].events.enumerated() {
      if case .invited(let invitation) = event {
        stations[number].events.remove(at: index)
        return invitation
      }
    }
    return nil
  }

  /// An invitation from station `station` to endpoint 1, for a session that no station is in. The number differs for
  /// each invitation of a station.
  func invitation(
    from station: Int, _ number: UInt32, seconds: UInt16, memberCount: UInt8 = 1, rules: SessionRules = SessionRules()
  ) -> InviteMessage {
    let point = stations[station].cryptography.identity.point
    let origin = SessionOrigin(
      founder: stations[station].address, point: PublicPoint(InlineArray { point[$0] }),
      nonce: SessionID(high: UInt64(station), low: UInt64(number)), rules: rules)
    return InviteMessage(
      number: number, seconds: seconds, from: 1, to: 1, memberCount: memberCount, origin: origin, context: [])
  }

  /// Station `from` invites station `to` into `session`. Station `to` accepts into its session `into`. Returns the
  /// outcome at `from`.
  @discardableResult
  func join(_ to: Int, into: SessionHandle, by from: Int, _ session: SessionHandle) -> InvitationOutcome? {
    guard
      let number = try? stations[from].sessions.invite(
        stations[to].address, into: session, timeout: .seconds(20), now: now)
    else { return nil }
    settle()
    var asked: Invitation?
    _ = run(upTo: 5) {
      asked = invited(to)
      return asked != nil
    }
    guard let asked, (try? stations[to].sessions.accept(asked.handle, into: into, now: now)) != nil else { return nil }
    settle()
    var outcome: InvitationOutcome?
    _ = run(upTo: 25) {
      for event in stations[from].events {
        if case .invitationEnded(number, let how) = event { outcome = how }
      }
      return outcome != nil
    }
    return outcome
  }

  /// The stations of the members that are connected in a session, including station `number`.
  func view(_ number: Int, _ session: SessionHandle) -> [Int] {
    let others = stations[number].sessions.members(of: session).filter { $0.state == .connected || $0.state == .paused }
    return (others.map { self.number(of: $0.address.node) } + [number]).sorted()
  }
}

extension Instant {
  static func - (a: Instant, span: TimeSpan) -> Instant { Instant(nanoseconds: a.nanoseconds - span.nanoseconds) }
}

extension Array {
  func count(where condition: (Element) -> Bool) -> Int { filter(condition).count }
}
