import Primitives

/// The present and former members of a session. All entries of a table are signed, and are only ever merged. Nodes with
/// the same entries have the same table, whatever the order of arrival.
///
/// Merged sessions keep their records side by side: a ticket (signed membership) names one of the sessions, and is
/// valid in all merged sessions.
public struct SessionTable {
  /// The result of a merge of entries.
  public struct Result: Equatable {
    /// Whether the table has changed.
    public var isChanged = false
    /// Whether a signature was wrong, or was made by an address that is not allowed to sign the entry.
    public var isForged = false
    /// Whether the table would exceed its limit of sessions or addresses. If so, nothing was merged.
    public var isTooLarge = false
  }

  let cryptography: any SessionCryptography
  /// The origins of all merged sessions, ascending by id.
  public private(set) var origins: [TableEntries.Origin]
  /// The merges that connect the origins, in order, as a spanning tree of the sessions.
  public private(set) var merges: [SessionMerge] = []
  /// The records, ascending by session, then by address.
  public private(set) var records: [MemberRecord] = []
  /// A number that grows with each change of the table. `changedAt` holds, for the record with the same index, the
  /// number at the record's last change.
  public private(set) var sequence: UInt64 = 0
  private var changedAt: [UInt64] = []
  public private(set) var digest: TableDigest

  /// Creates a table that has only the origin of its session.
  public init(_ origin: SessionOrigin, _ cryptography: any SessionCryptography) {
    self.cryptography = cryptography
    origins = [TableEntries.Origin(origin, cryptography)]
    digest = TableDigest(InlineArray(repeating: 0))
    digest = currentDigest
  }

  // MARK: Reading

  /// The session's id: the lowest id of all merged sessions.
  public var id: SessionID { origins[0].id }

  /// The rules of the session. The rules of merged sessions differ only in the member limit.
  var rules: SessionRules { origins[0].origin.rules }

  public func contains(_ session: SessionID) -> Bool { origin(session) != nil }

  func origin(_ session: SessionID) -> SessionOrigin? { origins.first { $0.id == session }?.origin }

  /// The member limit of the session: the lowest limit of all merged sessions.
  public var membersMax: Int { origins.reduce(SessionLimits.membersMax) { min($0, Int($1.origin.rules.membersMax)) } }

  /// The joined addresses, ascending.
  public var joined: [MemberAddress] {
    let all = records.filter { $0.isJoined }.map { $0.address }.inOrder(<)
    return all.indices.filter { $0 == 0 || all[$0 - 1] != all[$0] }.map { all[$0] }
  }

  /// The joined addresses that have a place (`AdmissionTurns`), ascending.
  public var members: [MemberAddress] {
    let joined = joined
    if joined.count <= membersMax { return joined }
    return places(AdmissionTurns(records, origins)).map { records[$0].address }.inOrder(<)
  }

  /// The indices of the records whose addresses have a place.
  private func places(_ turns: AdmissionTurns) -> [Int] {
    var turns = turns
    var places: [Int] = []
    while places.count < membersMax, let next = turns.next() {
      if !places.contains(where: { records[$0].address == records[next].address }) { places.append(next) }
    }
    return places
  }

  /// Whether an address gets a place if `admitter` admits it to a session. `others` are addresses that `admitter`
  /// has also admitted and that are not joined yet.
  ///
  /// If no place is free, the address gets the place of a member of another branch of the admission tree
  /// (`AdmissionTurns`). After the eviction, that member's branch must still have as many places as the branch of the
  /// address. A member that is connected with the admitter loses its place only if the member's branch has more than
  /// half of all places.
  func hasPlace(
    for address: MemberAddress, by admitter: MemberAddress, in session: SessionID, beside others: [MemberAddress],
    isConnected: (MemberAddress) -> Bool
  ) -> Bool {
    if isJoined(address) { return true }
    let unknown = (others + [address]).count { record(session, $0) == nil }
    guard records.count + unknown <= SessionLimits.recordsMax else { return false }
    if joined.count + others.count < membersMax { return true }
    var wider = self
    for other in others { wider.foresee(other, by: admitter, in: session) }
    let before = wider.members
    wider.foresee(address, by: admitter, in: session)
    let turns = AdmissionTurns(wider.records, wider.origins)
    let places = wider.places(turns)
    guard let own = places.first(where: { wider.records[$0].address == address }) else { return false }
    for member in before where !places.contains(where: { wider.records[$0].address == member }) {
      guard let theirs = wider.records.firstIndex(where: { $0.address == member && $0.isJoined }) else { continue }
      // If a returning former member is an admitter above the member that loses its place, the two members belong to
      // one branch.
      guard let shares = turns.shares(of: own, and: theirs, in: places) else { continue }
      if shares.one > shares.other { return false }
      if isConnected(member) && 2 * (shares.other + 1) <= membersMax { return false }
    }
    return true
  }

  /// Inserts the record that an address will have after signing its ticket. Nothing is signed yet.
  private mutating func foresee(_ address: MemberAddress, by admitter: MemberAddress, in session: SessionID) {
    let depth = origin(session)?.founder == admitter ? 0 : record(session, admitter)?.depth ?? 0
    let version = record(session, address)?.ticket.version ?? 0
    let none = Signature(InlineArray(repeating: 0))
    let ticket = Ticket(
      version: version == .max ? version : version + 1, depth: min(depth, SessionLimits.depthMax - 1) + 1,
      admitter: admitter, admission: none, acceptance: none)
    _ = insert(
      MemberRecord(session: session, address: address, point: PublicPoint(InlineArray(repeating: 4)), ticket: ticket))
  }

  public func isJoined(_ address: MemberAddress) -> Bool { records.contains { $0.address == address && $0.isJoined } }

  public func records(of address: MemberAddress) -> [MemberRecord] { records.filter { $0.address == address } }

  func record(_ session: SessionID, _ address: MemberAddress) -> MemberRecord? {
    position(session, address).map { records[$0] }
  }

  /// The session id for which an address is allowed to admit, and the depth of the address in that session; nil if
  /// there is none.
  public func right(of address: MemberAddress) -> (session: SessionID, depth: UInt8)? {
    guard isJoined(address) else { return nil }
    var best: (session: SessionID, depth: UInt8)?
    for origin in origins {
      if origin.origin.founder == address { return (origin.id, 0) }
      if origin.origin.rules.onlyFounderAdmits { continue }
      guard let record = record(origin.id, address), record.depth < min(SessionLimits.depthMax, best?.depth ?? .max)
      else { continue }
      best = (origin.id, record.depth)
    }
    return best
  }

  /// All entries: a snapshot.
  public var entries: TableEntries { TableEntries(origins: origins, merges: merges, records: records) }

  /// The records that changed after this sequence number, with all origins and merges: a delta.
  public func entries(since: UInt64) -> TableEntries {
    TableEntries(
      origins: origins, merges: merges, records: records.indices.filter { changedAt[$0] > since }.map { records[$0] })
  }

  /// The records of one address, with all origins and merges, to be sent to non-members.
  func entries(about address: MemberAddress) -> TableEntries {
    TableEntries(origins: origins, merges: merges, records: records(of: address))
  }

  // MARK: Changing

  /// Verifies entries in one call and merges them. If `isOwn` is true, the entries are from this node's own memory, and
  /// were verified before.
  public mutating func merge(_ entries: TableEntries, isOwn: Bool = false) -> Result {
    var verification = TableVerification(entries, isOwn: isOwn)
    var allowance = CheckAllowance(holder: FairShare.ownHolder, checks: .max)
    _ = verification.proceed(with: self, &allowance)
    return take(verification)
  }

  /// Merges the entries that are verified and new. Entries that depend on unknown records were not verified, and are
  /// left out.
  mutating func take(_ verification: TableVerification) -> Result {
    var result = Result()
    var wider = self
    for origin in verification.origins where wider.origin(origin.id) == nil { wider.origins.append(origin) }
    for record in verification.found { _ = wider.insert(record) }
    result.isForged = verification.isForged
    wider.connect(merges + verification.links.filter { !merges.contains($0) })
    guard wider.origins.count <= SessionLimits.originsMax, wider.records.count <= SessionLimits.recordsMax else {
      result.isTooLarge = true
      return result
    }
    result.isChanged = adopt(wider)
    return result
  }

  /// Adds a record with a signature that this node just made.
  mutating func enter(_ record: MemberRecord) {
    var wider = self
    _ = wider.insert(record)
    _ = adopt(wider)
  }

  /// Keeps those of `links`, in their order, that connect sessions not connected before. Drops the sessions that are
  /// not connected with this table's own session.
  private mutating func connect(_ links: [SessionMerge]) {
    let own = id(of: 0)
    var groups = origins.map { $0.id }
    merges = []
    for link in links.inOrder({ SessionMerge.isOrdered($0, before: $1) }) {
      guard let one = group(link.lower, groups), let other = group(link.higher, groups), one != other else { continue }
      for index in groups.indices where groups[index] == other { groups[index] = one }
      merges.append(link)
    }
    let kept = group(own, groups)
    origins = origins.indices.filter { groups[$0] == kept }.map { origins[$0] }.inOrder { $0.id < $1.id }
    merges = merges.filter { contains($0.lower) }
    records = records.filter { contains($0.session) }
  }

  private func id(of index: Int) -> SessionID { origins[index].id }

  private func group(_ session: SessionID, _ groups: [SessionID]) -> SessionID? {
    origins.firstIndex { $0.id == session }.map { groups[$0] }
  }

  /// Inserts a verified record, or merges it with the record of the same address.
  private mutating func insert(_ record: MemberRecord) -> Bool {
    if let position = position(record.session, record.address) { return records[position].merge(record) }
    records.insert(record, at: records.insertionIndex(of: record))
    return true
  }

  private func position(_ session: SessionID, _ address: MemberAddress) -> Int? {
    records.position(session, address)
  }

  /// Replaces the table by `wider` and notes the changes. Returns true if there are any.
  private mutating func adopt(_ wider: SessionTable) -> Bool {
    if wider.records == records && wider.merges == merges && wider.origins == origins { return false }
    var changes: [UInt64] = []
    for record in wider.records {
      let position = position(record.session, record.address)
      let isSame = position.map { records[$0] == record } ?? false
      changes.append(isSame ? changedAt[position ?? 0] : sequence + 1)
    }
    self = wider
    changedAt = changes
    sequence += 1
    digest = currentDigest
    return true
  }

  private var currentDigest: TableDigest {
    var bytes: [UInt8] = []
    entries.append(to: &bytes)
    let digest = cryptography.digest(bytes.span.bytes)
    return TableDigest(InlineArray { digest[$0] })
  }
}
