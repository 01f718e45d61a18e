import Primitives
import TestSupport
import SessionSupport
import SealSupport
import Testing

@testable import Session

/// A node, with the key `own`, that is a member of a session. Another member sends this node a table with all records
/// that the founder has signed.
private struct Crowd {
  let keys: [StandInCryptography]
  let origin: SessionOrigin
  let id: SessionID
  let own: StandInCryptography
  let sessions: Sessions
  let handle: SessionHandle
  var now = Instant.zero + .seconds(100)

  /// Creates the node as founder of the session. The founder has admitted `count` other members, whose records are not
  /// in the table of the node.
  init(_ count: Int, first: UInt64 = 300) throws {
    keys = (0..<count).map { StandInCryptography(Identity(first + UInt64($0))) }
    own = StandInCryptography(Identity(299))
    sessions = Sessions(local: own.identity.id, point: Self.point(own), own, seed: 7)
    handle = try sessions.open(1, SessionRules(membersMax: 64), now: now)
    origin = try #require(sessions.table(of: handle)).entries.origins[0].origin
    id = origin.id(own)
    for key in keys { sessions.peerFound(key.identity.id, epoch: 1, now: now) }
    drain()
  }

  static func point(_ key: StandInCryptography) -> PublicPoint {
    let point = key.identity.point
    return PublicPoint(InlineArray { point[$0] })
  }

  func address(_ number: Int) -> MemberAddress { MemberAddress(node: keys[number].identity.id, endpoint: 1) }

  /// The record of member `number`. If `isWrong`, the member's own signature in the ticket is wrong.
  func record(_ number: Int, isWrong: Bool = false, version: UInt32 = 1) -> MemberRecord {
    let founder = origin.founder
    let admission = Ticket.admissionText(id, address(number), version: version, depth: 1, founder)
    var acceptance = Ticket.acceptanceText(id, address(number), version: version, depth: 1, founder)
    if isWrong { acceptance[0] ^= 1 }
    let ticket = Ticket(
      version: version, depth: 1, admitter: founder, admission: own.signature(admission),
      acceptance: keys[number].signature(acceptance))
    return MemberRecord(session: id, address: address(number), point: Self.point(keys[number]), ticket: ticket)
  }

  func table(_ records: [MemberRecord], from number: Int = 0) -> [UInt8] {
    let sorted = records.sorted { MemberRecord.isOrdered($0, before: $1) }
    let entries = TableEntries(origins: [TableEntries.Origin(origin, own)], merges: [], records: sorted)
    return TableMessage(
      session: id, from: 1, to: 1, asks: false, digest: TableDigest(InlineArray(repeating: 1)), entries: entries
    ).bytes
  }

  /// Receives a message of member `number` over `link`. Returns how many signatures were verified during the call.
  @discardableResult
  func receive(_ bytes: [UInt8], from number: Int = 0, over link: Int = 0, checks: Int = 3) throws -> Int {
    let before = own.verifyCount
    var allowance = CheckAllowance(holder: link, checks: checks)
    try sessions.receive(
      SessionKind.table.rawValue, bytes.span.bytes, from: keys[number].identity.id, allowance: &allowance, now: now)
    drain()
    return own.verifyCount - before
  }

  /// Verifies waiting tables in pieces until none is left. Returns the greatest number of signatures in one piece, and
  /// the number of pieces.
  func checkAll(pieces most: Int = 1_000) -> (most: Int, pieces: Int) {
    var (greatest, pieces) = (0, 0)
    while let holder = sessions.nextHolderInCheck(), pieces < most {
      let before = own.verifyCount
      var allowance = CheckAllowance(holder: holder, checks: 3)
      sessions.check(&allowance, now: now)
      greatest = max(greatest, own.verifyCount - before)
      pieces += 1
    }
    drain()
    return (greatest, pieces)
  }

  var joinedCount: Int { sessions.table(of: handle)?.joined.count ?? 0 }

  func mayReceive(from number: Int, over link: Int, byteCount: Int = 1_000) -> Bool {
    sessions.mayReceive(
      SessionKind.table.rawValue, byteCount: byteCount, from: keys[number].identity.id, behind: link)
  }

  func drain() {
    while sessions.nextOutput(now: now, canSend: { _, _, _ in true }) != nil || sessions.nextEvent() != nil {}
  }
}

@Suite struct TableCheckTests {
  @Test func `a table of any length is verified in batches`() throws {
    let crowd = try Crowd(60)
    let bytes = crowd.table((0..<60).map { crowd.record($0) })
    #expect(bytes.count > 14_000)
    #expect(try crowd.receive(bytes) <= 3)
    #expect(crowd.joinedCount == 1 && crowd.sessions.inCheckCount == 1)
    let (most, pieces) = crowd.checkAll()
    #expect(most <= 3 && (39...41).contains(pieces))
    #expect(crowd.joinedCount == 61 && crowd.sessions.inCheckCount == 0)
  }

  @Test func `a table within the allowance is accepted at once`() throws {
    let crowd = try Crowd(2)
    #expect(try crowd.receive(crowd.table([crowd.record(0)])) == 2)
    #expect(crowd.joinedCount == 2 && crowd.sessions.inCheckCount == 0)
  }

  @Test func `a verified record is not verified again`() throws {
    let crowd = try Crowd(20)
    let bytes = crowd.table((0..<20).map { crowd.record($0) })
    try crowd.receive(bytes)
    _ = crowd.checkAll()
    for number in 0..<20 {
      #expect(try crowd.receive(bytes, from: number) == 0)
      #expect(crowd.sessions.inCheckCount == 0)
    }
  }

  @Test func `no message of a node is received while its table is in check`() throws {
    let crowd = try Crowd(20)
    try crowd.receive(crowd.table((0..<20).map { crowd.record($0) }))
    #expect(!crowd.mayReceive(from: 0, over: 0) && !crowd.mayReceive(from: 0, over: 1, byteCount: 44))
    #expect(crowd.mayReceive(from: 1, over: 1))
    _ = crowd.checkAll()
    #expect(crowd.mayReceive(from: 0, over: 0))
  }

  @Test func `a link has at most one table in check, and all links together three`() throws {
    let crowd = try Crowd(20)
    let bytes = crowd.table((0..<20).map { crowd.record($0) })
    for number in 0..<3 {
      #expect(crowd.mayReceive(from: number, over: number))
      try crowd.receive(bytes, from: number, over: number, checks: 0)
      #expect(!crowd.mayReceive(from: 10, over: number))
    }
    #expect(!crowd.mayReceive(from: 10, over: 10))
    // A message without records has no signatures to verify, so it need not wait.
    #expect(crowd.mayReceive(from: 10, over: 10, byteCount: 44))
    #expect(crowd.sessions.inCheckCount == 3)
    // The three tables are verified in turns.
    let turns = (0..<6).map { _ in crowd.sessions.nextHolderInCheck() ?? -1 }
    #expect(Set(turns[..<3]) == [0, 1, 2] && turns[..<3] == turns[3...])
  }

  @Test func `verification of a node's tables stops after three wrong signatures`() throws {
    let crowd = try Crowd(30)
    let before = crowd.own.verifyCount
    try crowd.receive(crowd.table((0..<30).map { crowd.record($0, isWrong: true) }))
    _ = crowd.checkAll()
    // In each record the founder's signature is correct. The member's own signature is verified next and is wrong.
    #expect(crowd.own.verifyCount - before <= 6)
    #expect(try crowd.receive(crowd.table([crowd.record(1)])) == 0)
    #expect(crowd.joinedCount == 1)
  }

  @Test func `a table in check continues when its link is gone, and is charged to the node`() throws {
    let crowd = try Crowd(20)
    try crowd.receive(crowd.table((0..<20).map { crowd.record($0) }), over: 5)
    crowd.sessions.linkLost(5)
    #expect(crowd.sessions.nextHolderInCheck() == FairShare.ownHolder)
    #expect(crowd.mayReceive(from: 1, over: 5))
    _ = crowd.checkAll()
    #expect(crowd.joinedCount == 21)
  }

  @Test func `a table in check is dropped when its session ends`() throws {
    let crowd = try Crowd(20)
    try crowd.receive(crowd.table((0..<20).map { crowd.record($0) }))
    try crowd.sessions.leave(crowd.handle, now: crowd.now)
    let before = crowd.own.verifyCount
    _ = crowd.checkAll()
    #expect(crowd.own.verifyCount == before && crowd.sessions.inCheckCount == 0)
  }

  @Test func `records without a known admitter are charged as checks, too`() throws {
    let crowd = try Crowd(100)
    // The admitter of every record is missing in the table.
    let nobody = MemberAddress(node: Identity(9_999).id, endpoint: 1)
    let records = (0..<100).map { number in
      var record = crowd.record(number)
      record.ticket.admitter = nobody
      record.ticket.depth = 2
      return record
    }
    var allowance = CheckAllowance(holder: 0, checks: 0)
    var verification = TableVerification(
      TableEntries(
        origins: [TableEntries.Origin(crowd.origin, crowd.own)], merges: [],
        records: records.sorted { MemberRecord.isOrdered($0, before: $1) }))
    let table = try #require(crowd.sessions.table(of: crowd.handle))
    #expect(!verification.proceed(with: table, &allowance))
    allowance = CheckAllowance(holder: 0, checks: 1)
    #expect(verification.proceed(with: table, &allowance) && allowance.left == 0 && verification.found.isEmpty)
  }

  @Test func `memberships of a former start are ended one by one`() throws {
    let crowd = try Crowd(1)
    // The table of another session has 20 origins (founded sessions). The table lists endpoint 2 of this node as a
    // member of each origin.
    let other = crowd.keys[0]
    let own = MemberAddress(node: crowd.own.identity.id, endpoint: 2)
    let origins = (0..<20).map { number in
      SessionOrigin(
        founder: crowd.address(0), point: Crowd.point(other), nonce: SessionID(high: 5, low: UInt64(number)),
        rules: SessionRules())
    }
    let records = origins.map { origin in
      let id = origin.id(other)
      let admission = Ticket.admissionText(id, own, version: 1, depth: 1, origin.founder)
      let acceptance = Ticket.acceptanceText(id, own, version: 1, depth: 1, origin.founder)
      let ticket = Ticket(
        version: 1, depth: 1, admitter: origin.founder, admission: other.signature(admission),
        acceptance: crowd.own.signature(acceptance))
      return MemberRecord(session: id, address: own, point: Crowd.point(crowd.own), ticket: ticket)
    }
    let named = origins[0].id(other)
    let meet = MeetMessage(
      session: named, from: 1, to: 2, number: 1, echo: 0, digest: TableDigest(InlineArray(repeating: 1)), window: 1)
    var none = CheckAllowance(holder: 0, checks: 0)
    try crowd.sessions.receive(
      SessionKind.meet.rawValue, meet.bytes.span.bytes, from: other.identity.id, allowance: &none, now: crowd.now)
    crowd.drain()
    let entries = TableEntries(
      origins: origins.map { TableEntries.Origin($0, other) }.sorted { $0.id < $1.id }, merges: [],
      records: records.sorted { MemberRecord.isOrdered($0, before: $1) })
    let whole = TableMessage(
      session: named, from: 1, to: 2, asks: false, digest: TableDigest(InlineArray(repeating: 1)), entries: entries)
    let before = crowd.own.signCount
    try crowd.receive(whole.bytes)
    #expect(crowd.own.signCount - before <= 1)
    var most = 0
    while let holder = crowd.sessions.nextHolderInCheck() {
      let signed = crowd.own.signCount
      var allowance = CheckAllowance(holder: holder, checks: 3)
      crowd.sessions.check(&allowance, now: crowd.now)
      most = max(most, crowd.own.signCount - signed)
    }
    #expect(most == 1 && crowd.own.signCount - before == 20)
    let told = crowd.sessions.nextOutput(now: crowd.now, canSend: { _, _, _ in true })
    let bytes = try #require(told).bytes
    let farewell = try TableMessage(bytes.span.bytes, crowd.own)
    #expect(farewell.entries?.records.count == 20)
    #expect(farewell.entries?.records.allSatisfy { $0.departure?.reason == .crashed } == true)
  }
}
