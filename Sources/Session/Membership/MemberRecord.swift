import Primitives

/// The known facts about the membership of one address in one session.
public struct MemberRecord: Equatable, Sendable {
  /// The session for which the tickets (signed memberships) are: the table's own session, or a session that was merged
  /// into the table's session.
  public var session: SessionID
  public var address: MemberAddress
  /// The public key of the address's node.
  public var point: PublicPoint
  /// The newest ticket of the address.
  public var ticket: Ticket
  /// The ticket nearest to the founder, with the least depth, or nil if this ticket is the newest one. The address
  /// admits others with the ticket nearest to the founder. Only a nearer ticket replaces the ticket in `root`. So the
  /// addresses that this member admitted stay admitted when the member leaves and returns.
  public var root: Ticket?
  /// How the membership of the newest ticket ended; nil while the address is joined.
  public var departure: Departure?

  public init(
    session: SessionID, address: MemberAddress, point: PublicPoint, ticket: Ticket, root: Ticket? = nil,
    departure: Departure? = nil
  ) {
    self.session = session
    self.address = address
    self.point = point
    self.ticket = ticket
    self.root = root
    self.departure = departure
  }

  public var isJoined: Bool { departure == nil }

  /// The depth of the ticket by which the address admits others: the number of admissions from the founder to the
  /// address.
  var depth: UInt8 { root?.depth ?? ticket.depth }

  /// The record with only the ticket nearest to the founder; nil if the newest ticket is the nearest one.
  var former: MemberRecord? {
    root.map { MemberRecord(session: session, address: address, point: point, ticket: $0) }
  }

  /// The order of records in a table.
  static func isOrdered(_ a: MemberRecord, before b: MemberRecord) -> Bool {
    a.session != b.session ? a.session < b.session : a.address < b.address
  }

  // MARK: Merging

  /// Adopts, from another record of the same address, the ticket and the departure if newer, and the ticket nearest to
  /// the founder if nearer. The two records must be verified before. The result does not depend on the order of calls
  /// or on repetitions. Returns true if anything changed.
  mutating func merge(_ other: MemberRecord) -> Bool {
    let before = self
    let mine = root ?? ticket, theirs = other.root ?? other.ticket
    let nearest = Self.isNearer(theirs, mine) ? theirs : mine
    if Self.isNewer(other, self) {
      ticket = other.ticket
      departure = other.departure
      point = other.point
    }
    root = nearest == ticket ? nil : nearest
    return self != before
  }

  /// Whether the ticket and departure of `a` replace those of `b`. The version decides, then the state: ejected, left,
  /// joined. Depth, admitter and bytes decide next. So two tickets of one version, which only a misbehaving node
  /// creates, lead to the same result everywhere.
  static func isNewer(_ a: MemberRecord, _ b: MemberRecord) -> Bool {
    if a.ticket.version != b.ticket.version { return a.ticket.version > b.ticket.version }
    if a.rank != b.rank { return a.rank > b.rank }
    if a.ticket != b.ticket { return isNearer(a.ticket, b.ticket) }
    guard let mine = a.departure, let theirs = b.departure, mine != theirs else { return false }
    if mine.reason != theirs.reason { return mine.reason.rawValue < theirs.reason.rawValue }
    if mine.text != theirs.text { return mine.text.lexicographicallyPrecedes(theirs.text) }
    return mine.signature < theirs.signature
  }

  private var rank: Int { departure.map { $0.isEjection ? 2 : 1 } ?? 0 }

  private static func isNearer(_ a: Ticket, _ b: Ticket) -> Bool {
    if a.depth != b.depth { return a.depth < b.depth }
    if a.version != b.version { return a.version < b.version }
    if a.admitter != b.admitter { return a.admitter < b.admitter }
    return a.admission != b.admission ? a.admission < b.admission : a.acceptance < b.acceptance
  }
}

extension MemberRecord {
  /// Reads a record of a table that lists `sessions`.
  ///
  ///     0 index of the session · 1 bit 0: a second ticket follows · 2–21 address · 22–86 public key · 87… ticket ·
  ///     the second ticket · then 0 joined, or the departure
  init(_ reader: inout ByteReader<SessionMessageError>, _ sessions: [SessionID]) throws(SessionMessageError) {
    let index = Int(try reader.u8())
    guard index < sessions.count else { throw .malformed }
    session = sessions[index]
    let flags = try reader.u8()
    guard flags & ~1 == 0 else { throw .reservedNotZero }
    address = try MemberAddress(&reader)
    point = try PublicPoint(&reader)
    guard point.bytes[0] == 4 else { throw .malformed }
    ticket = try Ticket(&reader)
    root = flags & 1 != 0 ? try Ticket(&reader) : nil
    if let root, !Self.isNearer(root, ticket) { throw .malformed }
    switch try reader.u8() {
    case 0: departure = nil
    case 1: departure = try Departure(isEjection: false, &reader)
    case 2: departure = try Departure(isEjection: true, &reader)
    default: throw .unknownCode
    }
  }

  /// The number of bytes that `append` appends.
  var byteCount: Int {
    2 + MemberAddress.byteCount + PublicPoint.byteCount + (root == nil ? 1 : 2) * Ticket.byteCount
      + (departure?.byteCount ?? 1)
  }

  func append(to bytes: inout [UInt8], index: Int) {
    bytes.append(UInt8(index))
    bytes.append(root == nil ? 0 : 1)
    bytes.append(address)
    bytes += point.array
    ticket.append(to: &bytes)
    root?.append(to: &bytes)
    if let departure { departure.append(to: &bytes) } else { bytes.append(0) }
  }
}
