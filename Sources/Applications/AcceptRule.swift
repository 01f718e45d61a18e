import CommandLine
import LocalAPI
import Primitives
import Text

/// Decides whose invitations are accepted. A name proves nothing, so the peer's key must be pinned on this box, unless
/// --from gives the peer's full id.
struct AcceptRule {
  static let fromKey: CInt = 0x66 << 8
  static let pinnedKey: CInt = 0x70 << 8
  static let options = [
    CommandOption(
      name: "from", key: fromKey, argument: "ID",
      help:
        "Accept only this peer: all 32 digits of its id or, if its key is pinned, its name or first digits; may be repeated"
    ),
    CommandOption(
      name: "pinned", key: pinnedKey, argument: nil,
      help:
        "Accept peers whose keys are pinned here, without a prompt; the default if standard input is not a terminal"),
  ]
  /// The maximum number of peers that --from can name.
  static let fromMax = 64

  enum Answer {
    case yes
    case no
    case ask
  }

  private var from: [[UInt8]] = []
  private var isPinned = false
  private let canAsk: Bool

  /// `canAsk`: whether a person can answer questions on the terminal.
  init(canAsk: Bool) { self.canAsk = canAsk }

  /// Parses one option as `LocalOptions.take` does.
  mutating func take(_ key: CInt, _ value: String) -> StaticString?? {
    switch key {
    case Self.pinnedKey: isPinned = true
    case Self.fromKey:
      guard !value.utf8.isEmpty, from.count < Self.fromMax else { return "at most 64 ids or names" }
      from.append(Array(value.utf8))
    default: return nil
    }
    return .some(nil)
  }

  /// Whether the user is asked about each peer on the terminal.
  var asks: Bool { from.isEmpty && !isPinned && canAsk }

  func answer(_ node: NodeID, _ peer: LocalPeer) -> Answer {
    if asks { return .ask }
    if from.isEmpty { return peer.isVerified ? .yes : .no }
    let isNamed = from.contains { word in
      let isWhole = word.count == 2 * NodeID.byteCount && node.begins(withDigits: word)
      return isWhole || peer.isVerified && (node.begins(withDigits: word) || peer.name == word)
    }
    return isNamed ? .yes : .no
  }
}
