import Primitives
import Session

/// A member of a client's session: how it stands, and what the client was told of that.
struct LocalMember {
  /// Whether the client is to decide on the member.
  enum Question {
    case none
    /// It was not asked yet: the member's node has to prove its key first.
    case waiting
    case told
  }

  let address: MemberAddress
  var state: MemberState
  /// The client has not been told of `state`.
  var isDirty = true
  /// The last state that it was told is connected.
  var isKnownConnected = false
  var question = Question.none
  /// Messages of it that wait for the client.
  var queued = 0
  /// The client was told that the member had no room, and whether it may have some again.
  var wantsRoom = false
  var hasRoom = false

  init(_ address: MemberAddress, _ state: MemberState) {
    self.address = address
    self.state = state
  }

  /// Its application reads, or has stopped reading for a while.
  var isConnected: Bool { state == .connected || state == .paused }

  /// No longer a member.
  var isGone: Bool {
    switch state {
    case .left, .ejected: true
    case .connecting, .connected, .paused, .away, .rejected: false
    }
  }
}

/// One session of a client, with what the client has not been told yet: a bit for each state, and messages in their order.
///
/// What goes first: the session's id; states of members of whom no message waits; messages, each after its sender was told
/// as connected; the end, after all messages.
final class ClientSession {
  struct Message {
    let from: MemberAddress
    let isReliable: Bool
    let data: [UInt8]

    /// What it counts for the client's window.
    var cost: Int { data.count + LocalLimits.windowOverheadBytes }
    /// The memory that it takes while it waits.
    var heldBytes: Int { data.count + SessionLimits.messageOverheadBytes }
  }

  let number: UInt32
  let handle: SessionHandle
  let endpoint: UInt32
  let type: [UInt8]
  /// It invites whoever offers its type, and accepts whoever does the same.
  var gathers = false
  private var members: [LocalMember] = []
  private var isIdentified = false
  private var end: SessionEnd?
  private var queue: [Message] = []
  private var head = 0
  /// Bytes of unreliable messages that wait.
  private(set) var unreliableBytes = 0
  /// What the client has been sent, and what it takes.
  private var sent: UInt64 = 0
  private var limit: UInt64 = 0
  /// The client knows the end.
  private(set) var isOver = false

  init(_ number: UInt32, _ handle: SessionHandle, _ endpoint: UInt32, _ type: [UInt8]) {
    self.type = type
    self.number = number
    self.handle = handle
    self.endpoint = endpoint
  }

  var hasEnded: Bool { end != nil }
  var memberCount: Int { members.count }

  /// Bytes of messages that wait.
  var bytesWaiting: Int { queue[head...].reduce(0) { $0 + $1.data.count } }

  // MARK: What happens

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
    // As many as a table has addresses: a member that is gone and told is forgotten.
    members.append(LocalMember(address, state))
  }

  func add(_ message: Message) {
    queue.append(message)
    if !message.isReliable { unreliableBytes += message.heldBytes }
    if let index = members.firstIndex(where: { $0.address == message.from }) { members[index].queued += 1 }
  }

  func finish(_ end: SessionEnd) {
    self.end = end
    // Who left does not want the rest.
    if end == .left { clear() }
    members.removeAll { $0.queued == 0 }
  }

  func grant(_ limit: UInt64) { self.limit = max(self.limit, limit) }

  /// The client's message did not go to this member for lack of room.
  func wantsRoom(_ address: MemberAddress) {
    guard let index = members.firstIndex(where: { $0.address == address }) else { return }
    members[index].wantsRoom = true
  }

  /// A member may have room, or each one with nil. True when the client waits for it.
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

  // MARK: What the client is told

  /// The next event; nil when there is none, or only messages that the client does not take. `name` gives the names of
  /// nodes, `id` the session's id, `number` the client's number of another session.
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

  /// That a member is connected, when the client is about to hear of it otherwise before.
  func connecting(_ address: MemberAddress, _ node: any LocalNode) -> LocalEvent? {
    guard let index = members.firstIndex(where: { $0.address == address }), !members[index].isKnownConnected else {
      return nil
    }
    members[index].isKnownConnected = true
    return memberEvent(address, .connected, node)
  }

  /// About a member whose node has proved its key.
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
    // Half of the memory at most is of messages that are gone.
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
