import Primitives
import Testing

@testable import Session

/// The small units that `Sessions` consists of.
@Suite struct SessionUnitsTests {
  private func node(_ number: UInt64) -> NodeID { NodeID(high: number, low: 0) }
  private func address(_ number: UInt64) -> MemberAddress { MemberAddress(node: node(number), endpoint: 1) }

  // MARK: Reachable nodes

  @Test func `a node with another epoch or another encryption has restarted`() {
    var nodes = ReachableNodes(local: node(1))
    func change(_ epoch: UInt64, _ isSealed: Bool) -> String {
      switch nodes.found(node(2), epoch: epoch, isSealed: isSealed) {
      case .none: "none"
      case .found: "found"
      case .restarted(let hasOtherEpoch): hasOtherEpoch ? "epoch" : "seal"
      }
    }
    #expect(
      [change(1, false), change(1, false), change(1, true), change(2, true)] == ["found", "none", "seal", "epoch"])
    #expect(nodes.isSealed(node(2)) == true && nodes.contains(node(2)))
    nodes.lost(node(2))
    #expect(nodes.isSealed(node(2)) == nil && !nodes.contains(node(2)))
  }

  @Test func `the local node is always reachable, encrypted and pinned`() {
    let nodes = ReachableNodes(local: node(1))
    #expect(nodes.contains(node(1)) && nodes.isSealed(node(1)) == true && nodes.holder(node(1)).standing == .pinned)
  }

  @Test func `a node with a former member has a higher class until enough others followed`() {
    var nodes = ReachableNodes(local: node(1))
    nodes.memberConnected(on: node(2))
    #expect(nodes.holder(node(2)).standing == .formerMember)
    for number in 0..<UInt64(SessionLimits.formerMembersMax - 1) { nodes.memberConnected(on: node(100 + number)) }
    #expect(nodes.holder(node(2)).standing == .formerMember)
    nodes.memberConnected(on: node(3))
    #expect(nodes.holder(node(2)).standing == .stranger)
  }

  // MARK: Delivery results

  @Test func `a result is reported once, by its own tag`() {
    var messages = UndeliveredMessages()
    let first = messages.add(.notice)
    let second = messages.add(.invitation(InvitationHandle(number: 4)))
    #expect(first != second)
    guard case .invitation(let handle)? = messages.remove(second) else { return #expect(Bool(false)) }
    #expect(handle.number == 4)
    #expect(messages.remove(second) == nil && messages.remove(first) != nil)
  }

  @Test func `only the messages to one member are removed, in their order`() {
    var messages = UndeliveredMessages()
    let session = SessionHandle(number: 1)
    func message(_ number: UInt64, to other: UInt64) -> UndeliveredMessages.Purpose {
      .message(session, address(other), number: 1, SessionMessageID(number: number))
    }
    for (number, other) in [(1, 2), (2, 3), (3, 2)] as [(UInt64, UInt64)] {
      _ = messages.add(message(number, to: other))
    }
    #expect(messages.removeMessages(of: session, to: address(2)).map { $0.number } == [1, 3])
    #expect(messages.removeMessages(of: session, to: address(2)).isEmpty)
    #expect(messages.removeMessages(of: session, to: address(3)).map { $0.number } == [2])
  }

  // MARK: Offenders

  @Test func `a node with many wrong signatures is refused for a time`() {
    var offenders = TableOffenders()
    let start = Instant.zero + .seconds(1000)
    offenders.count(node(2), SessionLimits.forgeriesMax - 1, start)
    #expect(!offenders.isRefused(node(2), start))
    offenders.count(node(2), 1, start)
    #expect(offenders.isRefused(node(2), start) && !offenders.isRefused(node(3), start))
    #expect(!offenders.isRefused(node(2), start + SessionLimits.forgerTime))
  }

  // MARK: Services

  @Test func `a node's services are found, changed and lost`() throws {
    var services = Services()
    func body(_ all: [Service]) -> [UInt8] { Service.advertisementBody(all)! }
    let chat = Service(endpoint: 1, type: Array("chat".utf8)), game = Service(endpoint: 2, type: Array("game".utf8))
    var other = chat
    other.info = [Array("name=x".utf8)]
    func text(_ changes: [Services.Change]) -> [String] {
      changes.map {
        switch $0 {
        case .lost(let endpoint): "-\(endpoint)"
        case .found(let service): "+\(service.endpoint)"
        case .changed(let service): "~\(service.endpoint)"
        }
      }
    }
    #expect(text(services.set(body([chat, game]), of: node(2))) == ["+1", "+2"])
    #expect(text(services.set(body([other]), of: node(2))) == ["-2", "~1"])
    #expect(services.services(of: node(2)) == [other] && services.all.map { $0.address } == [address(2)])
    #expect(text(services.set(nil, of: node(2))) == ["-1"])
    #expect(services.all.isEmpty)
  }

  // MARK: Buffer space

  /// The bytes of all ended sessions with unread messages, and the part charged to the share pool.
  private func sums(_ ended: EndedUnread) -> [UInt64] {
    var sums: [UInt64] = [0, 0]
    ended.forEach { unread, _ in
      sums[0] += unread.bytes
      sums[1] += unread.share
    }
    return sums
  }

  @Test func `the messages of an ended session use their room until the last one is read`() {
    var ended = EndedUnread()
    let first = SessionHandle(number: 1), second = SessionHandle(number: 2)
    let cost = Credit.cost(100)
    ended.keep(Unread(bytes: 2 * cost, share: cost), of: first, SessionOwner())
    ended.keep(Unread(bytes: cost, share: 0), of: second, SessionOwner())
    ended.keep(Unread(), of: SessionHandle(number: 3), SessionOwner())
    #expect(sums(ended) == [3 * cost, cost])
    ended.took(100, of: first)
    #expect(sums(ended) == [2 * cost, cost])
    ended.took(100, of: first)
    ended.took(100, of: SessionHandle(number: 9))
    #expect(sums(ended) == [cost, 0])
  }

  @Test func `discarding keeps the one message that the application is about to take`() {
    var ended = EndedUnread()
    let session = SessionHandle(number: 1)
    ended.keep(Unread(bytes: 1_000_000, share: 500_000), of: session, SessionOwner())
    let hadMessages = ended.discard(session, exceptMessageOf: 100)
    #expect(sums(ended) == [Credit.cost(100), Credit.cost(100)])
    let hadMessage = ended.discard(session, exceptMessageOf: nil)
    #expect(sums(ended) == [0, 0])
    let hasMessage = ended.discard(session, exceptMessageOf: nil)
    #expect([hadMessages, hadMessage, hasMessage] == [true, true, false])
  }

  @Test func `requests for credit are examined once after each change, in the order of their arrival`() {
    var requests = CreditRequests()
    var due = [requests.takeDue()]
    let turns = [requests.request(), requests.request()]
    due += [requests.takeDue(), requests.takeDue()]
    requests.roomAppeared()
    due += [requests.takeDue()]
    #expect(turns == [1, 2] && due == [false, true, false, true])
  }
}
