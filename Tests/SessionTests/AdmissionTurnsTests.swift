import Primitives
import TestSupport
import SessionSupport
import SealSupport
import Testing

@testable import Session
@testable import SessionStories

/// Which joined addresses are members of a session when more addresses have joined than the session has places.
@Suite struct AdmissionTurnsTests {
  private let cryptography = StandInCryptography(Identity(1))

  private static func address(_ number: UInt64) -> MemberAddress {
    MemberAddress(node: NodeID(high: number, low: 0), endpoint: 1)
  }

  private func founded(by founder: UInt64, membersMax: Int) -> SessionTable {
    let origin = SessionOrigin(
      founder: Self.address(founder), point: PublicPoint(InlineArray(repeating: 4)), nonce: SessionID(high: 1, low: 2),
      rules: SessionRules(membersMax: membersMax))
    var table = SessionTable(origin, cryptography)
    enter(founder, by: founder, depth: 0, &table)
    return table
  }

  private func enter(_ member: UInt64, by admitter: UInt64, depth: UInt8, _ table: inout SessionTable) {
    let none = Signature(InlineArray(repeating: 0))
    let ticket = Ticket(
      version: 1, depth: depth, admitter: Self.address(admitter), admission: none, acceptance: none)
    table.enter(
      MemberRecord(
        session: table.id, address: Self.address(member), point: PublicPoint(InlineArray(repeating: 4)), ticket: ticket)
    )
  }

  /// Merges the session `other` into `table`. The founder of `other` signed the merge for `other`, and `signer` signed
  /// it for the session `own`.
  private func merge(_ other: SessionTable, by signer: UInt64, for own: SessionID, _ table: inout SessionTable) {
    let none = Signature(InlineArray(repeating: 0))
    let mine = SessionMerge.Side(signer: Self.address(signer), signature: none)
    let theirs = SessionMerge.Side(signer: other.entries.origins[0].origin.founder, signature: none)
    let isLower = own < other.id
    let link = SessionMerge(
      lower: min(own, other.id), higher: max(own, other.id), lowerSide: isLower ? mine : theirs,
      higherSide: isLower ? theirs : mine)
    let origins = (table.entries.origins + other.entries.origins).sorted { $0.id < $1.id }
    _ = table.merge(TableEntries(origins: origins, merges: [link], records: other.entries.records), isOwn: true)
  }

  private func members(_ table: SessionTable) -> [UInt64] { table.members.map { $0.node.high } }

  @Test func `a member that admits many others takes no slot of its founder or of other branches`() {
    var table = founded(by: 100, membersMax: 6)
    for member in 101...103 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    for invented in 1...50 as ClosedRange<UInt64> { enter(invented, by: 103, depth: 2, &table) }
    #expect(members(table) == [1, 2, 100, 101, 102, 103])
  }

  @Test func `invented members that admit further ones share the slots of one branch`() {
    var table = founded(by: 100, membersMax: 7)
    for member in 101...103 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    for member in 104...105 as ClosedRange<UInt64> { enter(member, by: 101, depth: 2, &table) }
    for invented in 1...9 as ClosedRange<UInt64> {
      enter(invented, by: 103, depth: 2, &table)
      for further in 1...4 as ClosedRange<UInt64> { enter(10 * invented + further, by: invented, depth: 3, &table) }
    }
    #expect(members(table) == [1, 100, 101, 102, 103, 104, 105])
  }

  @Test(arguments: [1, 3, 7])
  func `merged sessions have equal shares of the slots, whatever their sizes`(_ count: Int) {
    var table = founded(by: 100, membersMax: 8)
    for member in 101...103 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    let own = table.id
    for founder in stride(from: 1_000, through: 1_000 * UInt64(count), by: 1_000) {
      var other = founded(by: founder, membersMax: 8)
      for invented in 1...9 as ClosedRange<UInt64> { enter(founder + invented, by: founder, depth: 1, &other) }
      merge(other, by: 103, for: own, &table)
    }
    #expect(table.entries.origins.count == count + 1)
    #expect(members(table).count == 8)
    #expect(members(table).count { $0 < 1_000 } == 8 / (count + 1))
  }

  @Test func `all members have slots as long as their number is within the limit`() {
    var table = founded(by: 100, membersMax: 6)
    for member in 1...5 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    #expect(members(table) == [1, 2, 3, 4, 5, 100])
  }

  @Test func `a founder that has left has no slot, and the members that it admitted keep theirs`() {
    var table = founded(by: 100, membersMax: 2)
    for member in 1...3 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    _ = table.end(Self.address(100), by: Self.address(100), .wanted, [])
    #expect(members(table) == [1, 2])
  }

  private func hasPlace(
    _ table: SessionTable, _ newcomer: UInt64, by admitter: UInt64, beside others: [UInt64] = [],
    isConnected: Bool = true
  ) -> Bool {
    table.hasPlace(
      for: Self.address(newcomer), by: Self.address(admitter), in: table.id, beside: others.map { Self.address($0) },
      isConnected: { _ in isConnected })
  }

  @Test func `a newcomer of another branch takes a slot of a branch that has filled all free slots`() {
    var table = founded(by: 100, membersMax: 8)
    for member in 101...102 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    #expect(hasPlace(table, 200, by: 100))
    for invented in 1...5 as ClosedRange<UInt64> { enter(invented, by: 101, depth: 2, &table) }
    #expect(members(table) == [1, 2, 3, 4, 5, 100, 101, 102])
    for admitter in [100, 102] as [UInt64] { #expect(hasPlace(table, 200, by: admitter)) }
    for newcomer in [0, 6] as [UInt64] { #expect(!hasPlace(table, newcomer, by: 101)) }
    // The newcomers in `beside` are being welcomed, so they have places already.
    #expect(hasPlace(table, 200, by: 100, beside: [201]))
    #expect(!hasPlace(table, 205, by: 100, beside: [200, 201, 202, 203, 204]))
    enter(200, by: 100, depth: 1, &table)
    #expect(members(table) == [1, 2, 3, 4, 100, 101, 102, 200])
  }

  @Test func `a full session without a larger branch admits no newcomer`() {
    var table = founded(by: 100, membersMax: 8)
    for member in 101...107 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    for newcomer in [50, 200] as [UInt64] {
      for admitter in [100, 101] as [UInt64] { #expect(!hasPlace(table, newcomer, by: admitter, isConnected: false)) }
    }
  }

  @Test func `a connected member is evicted only if its branch has more than half of the slots`() {
    var table = founded(by: 100, membersMax: 8)
    for member in 101...104 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    for member in 1...3 as ClosedRange<UInt64> { enter(member, by: 104, depth: 2, &table) }
    #expect(!hasPlace(table, 200, by: 100, isConnected: true))
    #expect(hasPlace(table, 200, by: 100, isConnected: false))
  }

  @Test(arguments: [false, true])
  func `a newcomer joins although one member has admitted as many as there were slots`(_ areAway: Bool) {
    let hall = Hall(7)
    let sessions = (0..<7).map { hall.open($0, SessionRules(membersMax: 6)) }
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    for number in 2...5 { hall.join(number, into: sessions[number], by: 1, sessions[1]) }
    hall.run(seconds: 1)
    #expect(hall.view(0, sessions[0]) == [0, 1, 2, 3, 4, 5])
    if areAway { for number in 2...5 { hall.crash(number) } }
    hall.run(seconds: 1)
    #expect(hall.join(6, into: sessions[6], by: 0, sessions[0]) == .connected)
    #expect(hall.run(upTo: 5) { hall.view(6, sessions[6]).count == (areAway ? 3 : 6) } != nil)
    for number in [0, 1, 6] {
      let view = hall.view(number, sessions[number])
      #expect(view == hall.view(6, sessions[6]) && view.starts(with: [0, 1]) && view.last == 6)
    }
  }

  @Test func `a former member without a slot does not delay the auto-join of a newcomer`() throws {
    let hall = Hall(7)
    let rules = SessionRules(membersMax: 5)
    let sessions = (0..<7).map { hall.open($0, rules) }
    let order = (0..<7).sorted { hall.stations[$0].address < hall.stations[$1].address }
    let (gatherer, founder, admitter) = (order[0], order[1], order[2])
    let (former, newcomer) = (order[5], order[6])
    func join(_ number: Int, by other: Int) { hall.join(number, into: sessions[number], by: other, sessions[other]) }
    join(gatherer, by: founder)
    join(admitter, by: founder)
    join(former, by: admitter)
    join(order[3], by: admitter)
    try hall.stations[former].sessions.leave(sessions[former], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    join(order[4], by: admitter)
    hall.run(seconds: 1)
    #expect(hall.view(gatherer, sessions[gatherer]) == order[..<5].sorted())
    for other in [former, newcomer] {
      try hall.stations[gatherer].sessions.gather(
        hall.stations[other].address, into: sessions[gatherer], now: hall.now)
      hall.settle()
    }
    hall.run(seconds: 3)
    #expect(hall.invited(newcomer) != nil && hall.invited(former) == nil)
  }
}
