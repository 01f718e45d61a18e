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
    MemberAddress(node: row.places[number].identity.id, endpoint: 1)
  }

  /// Opens one application session on each of three nodes. The application of the first node invites the applications
  /// of the other two nodes, which accept. The applications on the nodes in `decidesOnMembers` decide about each
  /// admission.
  private func meet(_ row: Row, decidesOnMembers: [Int], rules: SessionRules = SessionRules()) throws -> [SessionHandle]
  {
    let sessions = try (0..<3).map { number in
      try row.places[number].node.advertise(
        Service(endpoint: 1, type: Array("story".utf8), info: []), now: row.now)
      return try row.places[number].node.sessions.open(
        1, rules, decidesOnMembers: decidesOnMembers.contains(number), now: row.now)
    }
    for place in row.places {
      let application = place.application
      place.application = { [unowned row, unowned place] event in
        application(event)
        guard case .invited(let invitation) = event,
          let number = row.places.firstIndex(where: { $0 === place })
        else { return }
        try? place.node.sessions.accept(invitation.handle, into: sessions[number], now: row.now)
      }
    }
    row.pass(.seconds(2))
    for number in 1...2 {
      _ = try row.places[0].node.sessions.invite(address(row, number), into: sessions[0], now: row.now)
    }
    row.settle()
    row.pass(.seconds(10))
    return sessions
  }

  @Test func `two applications that decide on members receive each other's certificates`() throws {
    let row = Row(3)
    var asked: [Int: [MemberAddress]] = [:]
    for number in 1...2 {
      row.places[number].application = { [unowned row] event in
        guard case .decisionWanted(_, let address) = event,
          row.places[number].node.certificates(of: address.node) != nil
        else { return }
        asked[number, default: []].append(address)
      }
    }
    #expect(row.places[1].node.certificates(of: row.places[2].identity.id) == nil)
    _ = try meet(row, decidesOnMembers: [1, 2])
    for (one, other) in [(1, 2), (2, 1)] {
      #expect(asked[one]?.contains(address(row, other)) == true)
      let point = row.places[other].identity.point
      #expect(row.places[one].node.certificates(of: row.places[other].identity.id) == [point])
    }
  }

  @Test func `a restarted member proves its key again, although no application sends to it`()
    throws
  {
    let row = Row(3)
    _ = try meet(row, decidesOnMembers: [0])
    row.restart(2)
    #expect(row.places[0].node.certificates(of: row.places[2].identity.id) == nil)
    row.pass(.seconds(10))
    #expect(row.places[0].node.certificates(of: row.places[2].identity.id) == [row.places[2].identity.point])
  }

  @Test(arguments: [(0, 2), (2, 0)])
  func `a member proves its key soon after the last request for it was lost`(judge: Int, other: Int) throws {
    let row = Row(3)
    _ = try meet(row, decidesOnMembers: [judge])
    let node = row.places[other].identity.id
    row.onTheWay = { _, header, payload in header.type == FrameType.handshake.rawValue ? nil : payload }
    row.restart(other)
    row.pass(.seconds(40))
    row.onTheWay = { _, _, payload in payload }
    #expect(row.places[judge].node.certificates(of: node) == nil)
    row.pass(.seconds(12))
    #expect(row.places[judge].node.certificates(of: node) == [row.places[other].identity.point])
  }

  @Test func `a change of trust ends only the session of a peer whose chain is now refused`() throws {
    let row = Row(3)
    _ = try meet(row, decidesOnMembers: [])
    let node = row.places[0].node, peers = (1...2).map { row.places[$0].identity.id }
    #expect(node.sealedPeers.count == 2 && peers.allSatisfy { node.sealedPeers.contains($0) })
    for peer in peers { node.reconsider(peer, now: row.now) { $0 == [row.places[2].identity.point] } }
    row.settle()
    #expect(node.certificates(of: peers[0]) == [row.places[1].identity.point])
    #expect(node.certificates(of: peers[1]) == nil)
    #expect(row.places[2].node.certificates(of: row.places[0].identity.id) == nil)
  }

  @Test func `nodes without encryption have no certificates`() {
    let row = Row(2) { _, settings in settings.encryption = .none }
    #expect(row.places[0].node.certificates(of: row.places[1].identity.id) == [])
    #expect(row.places[0].node.certificates(of: row.places[0].identity.id) == [])
  }
}
