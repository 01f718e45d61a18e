import Primitives
import TestSupport
import Testing

@testable import Session
@testable import SessionStories

/// The members of a session in which more addresses are joined than there are places.
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

  private func members(_ table: SessionTable) -> [UInt64] { table.members.map { $0.node.high } }

  @Test func `a member that admits many takes no place of its founder or of others`() {
    var table = founded(by: 100, membersMax: 6)
    for member in 101...103 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    for invented in 1...50 as ClosedRange<UInt64> { enter(invented, by: 103, depth: 2, &table) }
    #expect(members(table) == [1, 2, 100, 101, 102, 103])
  }

  @Test func `invented members that admit further ones share the places of one branch`() {
    var table = founded(by: 100, membersMax: 7)
    for member in 101...103 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    for member in 104...105 as ClosedRange<UInt64> { enter(member, by: 101, depth: 2, &table) }
    for invented in 1...9 as ClosedRange<UInt64> {
      enter(invented, by: 103, depth: 2, &table)
      for further in 1...4 as ClosedRange<UInt64> { enter(10 * invented + further, by: invented, depth: 3, &table) }
    }
    #expect(members(table) == [1, 100, 101, 102, 103, 104, 105])
  }

  @Test func `all have a place as long as there are as many`() {
    var table = founded(by: 100, membersMax: 6)
    for member in 1...5 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    #expect(members(table) == [1, 2, 3, 4, 5, 100])
  }

  @Test func `a founder that has left has no place, and those below it have theirs`() {
    var table = founded(by: 100, membersMax: 2)
    for member in 1...3 as ClosedRange<UInt64> { enter(member, by: 100, depth: 1, &table) }
    _ = table.end(Self.address(100), by: Self.address(100), .wanted, [])
    #expect(members(table) == [1, 2])
  }
}
