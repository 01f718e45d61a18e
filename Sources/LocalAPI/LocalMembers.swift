import Primitives
import Session

/// A member of a client's session: the member's state, and what was reported to the client.
struct LocalMember {
  /// Whether the client has to decide on the member, and whether the client was asked.
  enum Question {
    case none
    /// The client has to decide but was not asked yet, because the member's node must prove its key first.
    case waiting
    case told
  }

  let address: MemberAddress
  var state: MemberState
  /// Whether `state` still has to be reported to the client.
  var isDirty = true
  /// Whether the state that was reported last is connected or paused.
  var isKnownConnected = false
  var question = Question.none
  /// The number of messages from the member that wait for the client.
  var queued = 0
  /// `wantsRoom`: a message of the client to the member had the result `noRoom`. `hasRoom`: the member may have room
  /// again, which still has to be reported.
  var wantsRoom = false
  var hasRoom = false

  init(_ address: MemberAddress, _ state: MemberState) {
    self.address = address
    self.state = state
  }

  /// Whether the member's application is connected or paused. A paused application has stopped reading for a while.
  var isConnected: Bool { state == .connected || state == .paused }

  /// Whether the membership has ended.
  var isGone: Bool {
    switch state {
    case .left, .ejected: true
    case .connecting, .connected, .paused, .away, .rejected: false
    }
  }
}

/// A session of a client, with the events that were not sent to the client yet. For each state of a member, one bit
/// records whether the state has to be sent. Messages wait in the order of arrival.
///
/// The order of events is: the session's id; states of members without waiting messages; messages, each after its
/// sender was reported as connected; the end, after all messages.
final class ClientSession {
  struct Message {
    let from: MemberAddress
    let isReliable: Bool
    let data: [UInt8]

    /// The bytes that the message uses of the client's window.
    var cost: Int { data.count + LocalLimits.windowOverheadBytes }
    /// The bytes of memory that the message occupies while waiting.
    var heldBytes: Int { data.count + SessionLimits.messageOverheadBytes }
  }

  let number: UInt32
  let handle: SessionHandle
  let endpoint: UInt32
  let type: [UInt8]
  /// Whether the session gathers: auto-join with every application that offers the session's type, and with every
  /// application that invites the client.
  var gathers = false
  private var members: [LocalMember] = []
  private var isIdentified = false
  private var end: SessionEnd?
  private var queue: [Message] = []
  private var head = 0
  /// Bytes of unreliable messages that wait for the client.
  private(set) var unreliableBytes = 0
  /// The bytes of messages sent to the client since the session was opened, and the limit that the client has granted.
  private var sent: UInt64 = 0
  private var limit: UInt64 = 0
  /// Whether the end was reported to the client.
  private(set) var isOver = false

  init(_ number: UInt32, _ handle: SessionHandle, _ endpoint: UInt32, _ type: [UInt8]) {
    self.type = type
    self.number = number
    self.handle = handle
    self.endpoint = endpoint
  }

  var hasEnded: Bool { end != nil }
  var memberCount: Int { members.count }

  /// Bytes of messages that wait for the client.
  var bytesWaiting: Int { queue[head...].reduce(0) { $0 + $1.data.count } }

  // MARK: Input

  func asks(_ address: MemberAddress) {
    guard let index = members.firstIndex(where: { $0.address == address }), members[index].question == .none else {
      return
    }
    members[index].question = .waiting
  }

  func identify() { isIdentified = false }

  func note(_ address: MemberAddress, _ state: MemberState) {
    if let index = members.firstIndex(where: { $0.address == address }) {
      members[index].state = state
      members[index].isDirty = true
      if members[index].isGone { members[index].question = .none }
      return
    }
    // A session has at most `SessionLimits.recordsMax` addresses, which limits this array. A member that has left is
    // removed after its departure was reported.
    members.append(LocalMember(address, state))
  }

  func add(_ message: Message) {
    queue.append(message)
    if !message.isReliable { unreliableBytes += message.heldBytes }
    if let index = members.firstIndex(where: { $0.address == message.from }) { members[index].queued += 1 }
  }

  func finish(_ end: SessionEnd) {
    self.end = end
    // A client that has left the session receives no further messages.
    if end == .left { clear() }
    members.removeAll { $0.queued == 0 }
  }

  func grant(_ limit: UInt64) { self.limit = max(self.limit, limit) }

  /// Records that a message to this member was not sent, because the member had no room.
  func wantsRoom(_ address: MemberAddress) {
    guard let index = members.firstIndex(where: { $0.address == address }) else { return }
    members[index].wantsRoom = true
  }

  /// Records that a member may have room. Nil stands for all members. Returns true if the client waits for room at one
  /// of these members.
  func roomAppeared(_ address: MemberAddress? = nil) -> Bool {
    var isAwaited = false
    for index in members.indices
    where members[index].wantsRoom && (address ?? members[index].address) == members[index].address {
      members[index].wantsRoom = false
      members[index].hasRoom = true
      isAwaited = true
    }
    return isAwaited
  }

  // MARK: Events for the client

  /// The next event for the client. If the event is a message, the message is returned too. Returns nil if there is no
  /// event, or if only messages wait that exceed the client's window. `other` returns the client's number of a session.
  func nextEvent(_ node: any LocalNode, number other: (SessionHandle) -> UInt32) -> (
    event: LocalEvent, message: Message?
  )? {
    if !isIdentified, let id = node.sessions.id(of: handle) {
      isIdentified = true
      return (.identified(session: number, id), nil)
    }
    if let question = nextQuestion(node) { return (question, nil) }
    for index in members.indices {
      if members[index].isDirty && members[index].queued == 0 { return (told(index, node), nil) }
      if members[index].hasRoom {
        members[index].hasRoom = false
        return (.room(session: number, members[index].address), nil)
      }
    }
    if head < queue.count {
      let message = queue[head]
      guard sent + UInt64(message.cost) <= limit else { return nil }
      if let event = connecting(message.from, node) { return (event, nil) }
      let index = members.firstIndex { $0.address == message.from }
      if let index { members[index].queued -= 1 }
      take()
      sent += UInt64(message.cost)
      let event = LocalEvent.message(
        session: number, from: message.from, isReliable: message.isReliable, message.data)
      return (event, message)
    }
    guard let end, !isOver else { return nil }
    isOver = true
    var same: UInt32 = 0
    if case .isSame(let handle) = end { same = other(handle) }
    return (.ended(session: number, end, same: same), nil)
  }

  /// The event that reports a member as connected, which precedes the first event of the member. Nil if the client
  /// already knows the member as connected.
  func connecting(_ address: MemberAddress, _ node: any LocalNode) -> LocalEvent? {
    guard let index = members.firstIndex(where: { $0.address == address }), !members[index].isKnownConnected else {
      return nil
    }
    members[index].isKnownConnected = true
    return memberEvent(address, .connected, node)
  }

  /// The next request for a decision on a member whose node has proved its key.
  private func nextQuestion(_ node: any LocalNode) -> LocalEvent? {
    if end != nil { return nil }
    for index in members.indices where members[index].question == .waiting {
      let address = members[index].address
      guard let chain = node.certificates(of: address.node) else { continue }
      members[index].question = .told
      var rest = LocalLimits.certificatesBytesMax
      let told = chain.prefix { certificate in
        rest -= 2 + certificate.count
        return rest >= 0
      }
      return .decisionWanted(
        session: number, address, node.peer(address.node) ?? .absent, certificates: [[UInt8]](told))
    }
    return nil
  }

  private func told(_ index: Int, _ node: any LocalNode) -> LocalEvent {
    let member = members[index]
    members[index].isDirty = false
    members[index].isKnownConnected = member.isConnected
    if member.isGone { members.remove(at: index) }
    return memberEvent(member.address, member.state, node)
  }

  private func memberEvent(_ address: MemberAddress, _ state: MemberState, _ node: any LocalNode) -> LocalEvent {
    .member(session: number, address, state, node.peer(address.node) ?? .absent)
  }

  private func take() {
    if !queue[head].isReliable { unreliableBytes -= queue[head].heldBytes }
    head += 1
    // Messages that were taken occupy at most half of the array.
    guard head * 2 >= queue.count else { return }
    queue.removeFirst(head)
    head = 0
  }

  private func clear() {
    queue = []
    head = 0
    unreliableBytes = 0
    for index in members.indices { members[index].queued = 0 }
  }
}
