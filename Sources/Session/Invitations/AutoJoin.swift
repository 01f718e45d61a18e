import Primitives

/// The auto-join of one session, sans-IO: the addresses that the application gathers, and when each address is invited.
///
/// The rules minimise the numbers of invitations and of merged sessions, because a table holds at most
/// `SessionLimits.originsMax` merged sessions. Among applications that start at the same time, the one with the lowest
/// address invites all others.
///
/// - An application that is alone (without other members) invites the gathered addresses itself. If lower addresses are
///   reachable, the application first waits `takeOverTime` for each node that has lower addresses.
/// - In a session with members, the member with the lowest address invites at once. Any other member first waits
///   `takeOverTime` for each node with lower members. The wait starts again when the session grows.
/// - If an application that is alone invites a member, the member invites that application instead. So a session grows
///   by tickets (signed memberships), not by merges.
/// - An unanswered invitation delays the next invitation for `answerTime`. A failed invitation is repeated with
///   back-off.
struct AutoJoin {
  /// An address that the application gathers. Until the address is a member, either the session or the address invites
  /// its counterpart.
  struct Entry {
    let address: MemberAddress
    /// The time since which the address is known and its node is reachable.
    fileprivate(set) var since: Instant
    /// The earliest time of the next invitation.
    fileprivate(set) var pausedUntil = Instant.zero
    /// Failed invitations to the address since its node became reachable.
    fileprivate(set) var failures: UInt8 = 0
    /// Whether the address invited this session, was accepted and sent no welcome. Until `pausedUntil`, its invitations
    /// are answered `busy`.
    fileprivate(set) var isUnwelcoming = false
    /// Whether the address has no other members and has invited this session, which has members. The session then
    /// invites the address at once.
    fileprivate(set) var isAsking = false
  }

  /// The memory of one address, in bytes.
  static let entryBytes = MemoryLayout<Entry>.stride
  private static let failuresMax: UInt8 = 16

  /// The address of the session's local member.
  private let own: MemberAddress
  /// Whether auto-join is on. While auto-join is on, an invitation from an address in `entries` is accepted without
  /// asking the application.
  private(set) var isOn = false
  /// The gathered addresses, in ascending order.
  private(set) var entries: [Entry] = []
  /// The maximum number of concurrent invitations of auto-join. This number is 1 at first, and doubles with each
  /// invitee that joins without other members. After a merge the number is 1 again.
  private(set) var window = 1
  /// The time at which the host checks which invitations are due. `.zero` means at once.
  private(set) var checkAt = Instant.never
  /// The start of the time that this session waits for other inviters. The wait starts at the last change of the table,
  /// the last appearance of a lower address, or the last welcome that did not arrive.
  private var waitsSince = Instant.zero

  init(own: MemberAddress) { self.own = own }

  // MARK: The gathered addresses

  mutating func turnOn() { isOn = true }

  func entry(of address: MemberAddress) -> Entry? { entries.first { $0.address == address } }

  /// Adds an address that is not gathered yet.
  mutating func add(_ address: MemberAddress, _ now: Instant) {
    let index = entries.firstIndex { address < $0.address } ?? entries.count
    entries.insert(Entry(address: address, since: now), at: index)
    if address < own { waitsSince = now }
  }

  mutating func remove(_ address: MemberAddress) { entries.removeAll { $0.address == address } }
  mutating func remove(where isMet: (MemberAddress) -> Bool) { entries.removeAll { isMet($0.address) } }

  /// Resets the state of the addresses of a node that became reachable or restarted. An address that sent no welcome
  /// stays paused.
  mutating func restart(_ node: NodeID, _ now: Instant) {
    for index in entries.indices where entries[index].address.node == node {
      let former = entries[index]
      entries[index] = Entry(address: former.address, since: now)
      if former.isUnwelcoming {
        entries[index].isUnwelcoming = true
        entries[index].failures = former.failures
        entries[index].pausedUntil = former.pausedUntil
      }
      if former.address < own { waitsSince = now }
    }
    check()
  }

  // MARK: Checks

  /// Schedules a check of the gathered addresses at once.
  mutating func check() { checkAt = .zero }
  /// Schedules a check, unless an earlier one is scheduled.
  mutating func check(at time: Instant) { checkAt = min(checkAt, time) }
  /// Begins a check. The check schedules the next one.
  mutating func beginCheck() { checkAt = .never }

  /// Notes that the session's table changed.
  mutating func tableChanged(_ now: Instant) {
    waitsSince = now
    if isOn { check() }
  }

  // MARK: Invitations

  /// Notes that an address has no other members and has invited this session, which has members.
  mutating func noteRequest(of address: MemberAddress) { change(address) { $0.isAsking = true } }

  /// Notes that an address was invited.
  mutating func noteInvitation(to address: MemberAddress) { change(address) { $0.isAsking = false } }

  /// Notes that the session has no place for an address.
  mutating func noteLackOfPlace(for address: MemberAddress) { change(address) { $0.countFailure() } }

  /// Whether the invitations of an address are refused at present, because one was accepted and no welcome followed.
  func refuses(_ address: MemberAddress, _ now: Instant) -> Bool {
    guard let entry = entry(of: address) else { return false }
    return entry.isUnwelcoming && entry.pausedUntil > now
  }

  /// Handles an accepted invitation of `address` whose welcome did not arrive in time.
  mutating func welcomeMissed(_ address: MemberAddress, _ now: Instant) {
    guard entry(of: address) != nil else { return }
    change(address) { $0.isUnwelcoming = true }
    waitsSince = now
    fail(address, SessionLimits.sweepTime, now)
  }

  /// Handles the acceptance of an invitation. `isMerge` is true if the invitee had a session with members, which was
  /// merged with the local session.
  mutating func accepted(isMerge: Bool) {
    window = isMerge ? 1 : min(2 * window, SessionLimits.gatherInvitationsPerSessionMax)
    check()
  }

  /// Notes that no invitation waits for its invitee, and that none is due.
  mutating func cameToRest() { window = 1 }

  /// Handles the end of an invitation. An address that declined is not invited again.
  mutating func ended(_ address: MemberAddress, _ outcome: InvitationOutcome, _ now: Instant) {
    check()
    switch outcome {
    case .connected, .cancelled, .sessionEnded: break
    case .declined: remove(address)
    case .busy: fail(address, .milliseconds(500), now)
    case .timedOut, .full, .noService, .incompatible: fail(address, SessionLimits.sweepTime, now)
    }
  }

  /// Pauses the invitations to an address after a failed one. The pause doubles with each failure. The pause differs
  /// between addresses, so that not all addresses are invited at the same time.
  private mutating func fail(_ address: MemberAddress, _ pause: TimeSpan, _ now: Instant) {
    let spread = UInt64((address.endpoint ^ own.endpoint) & 255)
    change(address) { entry in
      let longer = Backoff.pause(after: Int(entry.failures), first: pause, longest: SessionLimits.gatherPauseMax)
      entry.countFailure()
      entry.pausedUntil = now + longer + longer * spread / 1024
    }
    check()
  }

  private mutating func change(_ address: MemberAddress, _ body: (inout Entry) -> Void) {
    if let index = entries.firstIndex(where: { $0.address == address }) { body(&entries[index]) }
  }

  // MARK: The turn of this session

  /// The position of this session in the order in which sessions invite.
  struct Turn {
    /// The number of nodes that invite before this session; nil if this session does not invite.
    let position: UInt64?
    /// Whether no other address was ever in the session.
    let isAlone: Bool
  }

  /// The time at which an address is due. `isMember` is true for a member that is not connected. `isIntroduced` is true
  /// for an address to which the application connects.
  func dueTime(of entry: Entry, _ turn: Turn, isMember: Bool, isIntroduced: Bool, _ now: Instant) -> Instant {
    entry.isAsking
      ? now : max(entry.pausedUntil, ownTime(of: entry, turn, isMember: isMember, isIntroduced: isIntroduced))
  }

  private func ownTime(of entry: Entry, _ turn: Turn, isMember: Bool, isIntroduced: Bool) -> Instant {
    // After a `connect`, both ends invite at once, because possibly only one of the two can reach the other end.
    if isIntroduced { return entry.since }
    guard let position = turn.position else { return .never }
    // A member is invited later than other addresses, because a member that did not restart connects without an
    // invitation.
    if position == 0 && !isMember { return turn.isAlone ? entry.since + SessionLimits.aloneTime : entry.since }
    let since = max(entry.since, min(waitsSince, entry.since + SessionLimits.growTime))
    return since + SessionLimits.takeOverTime * (isMember ? position + 1 : position)
  }

  /// Whether one address is invited before another. The application at a lower address should have invited and did not,
  /// so this address comes last. All other addresses are in ascending order, so that all applications invite the same
  /// session first.
  func isInvited(_ a: Entry, before b: Entry, isAlone: Bool) -> Bool {
    func isLate(_ entry: Entry) -> Bool { isAlone && entry.address < own }
    if a.isAsking != b.isAsking { return a.isAsking }
    if a.failures != b.failures { return a.failures < b.failures }
    if isLate(a) != isLate(b) { return isLate(b) }
    return a.address < b.address
  }
}

extension AutoJoin.Entry {
  fileprivate mutating func countFailure() { failures = min(failures + 1, AutoJoin.failuresMax) }
}
