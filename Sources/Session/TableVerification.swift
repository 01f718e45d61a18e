import Primitives

/// What may be checked now for the link over which a message came: so many signatures.
public struct CheckAllowance {
  /// The link's slot, or another holder of a share (`FairShare`).
  public let holder: Int
  public private(set) var left: Int

  public init(holder: Int, checks: Int) {
    self.holder = holder
    left = checks
  }

  /// Takes so many checks; false when not as many are left.
  mutating func take(_ checks: Int = 1) -> Bool {
    guard checks <= left else { return false }
    left -= checks
    return true
  }

  /// Takes so many checks, or what is left.
  mutating func spend(_ checks: Int) { left -= min(checks, left) }
}

/// The verification of entries that another node sent.
///
/// A state machine without time: `proceed` checks signatures while its allowance lasts, and the next call goes on. When it is done
/// `SessionTable.take` takes over what is right. The table may have changed meanwhile: what is verified stays right.
struct TableVerification {
  enum Verdict {
    case right
    /// Nobody honest makes such an entry.
    case wrong
    /// It depends on a record that is not there.
    case unknown
    /// The allowance is used up.
    case later
  }

  private enum Stage {
    case records
    case merges
    case done
  }

  /// Those of the entries.
  let origins: [TableEntries.Origin]
  /// The verified entries, in the order of tables, each with what the table knew of the same address.
  private(set) var found: [MemberRecord] = []
  /// Merges that are verified.
  private(set) var links: [SessionMerge] = []
  /// A signature was wrong, or something stood there that its signer may not sign.
  private(set) var isForged = false
  /// How many signatures were wrong.
  private(set) var wrongSignatures = 0

  private var stage = Stage.records
  /// Entries that are not looked at yet, the last one first; and those that depend on another one that is not there yet.
  private var waiting: [MemberRecord]
  private var rest: [MemberRecord] = []
  private var openLinks: [SessionMerge]
  /// Whether this pass over the records has found any.
  private var hasFound = false
  /// Records that were looked at since the last one that was charged.
  private var looked = 0
  /// They are from this node's own memory, and were verified before.
  private let isOwn: Bool

  init(_ entries: TableEntries, isOwn: Bool = false) {
    origins = entries.origins
    waiting = entries.records.reversed()
    openLinks = entries.merges.reversed()
    self.isOwn = isOwn
  }

  /// Verifies what the allowance lasts for, in whatever order entries depend on each other. True when it is done.
  mutating func proceed(with table: SessionTable, _ allowance: inout CheckAllowance) -> Bool {
    while stage == .records {
      if wrongSignatures >= SessionLimits.forgeriesMax {
        // Nothing of this node is believed for a while: what else it has would be checked in vain.
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

  /// Looks at one record. False when the allowance is used up.
  private mutating func look(
    at entry: MemberRecord, _ table: SessionTable, _ allowance: inout CheckAllowance
  ) -> Bool {
    // What would change nothing is not verified.
    if var known = record(entry.session, entry.address, table), !known.merge(entry) { return true }
    switch check(entry, table, &allowance) {
    case .right: hasFound = insert(entry, table) || hasFound
    case .wrong: isForged = true
    case .unknown:
      // A member that returned by way of one that it had admitted itself is first known by the ticket nearest to the founder.
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
    found.insert(record, at: found.place(of: record))
    return true
  }

  // MARK: Signatures

  /// A record against the origins and the records that are known. A known record was verified before.
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
      // Nobody readmits itself.
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

  /// A merge against the origins and the records that are known.
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
    // The founder's record too: whoever has the merge can meet a member of either side, and learns the rest from it.
    guard let signer = record(session, side.signer, table) else { return .unknown }
    let text = SessionMerge.signedText(merge.lower, merge.higher, side.signer)
    return isSigned(side.signature, text, by: signer.point, of: side.signer.node, table, &allowance)
  }

  /// A signature that is remembered as verified costs nothing.
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
  /// Where the record of an address in a session is; nil when there is none. The records are in the order of tables.
  func position(_ session: SessionID, _ address: MemberAddress) -> Int? {
    let place = place(session, address)
    guard place < count, self[place].session == session, self[place].address == address else { return nil }
    return place
  }

  /// Where a record belongs that is not there.
  func place(of record: MemberRecord) -> Int { place(record.session, record.address) }

  private func place(_ session: SessionID, _ address: MemberAddress) -> Int {
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
