import Primitives

/// The number of signature checks that may be made now, for the link over which a message arrived.
public struct CheckAllowance {
  /// The holder number in `FairShare` that is charged: the link's slot, or the number of this node.
  public let holder: Int
  public private(set) var left: Int

  public init(holder: Int, checks: Int) {
    self.holder = holder
    left = checks
  }

  /// Uses a number of checks. Returns false, and uses no check, if fewer checks are left.
  mutating func take(_ checks: Int = 1) -> Bool {
    guard checks <= left else { return false }
    left -= checks
    return true
  }

  /// Uses a number of checks, or all that are left.
  mutating func spend(_ checks: Int) { left -= min(checks, left) }
}

/// The verification of entries that another node sent.
///
/// `proceed` checks signatures until its allowance is used up, and the next call continues. After the last call
/// `SessionTable.take` merges the valid entries. Verified entries stay valid even if the table changes between the
/// calls.
struct TableVerification {
  enum Verdict {
    case right
    /// No correct node creates a wrong entry.
    case wrong
    /// The entry depends on a record that is not known here.
    case unknown
    /// The allowance of checks is used up.
    case later
  }

  private enum Stage {
    case records
    case merges
    case done
  }

  /// The origins that were sent with the entries.
  let origins: [TableEntries.Origin]
  /// The verified records in table order, each merged with the table's record of the same address.
  private(set) var found: [MemberRecord] = []
  /// The verified merges.
  private(set) var links: [SessionMerge] = []
  /// Whether a signature was wrong, or was made by an address that is not allowed to sign the entry.
  private(set) var isForged = false
  /// The number of wrong signatures.
  private(set) var wrongSignatures = 0

  private var stage = Stage.records
  /// `waiting`: records that were not examined yet, the next one last. `rest`: records that depend on a record that is
  /// not known yet.
  private var waiting: [MemberRecord]
  private var rest: [MemberRecord] = []
  private var openLinks: [SessionMerge]
  /// Whether the current pass over the records has verified any record.
  private var hasFound = false
  /// The number of records that were examined since examinations were last charged to an allowance.
  private var looked = 0
  /// Whether the entries are from this node's own memory, and were verified before.
  private let isOwn: Bool

  init(_ entries: TableEntries, isOwn: Bool = false) {
    origins = entries.origins
    waiting = entries.records.reversed()
    openLinks = entries.merges.reversed()
    self.isOwn = isOwn
  }

  /// Verifies as much as the allowance permits, in whatever order the entries depend on each other. Returns true when
  /// the verification is complete.
  mutating func proceed(with table: SessionTable, _ allowance: inout CheckAllowance) -> Bool {
    while stage == .records {
      if wrongSignatures >= SessionLimits.forgeriesMax {
        // All tables of the sending node are ignored for a while, so further checks would be wasted.
        stage = .done
        break
      }
      guard let entry = waiting.last else {
        if rest.isEmpty || !hasFound {
          stage = .merges
          break
        }
        waiting = rest.reversed()
        rest = []
        hasFound = false
        continue
      }
      if looked == SessionLimits.looksPerCheck {
        guard isOwn || allowance.take() else { return false }
        looked = 0
      }
      guard look(at: entry, table, &allowance) else { return false }
      looked += 1
      waiting.removeLast()
    }
    while stage == .merges {
      guard let merge = openLinks.last else {
        stage = .done
        break
      }
      switch table.merges.contains(merge) ? .unknown : check(merge, table, &allowance) {
      case .right: links.append(merge)
      case .wrong: isForged = true
      case .unknown: break
      case .later: return false
      }
      openLinks.removeLast()
    }
    return true
  }

  /// Examines one record. Returns false if the allowance is used up.
  private mutating func look(
    at entry: MemberRecord, _ table: SessionTable, _ allowance: inout CheckAllowance
  ) -> Bool {
    // An entry that would change nothing is not verified.
    if var known = record(entry.session, entry.address, table), !known.merge(entry) { return true }
    switch check(entry, table, &allowance) {
    case .right: hasFound = insert(entry, table) || hasFound
    case .wrong: isForged = true
    case .unknown:
      // The member may have returned through an address that this member had admitted itself. The member's ticket
      // nearest to the founder has to be known before the ticket from such an address.
      if let former = entry.former {
        switch check(former, table, &allowance) {
        case .right: hasFound = insert(former, table) || hasFound
        case .wrong, .unknown: break
        case .later: return false
        }
      }
      rest.append(entry)
    case .later: return false
    }
    return true
  }

  // MARK: Known records

  private func origin(_ session: SessionID, _ table: SessionTable) -> SessionOrigin? {
    table.origin(session) ?? origins.first { $0.id == session }?.origin
  }

  private func record(_ session: SessionID, _ address: MemberAddress, _ table: SessionTable) -> MemberRecord? {
    if let position = found.position(session, address) { return found[position] }
    return table.record(session, address)
  }

  private mutating func insert(_ entry: MemberRecord, _ table: SessionTable) -> Bool {
    if let position = found.position(entry.session, entry.address) { return found[position].merge(entry) }
    var record = entry
    if var known = table.record(entry.session, entry.address) {
      guard known.merge(entry) else { return false }
      record = known
    }
    found.insert(record, at: found.insertionIndex(of: record))
    return true
  }

  // MARK: Signatures

  /// Checks a record against the origins and the known records. Known records were verified before.
  mutating func check(_ entry: MemberRecord, _ table: SessionTable, _ allowance: inout CheckAllowance) -> Verdict {
    guard let origin = origin(entry.session, table) else { return .unknown }
    let known = record(entry.session, entry.address, table)
    if let known, known.point != entry.point { return .wrong }
    for ticket in [entry.root, entry.ticket] {
      guard let ticket, ticket != known?.ticket, ticket != known?.root else { continue }
      let verdict = check(ticket, of: entry, origin, table, &allowance)
      if verdict != .right { return verdict }
    }
    guard let departure = entry.departure, known?.departure != departure || known?.ticket != entry.ticket else {
      return .right
    }
    return check(departure, of: entry, origin, table, &allowance)
  }

  private mutating func check(
    _ ticket: Ticket, of entry: MemberRecord, _ origin: SessionOrigin, _ table: SessionTable,
    _ allowance: inout CheckAllowance
  ) -> Verdict {
    let point: PublicPoint
    if ticket.admitter == origin.founder {
      if (ticket.depth == 0) != (entry.address == origin.founder) { return .wrong }
      point = origin.point
    } else {
      // No address can admit itself again.
      if ticket.depth == 0 || origin.rules.onlyFounderAdmits || ticket.admitter == entry.address { return .wrong }
      guard let admitter = record(entry.session, ticket.admitter, table), admitter.depth < ticket.depth else {
        return .unknown
      }
      point = admitter.point
    }
    let admission = Ticket.admissionText(
      entry.session, entry.address, version: ticket.version, depth: ticket.depth, ticket.admitter)
    let admitted = isSigned(ticket.admission, admission, by: point, of: ticket.admitter.node, table, &allowance)
    if admitted != .right { return admitted }
    let acceptance = Ticket.acceptanceText(
      entry.session, entry.address, version: ticket.version, depth: ticket.depth, ticket.admitter)
    return isSigned(ticket.acceptance, acceptance, by: entry.point, of: entry.address.node, table, &allowance)
  }

  private mutating func check(
    _ departure: Departure, of entry: MemberRecord, _ origin: SessionOrigin, _ table: SessionTable,
    _ allowance: inout CheckAllowance
  ) -> Verdict {
    if departure.isEjection && entry.address == origin.founder { return .wrong }
    let text = Departure.signedText(
      entry.session, entry.address, version: entry.ticket.version, isEjection: departure.isEjection, departure.reason,
      departure.text)
    return departure.isEjection
      ? isSigned(departure.signature, text, by: origin.point, of: origin.founder.node, table, &allowance)
      : isSigned(departure.signature, text, by: entry.point, of: entry.address.node, table, &allowance)
  }

  /// Checks a merge against the origins and the known records.
  private mutating func check(
    _ merge: SessionMerge, _ table: SessionTable, _ allowance: inout CheckAllowance
  ) -> Verdict {
    guard let lower = origin(merge.lower, table), let higher = origin(merge.higher, table) else { return .unknown }
    guard lower.rules.allowsMerge(with: higher.rules) else { return .wrong }
    let verdict = check(merge.lowerSide, of: lower, merge.lower, merge, table, &allowance)
    return verdict == .right ? check(merge.higherSide, of: higher, merge.higher, merge, table, &allowance) : verdict
  }

  private mutating func check(
    _ side: SessionMerge.Side, of origin: SessionOrigin, _ session: SessionID, _ merge: SessionMerge,
    _ table: SessionTable, _ allowance: inout CheckAllowance
  ) -> Verdict {
    if side.signer != origin.founder && origin.rules.onlyFounderAdmits { return .wrong }
    // A founder's signature needs the founder's record too. So a node that has the merge knows a member of each side.
    // The node can connect with either member, which sends the remaining records.
    guard let signer = record(session, side.signer, table) else { return .unknown }
    let text = SessionMerge.signedText(merge.lower, merge.higher, side.signer)
    return isSigned(side.signature, text, by: signer.point, of: side.signer.node, table, &allowance)
  }

  /// Checks a signature. A signature that was verified before and is remembered uses nothing of the allowance.
  private mutating func isSigned(
    _ signature: Signature, _ text: [UInt8], by point: PublicPoint, of node: NodeID, _ table: SessionTable,
    _ allowance: inout CheckAllowance
  ) -> Verdict {
    if isOwn { return .right }
    let cryptography = table.cryptography
    let isKnown = cryptography.hasVerified(
      signature.rawSpan, over: text.span.bytes, by: point.rawSpan, of: node)
    if isKnown { return .right }
    guard allowance.take() else { return .later }
    if cryptography.isSigned(signature, text, by: point, of: node) { return .right }
    wrongSignatures += 1
    return .wrong
  }
}

extension [MemberRecord] {
  /// The index of the record of an address in a session; nil if there is none. The records are in table order.
  func position(_ session: SessionID, _ address: MemberAddress) -> Int? {
    let index = insertionIndex(session, address)
    guard index < count, self[index].session == session, self[index].address == address else { return nil }
    return index
  }

  /// The index at which to insert a record.
  func insertionIndex(of record: MemberRecord) -> Int { insertionIndex(record.session, record.address) }

  private func insertionIndex(_ session: SessionID, _ address: MemberAddress) -> Int {
    var low = 0, high = count
    while low < high {
      let middle = (low + high) / 2
      let isBefore =
        self[middle].session != session ? self[middle].session < session : self[middle].address < address
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
