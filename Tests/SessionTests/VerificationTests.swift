import Primitives
import Session
import Testing
import TestSupport
import SessionSupport
import SealSupport

@testable import SessionStories

/// Members of one session with their keys. Each key signs whatever a test asks for, correct or forged.
private struct Cast {
  let keys = (0..<4).map { StandInCryptography(Identity(100 + UInt64($0))) }
  let origin: SessionOrigin
  let id: SessionID

  init(_ rules: SessionRules = SessionRules()) {
    let key = StandInCryptography(Identity(100))
    origin = SessionOrigin(
      founder: MemberAddress(node: key.identity.id, endpoint: 1), point: Self.point(key),
      nonce: SessionID(high: 1, low: 2),
      rules: rules)
    id = origin.id(key)
  }

  static func point(_ key: StandInCryptography) -> PublicPoint {
    let point = key.identity.point
    return PublicPoint(InlineArray { point[$0] })
  }

  func address(_ number: Int) -> MemberAddress { MemberAddress(node: keys[number].identity.id, endpoint: 1) }

  func sign(_ word: String, _ key: Int, _ fields: [UInt8]) -> Signature {
    let text = Array(word.utf8) + fields
    return Signature(keys[key].sign(text.span.bytes))
  }

  private func head(_ member: Int, _ version: UInt32) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: id.high)
    bytes.append(bigEndian: id.low)
    bytes.append(address(member).node)
    bytes.append(bigEndian: UInt32(1))
    bytes.append(bigEndian: version)
    return bytes
  }

  /// A record of `member` with a ticket of `admitter`. `signer` signs in the admitter's name, and `accepter` in the
  /// member's name.
  func record(
    _ member: Int, by admitter: Int, depth: UInt8, version: UInt32 = 1, signer: Int? = nil, accepter: Int? = nil
  ) -> MemberRecord {
    var fields = head(member, version)
    fields.append(depth)
    fields.append(address(admitter).node)
    fields.append(bigEndian: UInt32(1))
    let ticket = Ticket(
      version: version, depth: depth, admitter: address(admitter),
      admission: sign("causeway-admits-1", signer ?? admitter, fields),
      acceptance: sign("causeway-accepts-1", accepter ?? member, fields))
    return MemberRecord(session: id, address: address(member), point: Self.point(keys[member]), ticket: ticket)
  }

  func ended(_ record: MemberRecord, _ member: Int, isEjection: Bool, signer: Int) -> MemberRecord {
    var ended = record
    let word = isEjection ? "causeway-ejects-1" : "causeway-leaves-1"
    ended.departure = Departure(
      isEjection: isEjection, reason: .wanted, text: [],
      signature: sign(word, signer, head(member, record.ticket.version) + [1]))
    return ended
  }

  /// Merges the records into a table that has only the origin. Returns the joined members, and whether a record was
  /// forged.
  func take(_ records: [MemberRecord]) -> (joined: [Int], isForged: Bool) {
    var table = SessionTable(origin, keys[0])
    let sorted = records.sorted { $0.address < $1.address }
    let result = table.merge(
      TableEntries(origins: [TableEntries.Origin(origin, keys[0])], merges: [], records: sorted))
    return ((0..<4).filter { table.isJoined(address($0)) }, result.isForged)
  }
}

@Suite struct VerificationTests {
  @Test func `a chain of tickets is verified from the founder on, in any order`() {
    let cast = Cast()
    let records = [
      cast.record(0, by: 0, depth: 0), cast.record(1, by: 0, depth: 1), cast.record(2, by: 1, depth: 2),
      cast.record(3, by: 2, depth: 3),
    ]
    #expect(cast.take(records) == ([0, 1, 2, 3], false))
    #expect(cast.take([records[2], records[3]]) == ([], false))
  }

  @Test func `a ticket in another member's name is invalid`() {
    let cast = Cast()
    #expect(cast.take([cast.record(1, by: 0, depth: 1, signer: 2)]) == ([], true))
  }

  @Test func `a ticket without the member's own signature is invalid`() {
    let cast = Cast()
    #expect(cast.take([cast.record(1, by: 0, depth: 1, accepter: 2)]) == ([], true))
  }

  @Test func `an admitter is nearer to the founder than the member that it admits`() {
    let cast = Cast()
    #expect(cast.take([cast.record(1, by: 0, depth: 2), cast.record(2, by: 1, depth: 2)]).joined == [1])
    #expect(cast.take([cast.record(1, by: 0, depth: 0)]) == ([], true))
  }

  @Test func `only the founder can readmit itself`() {
    let cast = Cast()
    let left = cast.ended(cast.record(1, by: 0, depth: 1), 1, isEjection: true, signer: 0)
    var back = cast.record(1, by: 1, depth: 2, version: 2)
    back.root = left.ticket
    #expect(cast.take([back]) == ([], true))
    #expect(cast.take([cast.record(0, by: 0, depth: 0, version: 2)]) == ([0], false))
  }

  @Test func `only the founder admits members if the rules require it, whichever member signs`() {
    let cast = Cast(SessionRules(onlyFounderAdmits: true))
    #expect(cast.take([cast.record(1, by: 0, depth: 1), cast.record(2, by: 1, depth: 2)]) == ([1], true))
  }

  @Test func `a departure is signed by the member, and an ejection by the founder`() {
    let cast = Cast()
    let member = cast.record(1, by: 0, depth: 1)
    #expect(cast.take([cast.ended(member, 1, isEjection: false, signer: 1)]) == ([], false))
    #expect(cast.take([member, cast.ended(member, 1, isEjection: false, signer: 2)]) == ([1], true))
    #expect(cast.take([cast.ended(member, 1, isEjection: true, signer: 0)]) == ([], false))
    #expect(cast.take([member, cast.ended(member, 1, isEjection: true, signer: 1)]) == ([1], true))
    let founder = cast.record(0, by: 0, depth: 0)
    #expect(cast.take([founder, cast.ended(founder, 0, isEjection: true, signer: 0)]) == ([0], true))
  }

  @Test func `an ended membership stays ended in any order, and a later ticket begins a new one`() {
    let cast = Cast()
    let member = cast.record(1, by: 0, depth: 1)
    let left = cast.ended(member, 1, isEjection: false, signer: 1)
    #expect(cast.take([member, left]).joined == [])
    #expect(cast.take([left, member]).joined == [])
    let back = cast.record(1, by: 0, depth: 1, version: 2)
    #expect(cast.take([back, left]).joined == [1])
    #expect(cast.take([left, back]).joined == [1])
  }

  @Test func `a merge is accepted only with the records of both signers`() throws {
    let hall = Hall(4)
    let sessions = (0..<4).map { hall.open($0) }
    let other = try #require(hall.stations[2].sessions.table(of: sessions[2]))
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.join(3, into: sessions[3], by: 2, sessions[2])
    let before = try #require(hall.stations[0].sessions.table(of: sessions[0]))
    hall.join(2, into: sessions[2], by: 0, sessions[0])
    let merged = try #require(hall.stations[0].sessions.table(of: sessions[0])?.entries)
    #expect(merged.merges.count == 1)
    var table = before
    #expect(table.merge(merged).isChanged)
    #expect(table.contains(other.id))
    for signer in [hall.stations[0].address, hall.stations[2].address] {
      // The entries lack the record of one signer of the merge. Without that record, a member of one merged session
      // could not complete a handshake with any member of the other session.
      var entries = merged
      entries.records.removeAll { $0.address == signer }
      var table = SessionTable(before.entries.origins[0].origin, hall.stations[1].cryptography)
      #expect(!table.merge(entries).isForged)
      #expect(table.entries.origins.count == 1)
    }
  }

  @Test func `a member readmitted by one that it had admitted is accepted by newcomers`() {
    let cast = Cast()
    let first = cast.record(1, by: 0, depth: 1)
    var back = cast.record(1, by: 2, depth: 3, version: 2)
    back.root = first.ticket
    #expect(cast.take([back, cast.record(2, by: 1, depth: 2)]) == ([1, 2], false))
  }
}
