import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Text

/// The members of a session, with names for people. The daemon limits the number of members.
struct MemberNames {
  struct Member {
    let address: MemberAddress
    /// The details of the member's node, as of the last time it was in reach.
    var peer: LocalPeer
    var state: MemberState
    /// The last state that was shown to the user. `connecting` is never shown.
    fileprivate var told: MemberState?

    /// Whether streams can be opened to the member: it is connected, or does not read messages at present.
    var isThere: Bool { state == .connected || state == .paused }
  }

  private(set) var members: [Member] = []

  /// Handles a `member` event. Returns the state that was shown to the user before the event; nil if the member was not
  /// shown yet.
  mutating func receive(_ address: MemberAddress, _ state: MemberState, _ peer: LocalPeer) -> MemberState? {
    let index = members.firstIndex { $0.address == address } ?? members.endIndex
    if index == members.endIndex { members.append(Member(address: address, peer: peer, state: state)) }
    let before = members[index].told
    members[index].state = state
    if state != .connecting { members[index].told = state }
    // For a member that is out of reach the event has no details, so keep the earlier ones.
    if !peer.name.isEmpty { members[index].peer = peer }
    return before
  }

  mutating func forget(_ address: MemberAddress) { members.removeAll { $0.address == address } }

  func member(_ address: MemberAddress) -> Member? { members.first { $0.address == address } }

  /// A member's name: the name that its application chose, “@”, and the name of its node, for example anna@bob. If
  /// another member has the same name, the start of the node's id follows.
  func name(_ address: MemberAddress, _ sightings: Sightings) -> ShownName {
    let name = plainName(address, sightings)
    let isShared = members.contains { $0.address != address && plainName($0.address, sightings) == name }
    return ShownName(name: name, id: isShared ? address.node.shortText : nil)
  }

  private func plainName(_ address: MemberAddress, _ sightings: Sightings) -> [UInt8] {
    var name = member(address)?.peer.name ?? []
    if name.isEmpty { name = Array(address.node.shortText.utf8) }
    if let chosen = sightings.sighting(of: address)?.chosenName { name = chosen + utf8("@") + name }
    return name
  }
}

extension TextBuilder {
  /// Adds a peer's distance and whether its key is verified, for example: 2 hops, verified
  mutating func add(_ peer: LocalPeer) {
    add(UInt64(peer.hops))
    add(peer.hops == 1 ? " hop" : " hops" as StaticString)
    add(peer.isVerified ? ", verified" : ", not verified" as StaticString)
  }

  /// Adds a peer about which the user must decide, for example: (NOT verified, 2b75e26e) “bob”. Verification and id
  /// come first, because a peer's name could imitate text that follows the name.
  mutating func add(_ peer: LocalPeer, _ node: NodeID) {
    add(peer.isVerified ? "(verified, " : "(NOT verified, " as StaticString)
    add(node.shortText)
    add(") “")
    add(untrusted: peer.name)
    add("”")
  }

  /// Adds a colon and untrusted text, unless the text is empty.
  mutating func add(words: [UInt8]) {
    if words.isEmpty { return }
    add(": ")
    add(untrusted: words)
  }

  /// Adds a number of lines, for example: 1 line, 2 lines
  mutating func add(lines count: Int) {
    add(UInt64(count))
    add(count == 1 ? " line" : " lines" as StaticString)
  }
}

/// The notice about a change of a member's state; nil if there is nothing to show. `lacking`: the number of lines that
/// wait to be sent to the member.
func memberNotice(
  _ name: ShownName, _ address: MemberAddress, _ peer: LocalPeer, from before: MemberState?, to state: MemberState,
  lacking: Int
) -> TextBuilder? {
  var text = TextBuilder()
  text.add(name)
  switch state {
  case .connecting, .rejected: return nil
  case .connected:
    switch before {
    case .away: text.add(" is back")
    case .paused: text.add(" reads messages again")
    case .connected: text.add(" reconnected: messages sent meanwhile may be missing")
    case nil, .connecting, .rejected, .left, .ejected:
      text.add(" is here (")
      text.add(address.node.shortText)
      text.add(", ")
      text.add(peer)
      text.add(")")
    }
  case .paused: text.add("'s application does not read messages")
  case .away:
    text.add(" is out of reach")
    if lacking > 0 {
      text.add(": ")
      text.add(lines: lacking)
      text.add(lacking == 1 ? " is kept" : " are kept" as StaticString)
      text.add(" for it")
    }
  case .left(let reason, let farewell):
    switch reason {
    case .wanted:
      text.add(" left")
      text.add(words: farewell)
    case .crashed: text.add(" left: its application ended unexpectedly")
    case .full: text.add(" left: the merged session has too many members")
    }
  case .ejected(let words):
    text.add(" was ejected")
    text.add(words: words)
  }
  return text
}

/// Adds a member's state to a JSON line, with the reason and the last words of a member that left.
func addState(_ state: MemberState, to line: inout JSONLine) {
  switch state {
  case .connecting: line.add("state", "connecting")
  case .connected: line.add("state", "connected")
  case .paused: line.add("state", "paused")
  case .away: line.add("state", "away")
  case .rejected: line.add("state", "rejected")
  case .left(let reason, let text):
    line.add("state", "left")
    switch reason {
    case .wanted: line.add("reason", "wanted")
    case .crashed: line.add("reason", "crashed")
    case .full: line.add("reason", "full")
    }
    line.add("text", text)
  case .ejected(let text):
    line.add("state", "ejected")
    line.add("text", text)
  }
}

/// The reason why a session ended, as text for people.
func sessionEndText(_ end: SessionEnd) -> TextBuilder {
  switch end {
  case .left: return TextBuilder("you left the session")
  case .ejected(let words):
    var text = TextBuilder("you were ejected")
    text.add(words: words)
    return text
  case .full: return TextBuilder("the session has ended for you: the merged session has too many members")
  case .isSame: return TextBuilder("this session was merged into another one of yours")
  }
}
