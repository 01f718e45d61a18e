import CSystem
import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Session

/// The members of a session as people see them. The daemon bounds their number.
struct MemberNames {
  struct Member {
    let address: MemberAddress
    /// As it was when it was last in reach.
    var peer: LocalPeer
    var state: MemberState
    /// What people were last told of it: that it connects, again or at first, is not told.
    fileprivate var told: MemberState?

    /// Streams can be opened to it.
    var isThere: Bool { state == .connected || state == .paused }
  }

  private(set) var members: [Member] = []

  /// Takes a `member` event. Returns what people knew before; nil when they did not know of it.
  mutating func hear(_ address: MemberAddress, _ state: MemberState, _ peer: LocalPeer) -> MemberState? {
    let index = members.firstIndex { $0.address == address } ?? members.endIndex
    if index == members.endIndex { members.append(Member(address: address, peer: peer, state: state)) }
    let before = members[index].told
    members[index].state = state
    if state != .connecting { members[index].told = state }
    // Of one out of reach nothing is told.
    if !peer.name.isEmpty { members[index].peer = peer }
    return before
  }

  mutating func forget(_ address: MemberAddress) { members.removeAll { $0.address == address } }

  func member(_ address: MemberAddress) -> Member? { members.first { $0.address == address } }

  /// The name that its application chose before that of its box: anna@bob. With the beginning of the id when another member
  /// is called the same.
  func name(_ address: MemberAddress, _ sightings: Sightings) -> [UInt8] {
    let name = plainName(address, sightings)
    let isShared = members.contains { $0.address != address && plainName($0.address, sightings) == name }
    if !isShared { return name }
    var text = TextBuilder()
    for byte in name { text.add(byte: byte) }
    text.add(" (")
    text.add(address.node.shortText)
    text.add(")")
    return text.bytes
  }

  private func plainName(_ address: MemberAddress, _ sightings: Sightings) -> [UInt8] {
    var name = member(address)?.peer.name ?? []
    if name.isEmpty { name = Array(address.node.shortText.utf8) }
    if let chosen = sightings.sighting(of: address)?.chosenName { name = chosen + utf8("@") + name }
    return name
  }
}

extension TextBuilder {
  /// 2 hops, verified
  mutating func add(_ peer: LocalPeer) {
    add(UInt64(peer.hops))
    add(peer.hops == 1 ? " hop" : " hops" as StaticString)
    add(peer.isVerified ? ", verified" : ", not verified" as StaticString)
  }

  /// (NOT verified, 2b75e26e) “bob”: for readers who need to know the peer. The box's own knowledge comes first, as a name may hold
  /// anything that could stand behind it.
  mutating func add(_ peer: LocalPeer, _ node: NodeID) {
    add(peer.isVerified ? "(verified, " : "(NOT verified, " as StaticString)
    add(node.shortText)
    add(") “")
    add(untrusted: peer.name)
    add("”")
  }

  /// The beginning of a text: untrusted words, and what is said of them.
  init(_ word: [UInt8], _ text: StaticString) {
    self.init()
    add(untrusted: word)
    add(text)
  }

  /// “word” and what is said of it.
  init(quoting word: [UInt8], _ text: StaticString) {
    self.init()
    add("“")
    add(untrusted: word)
    add("”")
    add(text)
  }

  init(_ text: StaticString) {
    self.init()
    add(text)
  }

  /// Behind a colon, if there are any.
  mutating func add(words: [UInt8]) {
    if words.isEmpty { return }
    add(": ")
    add(untrusted: words)
  }

  /// 1 line, 2 lines
  mutating func add(lines count: Int) {
    add(UInt64(count))
    add(count == 1 ? " line" : " lines" as StaticString)
  }
}

/// What a change of a member means to people; nil when there is nothing to say. `lacking`: lines that wait for it.
func memberNotice(
  _ name: [UInt8], _ address: MemberAddress, _ peer: LocalPeer, from before: MemberState?, to state: MemberState,
  lacking: Int
) -> TextBuilder? {
  var text = TextBuilder()
  text.add(untrusted: name)
  switch state {
  case .connecting, .rejected: return nil
  case .connected:
    switch before {
    case .away: text.add(" is back")
    case .paused: text.add(" reads again")
    case .connected: text.add(" was met anew: what it sent meanwhile may be missing")
    case nil, .connecting, .rejected, .left, .ejected:
      text.add(" is here (")
      text.add(address.node.shortText)
      text.add(", ")
      text.add(peer)
      text.add(")")
    }
  case .paused: text.add("'s application does not read")
  case .away:
    text.add(" is out of reach")
    if lacking > 0 {
      text.add(": ")
      text.add(lines: lacking)
      text.add(lacking == 1 ? " waits" : " wait" as StaticString)
      text.add(" for it")
    }
  case .left(let reason, let farewell):
    switch reason {
    case .wanted:
      text.add(" left")
      text.add(words: farewell)
    case .crashed: text.add(" is gone: its application ended without a word")
    case .full: text.add(" is gone: merged sessions have too many members")
    }
  case .ejected(let words):
    text.add(" was ejected")
    text.add(words: words)
  }
  return text
}

/// The state of a member for programs, with its reason and its last words.
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

/// Why a session ended, for people.
func sessionEndText(_ end: SessionEnd) -> TextBuilder {
  switch end {
  case .left: return TextBuilder("the session was left")
  case .ejected(let words):
    var text = TextBuilder("you were ejected")
    text.add(words: words)
    return text
  case .full: return TextBuilder("the session is over for you: merged sessions have too many members")
  case .isSame: return TextBuilder("the session is over: it is the same as another one")
  }
}
