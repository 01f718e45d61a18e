import Frame
import Node
import Primitives
import Seal
import Session
import TestSupport
import Testing

/// The certificate chains that an application receives for its decision about the admission of members.
@Suite struct CertificateTests {
  private func address(_ row: Row, _ number: Int) -> MemberAddress {
    MemberAddress(node: row.boxes[number].identity.id, endpoint: 1)
  }

  /// Opens one application session on each of three nodes. The application of the first node invites the applications
  /// of the other two nodes, which accept. The applications on the nodes in `decidesOnMembers` decide about each
  /// admission.
  private func meet(_ row: Row, decidesOnMembers: [Int], rules: SessionRules = SessionRules()) throws -> [SessionHandle]
  {
    let sessions = try (0..<3).map { number in
      try row.boxes[number].node.advertise(
        Service(endpoint: 1, type: Array("story".utf8), info: []), now: row.now)
      return try row.boxes[number].node.sessions.open(
        1, rules, decidesOnMembers: decidesOnMembers.contains(number), now: row.now)
    }
    for box in row.boxes {
      let application = box.application
      box.application = { [unowned row, unowned box] event in
        application(event)
        guard case .invited(let invitation) = event,
          let number = row.boxes.firstIndex(where: { $0 === box })
        else { return }
        try? box.node.sessions.accept(invitation.handle, into: sessions[number], now: row.now)
      }
    }
    row.pass(.seconds(2))
    for number in 1...2 {
      _ = try row.boxes[0].node.sessions.invite(address(row, number), into: sessions[0], now: row.now)
    }
    row.settle()
    row.pass(.seconds(10))
    return sessions
  }

  @Test func `two applications that decide on members receive each other's certificates`() throws {
    let row = Row(3)
    var asked: [Int: [MemberAddress]] = [:]
    for number in 1...2 {
      row.boxes[number].application = { [unowned row] event in
        guard case .decisionWanted(_, let address) = event,
          row.boxes[number].node.certificates(of: address.node) != nil
        else { return }
        asked[number, default: []].append(address)
      }
    }
    #expect(row.boxes[1].node.certificates(of: row.boxes[2].identity.id) == nil)
    _ = try meet(row, decidesOnMembers: [1, 2])
    for (one, other) in [(1, 2), (2, 1)] {
      #expect(asked[one]?.contains(address(row, other)) == true)
      let point = row.boxes[other].identity.point
      #expect(row.boxes[one].node.certificates(of: row.boxes[other].identity.id) == [point])
    }
  }

  @Test func `a restarted member proves its key again, although no application sends to it`()
    throws
  {
    let row = Row(3)
    _ = try meet(row, decidesOnMembers: [0])
    row.restart(2)
    #expect(row.boxes[0].node.certificates(of: row.boxes[2].identity.id) == nil)
    row.pass(.seconds(10))
    #expect(row.boxes[0].node.certificates(of: row.boxes[2].identity.id) == [row.boxes[2].identity.point])
  }

  @Test(arguments: [(0, 2), (2, 0)])
  func `a member proves its key soon after the last request for it was lost`(judge: Int, other: Int) throws {
    let row = Row(3)
    _ = try meet(row, decidesOnMembers: [judge])
    let node = row.boxes[other].identity.id
    row.onTheWay = { _, header, payload in header.type == FrameType.handshake.rawValue ? nil : payload }
    row.restart(other)
    row.pass(.seconds(40))
    row.onTheWay = { _, _, payload in payload }
    #expect(row.boxes[judge].node.certificates(of: node) == nil)
    row.pass(.seconds(12))
    #expect(row.boxes[judge].node.certificates(of: node) == [row.boxes[other].identity.point])
  }

  @Test func `a change of trust ends only the session of a peer whose chain is now refused`() throws {
    let row = Row(3)
    _ = try meet(row, decidesOnMembers: [])
    let node = row.boxes[0].node, peers = (1...2).map { row.boxes[$0].identity.id }
    #expect(node.sealedPeers.count == 2 && peers.allSatisfy { node.sealedPeers.contains($0) })
    for peer in peers { node.reconsider(peer, now: row.now) { $0 == [row.boxes[2].identity.point] } }
    row.settle()
    #expect(node.certificates(of: peers[0]) == [row.boxes[1].identity.point])
    #expect(node.certificates(of: peers[1]) == nil)
    #expect(row.boxes[2].node.certificates(of: row.boxes[0].identity.id) == nil)
  }

  @Test func `nodes without encryption have no certificates`() {
    let row = Row(2) { _, settings in settings.encryption = .none }
    #expect(row.boxes[0].node.certificates(of: row.boxes[1].identity.id) == [])
    #expect(row.boxes[0].node.certificates(of: row.boxes[0].identity.id) == [])
  }
}
