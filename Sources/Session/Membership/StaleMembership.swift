import Channel
import Primitives

/// A remote member whose table lists an address of this node in a session without this address. A membership becomes
/// stale after a restart of this node, or if the departure notice of this node was lost. The remote member is asked for
/// its table, and then sent the end of that membership.
struct StaleMembership {
  /// Identifies the remote member and the local endpoint.
  struct Key: Equatable {
    let member: MemberAddress
    let endpoint: UInt32
  }

  let member: MemberAddress
  let endpoint: UInt32
  /// The session that the remote member named.
  let session: SessionID
  /// The origins and merges of the remote member's table, while departures for its records are signed.
  var shown: TableEntries?
  /// The departure notice for the remote member; nil until the member has sent its table.
  var farewell: TableEntries?
  var isDue = true
  let since: Instant

  var key: Key { Key(member: member, endpoint: endpoint) }
}

/// All stale memberships, at most `SessionLimits.staleMax`. The nodes share the slots for stale memberships
/// (`FairSlots`).
struct StaleMemberships {
  private var entries: [StaleMembership] = []

  /// Adds a remote member that is to be asked for its table, unless this member was added already or no slot is free.
  mutating func add(
    _ new: StaleMembership, holder: (NodeID) -> Holder, _ now: Instant
  ) {
    entries.removeAll { now - $0.since >= SessionLimits.sweepTime }
    let node = new.member.node
    if entries.contains(where: { $0.key == new.key }) { return }
    guard entries.count(where: { $0.member.node == node }) < SessionLimits.stalePerNodeMax else { return }
    let slots = FairSlots(capacity: SessionLimits.staleMax, standTime: SessionLimits.sweepTime)
    let rivals = entries.map { FairSlots.Entry(holder: holder($0.member.node), since: $0.since) }
    switch slots.choose(for: holder(node), among: rivals, now: now) {
    case .free: break
    case .instead(let index): entries.remove(at: index)
    case .none: return
    }
    entries.append(new)
  }

  /// Removes the remote members on a node that is unreachable.
  mutating func remove(on node: NodeID) { entries.removeAll { $0.member.node == node } }

  /// Stores the origins and merges of a remote member's table. Returns false if the member was not asked for its table.
  mutating func receive(_ shown: TableEntries, from key: StaleMembership.Key) -> Bool {
    guard let index = asked(key) else { return false }
    entries[index].shown = shown
    return true
  }

  func isAsked(_ key: StaleMembership.Key) -> Bool { asked(key) != nil }

  /// Completes the departure notice with the records whose departures were signed.
  mutating func complete(_ key: StaleMembership.Key, _ records: [MemberRecord]) {
    guard !records.isEmpty, let index = asked(key), var notice = entries[index].shown else { return }
    notice.records = records
    entries[index].shown = nil
    entries[index].farewell = notice
    entries[index].isDue = true
  }

  /// The next remote member to which a message is due; nil if there is none.
  var nextDue: StaleMembership? { entries.first { $0.isDue } }

  mutating func sent(to key: StaleMembership.Key) {
    if let index = entries.firstIndex(where: { $0.key == key && $0.isDue }) { entries[index].isDue = false }
  }

  /// The index of the remote member that was asked for its table and has not sent the table; nil without such a member.
  private func asked(_ key: StaleMembership.Key) -> Int? {
    entries.firstIndex { $0.key == key && $0.farewell == nil && !$0.isDue }
  }
}

extension Sessions {
  /// Handles a handshake message for a session that no application here is in. `endpoint` is the one of this node that
  /// the message names.
  func noteStale(_ member: MemberAddress, _ endpoint: UInt32, _ session: SessionID, _ now: Instant) {
    stale.add(
      StaleMembership(member: member, endpoint: endpoint, session: session, since: now), holder: { nodes.holder($0) },
      now)
  }

  /// Handles a table for a session that no application here is in. This table may be the requested table of a stale
  /// membership. A table that was not requested shows a stale membership if it lists an address of this node, or has no
  /// entries: only members are sent a digest alone.
  func takeStale(
    _ message: TableMessage, from node: NodeID, _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    if message.asks { return }
    let member = MemberAddress(node: node, endpoint: message.from)
    let key = StaleMembership.Key(member: member, endpoint: message.to)
    let address = MemberAddress(node: local, endpoint: message.to)
    let records = message.entries?.records.filter { $0.address == address && $0.isJoined }
    if records?.isEmpty == true { return }
    guard let records, var entries = message.entries, stale.isAsked(key) else {
      if !owesFarewell(member, message) { noteStale(member, message.to, message.session, now) }
      return
    }
    entries.records = []
    guard stale.receive(entries, from: key) else { return }
    let purpose = TableInCheck.Purpose.stale(key, records: records.reversed(), signed: [])
    begin(purpose, TableEntries(origins: [], merges: [], records: []), of: nil, from: node, &allowance, now)
  }

  /// Whether the departure notice of a session that the application left is still on its way to a member.
  private func owesFarewell(_ member: MemberAddress, _ message: TableMessage) -> Bool {
    sessions.contains { session in
      if case .leaving = session.phase {
        return session.address.endpoint == message.to && session.table.contains(message.session)
          && session.position(of: member) != nil
      }
      return false
    }
  }

  /// The record with a departure signed by this node; nil if this node never accepted the record's ticket.
  func endOfStale(_ record: MemberRecord) -> MemberRecord? {
    guard isAccepted(record) else { return nil }
    var ended = record
    ended.end(isEjection: false, .crashed, text: [], cryptography)
    return ended
  }

  /// Whether this node has signed the acceptance of the record's ticket. Without this check, a misbehaving member could
  /// obtain the departure of a ticket in advance. The member could show that departure when the ticket is accepted
  /// later.
  private func isAccepted(_ record: MemberRecord) -> Bool {
    let ticket = record.ticket
    let text = Ticket.acceptanceText(
      record.session, record.address, version: ticket.version, depth: ticket.depth, ticket.admitter)
    return cryptography.isSigned(ticket.acceptance, text, by: point, of: local)
  }

  func staleOutput(_ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    guard let due = stale.nextDue else { return nil }
    let message = TableMessage(
      session: due.session, from: due.endpoint, to: due.member.endpoint, asks: due.farewell == nil,
      digest: TableDigest(InlineArray(repeating: 0)), entries: due.farewell)
    guard canSend(due.member.node, .interactive, message.byteCount) else { return nil }
    stale.sent(to: due.key)
    return output(.table, message.bytes, to: due.member.node, .notice)
  }
}
