import Primitives
import Session

/// A member of a client's session: its state, and what was reported to the client.
struct LocalMember {
  /// Whether the client has to decide on the member.
  enum Question {
    case none
    /// The client was not asked yet: the member's node must prove its key first.
    case waiting
    case told
  }

  let address: MemberAddress
  var state: MemberState
  /// Whether `state` has not been reported to the client.
  var isDirty = true
  /// Whether the last reported state is connected.
  var isKnownConnected = false
  var question = Question.none
  /// The number of its messages that wait for the client.
  var queued = 0
  /// Whether the client had a result of no room, and whether there may be room again.
  var wantsRoom = false
  var hasRoom = false

  init(_ address: MemberAddress, _ state: MemberState) {
    self.address = address
    self.state = state
  }

  /// Connected or paused. A paused application has stopped reading for a while.
  var isConnected: Bool { state == .connected || state == .paused }

  /// Whether the membership has ended.
  var isGone: Bool {
    switch state {
    case .left, .ejected: true
    case .connecting, .connected, .paused, .away, .rejected: false
    }
  }
}

/// One session of a client, with the events that are not sent yet: one bit for each state, and messages in order.
///
/// The order of events is: the session's id; states of members without waiting messages; messages, each after its
/// sender was reported as connected; the end, after all messages.
final class ClientSession {
  struct Message {
    let from: MemberAddress
    let isReliable: Bool
    let data: [UInt8]

    /// The bytes that it counts in the client's window.
    var cost: Int { data.count + LocalLimits.windowOverheadBytes }
    /// The bytes of memory that it occupies while it waits.
    var heldBytes: Int { data.count + SessionLimits.messageOverheadBytes }
  }

  let number: UInt32
  let handle: SessionHandle
  let endpoint: UInt32
  let type: [UInt8]
  /// Whether the session invites every application that offers its type, and accepts their invitations.
  var gathers = false
  private var members: [LocalMember] = []
  private var isIdentified = false
  private var end: SessionEnd?
  private var queue: [Message] = []
  private var head = 0
  /// Bytes of waiting unreliable messages.
  private(set) var unreliableBytes = 0
  /// The number of bytes sent to the client, and the limit that it granted.
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

  /// Bytes of waiting messages.
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
    // Bounded by the addresses of a member table: a member that has left is removed once that was reported.
    members.append(LocalMember(address, state))
  }

  func add(_ message: Message) {
    queue.append(message)
    if !message.isReliable { unreliableBytes += message.heldBytes }
    if let index = members.firstIndex(where: { $0.address == message.from }) { members[index].queued += 1 }
  }

  func finish(_ end: SessionEnd) {
    self.end = end
    // A client that left gets no further messages.
    if end == .left { clear() }
    members.removeAll { $0.queued == 0 }
  }

  func grant(_ limit: UInt64) { self.limit = max(self.limit, limit) }

  /// Records that a message to this member was not sent for lack of room.
  func wantsRoom(_ address: MemberAddress) {
    guard let index = members.firstIndex(where: { $0.address == address }) else { return }
    members[index].wantsRoom = true
  }

  /// Records that a member, or with nil every member, may have room. Returns true if the client waits for it.
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

  /// The next event and, for a message, its data. Returns nil if there is none, or only messages beyond the client's
  /// window. `other` maps a session handle to the client's number.
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

  /// Reports a member as connected before the first event that refers to it; nil if that is already known.
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
    // At most half of the array belongs to messages that were taken.
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
