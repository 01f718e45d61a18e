import Primitives

/// Whether entries are signed by whom they must be.
extension SessionTable {
  enum Verdict {
    case right
    /// Nobody honest makes such an entry.
    case wrong
    /// It depends on a record that is not there.
    case unknown
  }

  /// A record against the origins and the records of the table. What the table has already was verified before.
  func check(_ entry: MemberRecord) -> Verdict {
    guard let origin = origin(entry.session) else { return .unknown }
    let known = record(entry.session, entry.address)
    if let known, known.point != entry.point { return .wrong }
    for ticket in [entry.root, entry.ticket] {
      guard let ticket, ticket != known?.ticket, ticket != known?.root else { continue }
      let verdict = check(ticket, of: entry, origin)
      if verdict != .right { return verdict }
    }
    guard let departure = entry.departure, known?.departure != departure || known?.ticket != entry.ticket else {
      return .right
    }
    return check(departure, of: entry, origin)
  }

  private func check(_ ticket: Ticket, of entry: MemberRecord, _ origin: SessionOrigin) -> Verdict {
    let point: PublicPoint
    if ticket.admitter == origin.founder {
      if (ticket.depth == 0) != (entry.address == origin.founder) { return .wrong }
      point = origin.point
    } else {
      // Nobody readmits itself.
      if ticket.depth == 0 || origin.rules.onlyFounderAdmits || ticket.admitter == entry.address { return .wrong }
      guard let admitter = record(entry.session, ticket.admitter), admitter.depth < ticket.depth else {
        return .unknown
      }
      point = admitter.point
    }
    let admission = Ticket.admissionText(
      entry.session, entry.address, version: ticket.version, depth: ticket.depth, ticket.admitter)
    let acceptance = Ticket.acceptanceText(
      entry.session, entry.address, version: ticket.version, depth: ticket.depth, ticket.admitter)
    return cryptography.isSigned(ticket.admission, admission, by: point, of: ticket.admitter.node)
      && cryptography.isSigned(ticket.acceptance, acceptance, by: entry.point, of: entry.address.node)
      ? .right : .wrong
  }

  private func check(_ departure: Departure, of entry: MemberRecord, _ origin: SessionOrigin) -> Verdict {
    if departure.isEjection && entry.address == origin.founder { return .wrong }
    let text = Departure.signedText(
      entry.session, entry.address, version: entry.ticket.version, isEjection: departure.isEjection, departure.reason,
      departure.text)
    let isSigned =
      departure.isEjection
      ? cryptography.isSigned(departure.signature, text, by: origin.point, of: origin.founder.node)
      : cryptography.isSigned(departure.signature, text, by: entry.point, of: entry.address.node)
    return isSigned ? .right : .wrong
  }

  /// A merge against the origins and the records of the table.
  func check(_ merge: SessionMerge) -> Verdict {
    guard let lower = origin(merge.lower), let higher = origin(merge.higher) else { return .unknown }
    guard lower.rules.allowsMerge(with: higher.rules) else { return .wrong }
    let verdict = check(merge.lowerSide, of: lower, merge.lower, merge)
    return verdict == .right ? check(merge.higherSide, of: higher, merge.higher, merge) : verdict
  }

  private func check(
    _ side: SessionMerge.Side, of origin: SessionOrigin, _ session: SessionID, _ merge: SessionMerge
  ) -> Verdict {
    if side.signer != origin.founder && origin.rules.onlyFounderAdmits { return .wrong }
    // The founder's record too: whoever has the merge can meet a member of either side, and learns the rest from it.
    guard let signer = record(session, side.signer) else { return .unknown }
    let text = SessionMerge.signedText(merge.lower, merge.higher, side.signer)
    return cryptography.isSigned(side.signature, text, by: signer.point, of: side.signer.node) ? .right : .wrong
  }
}
