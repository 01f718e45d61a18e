import Primitives
import Testing

@testable import Session

/// When auto-join invites which address, without sessions or messages.
@Suite struct AutoJoinTests {
  private let start = Instant.zero + .seconds(1000)

  private func address(_ number: UInt64, _ endpoint: UInt32 = 1) -> MemberAddress {
    MemberAddress(node: NodeID(high: number, low: 0), endpoint: endpoint)
  }

  private func due(
    _ join: AutoJoin, _ number: UInt64, position: UInt64?, isAlone: Bool = false, isMember: Bool = false,
    isIntroduced: Bool = false
  ) -> Instant? {
    join.entry(of: address(number)).map {
      join.dueTime(
        of: $0, AutoJoin.Turn(position: position, isAlone: isAlone), isMember: isMember, isIntroduced: isIntroduced,
        start)
    }
  }

  private func gathering(_ numbers: UInt64..., own: UInt64) -> AutoJoin {
    var join = AutoJoin(own: address(own))
    join.turnOn()
    for number in numbers { join.add(address(number), start) }
    return join
  }

  @Test func `addresses are in ascending order, however they are added`() {
    let join = gathering(9, 3, 5, own: 4)
    #expect(join.entries.map { $0.address } == [address(3), address(5), address(9)])
  }

  @Test func `the first address in order invites at once from a session, and after a pause when alone`() {
    let join = gathering(9, own: 1)
    #expect(due(join, 9, position: 0) == start)
    #expect(due(join, 9, position: 0, isAlone: true) == start + SessionLimits.aloneTime)
  }

  @Test func `a later member of the session waits for each member before it`() {
    let join = gathering(9, own: 3)
    #expect(due(join, 9, position: 2) == start + SessionLimits.takeOverTime * 2)
    #expect(due(join, 9, position: nil) == .never)
  }

  @Test func `a member that is not connected is invited one turn later`() {
    let join = gathering(9, own: 1)
    #expect(due(join, 9, position: 0, isMember: true) == start + SessionLimits.takeOverTime)
  }

  @Test func `the wait starts again when the session grows, but not without end`() {
    var join = gathering(9, own: 3)
    join.tableChanged(start + .seconds(4))
    #expect(join.checkAt == .zero)
    #expect(due(join, 9, position: 1) == start + .seconds(4) + SessionLimits.takeOverTime)
    join.tableChanged(start + .seconds(3600))
    #expect(due(join, 9, position: 1) == start + SessionLimits.growTime + SessionLimits.takeOverTime)
  }

  @Test func `an address to which the application connects is invited at once`() {
    let join = gathering(9, own: 30)
    #expect(due(join, 9, position: 5, isIntroduced: true) == start)
  }

  @Test func `the pause after failures doubles up to the limit, and a busy address is tried sooner`() {
    var join = gathering(9, own: 1)
    join.ended(address(9), .busy, start)
    let busy = due(join, 9, position: 0)!
    #expect(busy == start + .milliseconds(500))
    join.restart(NodeID(high: 9, low: 0), start)
    join.ended(address(9), .timedOut, start)
    let first = due(join, 9, position: 0)!
    #expect(first == start + SessionLimits.sweepTime)
    join.ended(address(9), .timedOut, start)
    #expect(due(join, 9, position: 0) == start + SessionLimits.sweepTime * 2)
    for _ in 0..<100 { join.ended(address(9), .timedOut, start) }
    #expect(due(join, 9, position: 0) == start + SessionLimits.gatherPauseMax)
  }

  @Test func `an address that declined is removed`() {
    var join = gathering(9, own: 1)
    join.ended(address(9), .declined(explanation: []), start)
    #expect(join.entries.isEmpty)
  }

  @Test func `an inviter that sent no welcome is refused until its pause ends, also after a restart`() {
    var join = gathering(9, own: 1)
    join.welcomeMissed(address(9), start)
    #expect(join.refuses(address(9), start))
    join.restart(NodeID(high: 9, low: 0), start)
    #expect(join.refuses(address(9), start))
    #expect(!join.refuses(address(9), start + SessionLimits.sweepTime))
  }

  @Test func `the window doubles with each single invitee, and a merge resets it`() {
    var join = gathering(9, own: 1)
    for window in [2, 4, 8, 8] {
      join.accepted(isMerge: false)
      #expect(join.window == window)
    }
    join.accepted(isMerge: true)
    #expect(join.window == 1)
  }

  @Test func `an address that requests an invitation is due at once and comes first`() {
    var join = gathering(2, 7, 8, 9, own: 5)
    join.noteRequest(of: address(9))
    join.noteLackOfPlace(for: address(7))
    #expect(due(join, 9, position: nil) == start)
    let order = join.entries.inOrder { join.isInvited($0, before: $1, isAlone: true) }.map { $0.address }
    #expect(order == [address(9), address(8), address(2), address(7)])
    join.noteInvitation(to: address(9))
    #expect(due(join, 9, position: nil) == .never)
  }
}
