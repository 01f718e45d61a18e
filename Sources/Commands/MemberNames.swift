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
  }

  private(set) var members: [Member] = []

  /// Takes a `member` event. Returns the state before; nil for a new member.
  mutating func hear(_ address: MemberAddress, _ state: MemberState, _ peer: LocalPeer) -> MemberState? {
    guard let index = members.firstIndex(where: { $0.address == address }) else {
      members.append(Member(address: address, peer: peer, state: state))
      return nil
    }
    let before = members[index].state
    members[index].state = state
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
    return isShared ? name + Array(" (\(address.node.shortText))".utf8) : name
  }

  private func plainName(_ address: MemberAddress, _ sightings: Sightings) -> [UInt8] {
    var name = member(address)?.peer.name ?? []
    if name.isEmpty { name = Array(address.node.shortText.utf8) }
    if let chosen = sightings.sighting(of: address)?.chosenName { name = chosen + Array("@".utf8) + name }
    return name
  }
}

extension LocalPeer {
  /// 2 hops, verified
  var described: String { "\(hops) hop\(hops == 1 ? "" : "s"), \(isVerified ? "verified" : "not verified")" }
}

/// What a change of a member means to people; nil when there is nothing to say. `lacking`: lines that wait for it.
func memberNotice(
  _ name: [UInt8], _ address: MemberAddress, _ peer: LocalPeer, from before: MemberState?, to state: MemberState,
  lacking: Int
) -> [UInt8]? {
  switch state {
  case .connecting, .rejected: return nil
  case .connected:
    switch before {
    case .away: return name + Array(" is back".utf8)
    case .paused: return name + Array(" reads again".utf8)
    case .connected: return name + Array(" was met anew: what it sent meanwhile may be missing".utf8)
    case nil, .connecting, .rejected, .left, .ejected:
      return name + Array(" is here (\(address.node.shortText), \(peer.described))".utf8)
    }
  case .paused: return name + Array("'s application does not read".utf8)
  case .away:
    let lines = lacking == 0 ? "" : lacking == 1 ? ": 1 line waits for it" : ": \(lacking) lines wait for it"
    return name + Array(" is out of reach\(lines)".utf8)
  case .left(let reason, let text):
    switch reason {
    case .wanted: return name + Array(" left".utf8) + (text.isEmpty ? [] : Array(": ".utf8) + text)
    case .crashed: return name + Array(" is gone: its application ended without a word".utf8)
    case .full: return name + Array(" is gone: merged sessions have too many members".utf8)
    }
  case .ejected(let text):
    return name + Array(" was ejected".utf8) + (text.isEmpty ? [] : Array(": ".utf8) + text)
  }
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
func sessionEndText(_ end: SessionEnd) -> String {
  switch end {
  case .left: "the session was left"
  case .ejected(let text): text.isEmpty ? "you were ejected" : "you were ejected: \(String(decoding: text, as: UTF8.self))"
  case .full: "the session is over for you: merged sessions have too many members"
  case .isSame: "the session is over: it is the same as another one"
  }
}
