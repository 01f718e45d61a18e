import CommandLine
import LocalAPI
import Session
import Terminal
import Text

/// Shows a session in one of three ways. `typing`: above the input line of a terminal. `plain`: as lines on standard
/// output, with notices on standard error. `json`: as JSON lines on standard output.
final class ChatView {
  enum Kind {
    case typing(TypingScreen)
    case plain
    case json
  }

  let kind: Kind
  private let console: any Console

  init(_ kind: Kind, _ console: any Console) {
    self.kind = kind
    self.console = console
  }

  var isJSON: Bool { if case .json = kind { true } else { false } }

  /// Prints this node's name and id as JSON.
  func introduce(_ connection: any LocalConnection) {
    guard isJSON else { return }
    var line = JSONLine(event: "self")
    line.add("name", connection.name)
    line.add("id", Array(connection.node.text.utf8))
    line.put(on: console)
  }

  func message(_ name: ShownName, _ from: MemberAddress, _ text: [UInt8]) {
    if isJSON {
      var line = JSONLine(event: "message")
      line.add("name", name.text)
      line.add(from)
      line.add("text", text)
      return line.put(on: console)
    }
    var line = TextBuilder()
    line.add("<")
    line.add(name)
    line.add("> ")
    line.add(message: text)
    show(line)
  }

  /// Shows a change of a member's state.
  func member(
    _ name: ShownName, _ address: MemberAddress, _ peer: LocalPeer, from before: MemberState?, to state: MemberState,
    lacking: Int, _ lines: PeerLines
  ) {
    guard isJSON else {
      if let text = memberNotice(name, address, peer, from: before, to: state, lacking: lacking) {
        lines.write(text, .member, of: address.node, peer)
      }
      return
    }
    var line = JSONLine(event: "member")
    line.add("name", name.text)
    line.add(address)
    addState(state, to: &line)
    line.add("hops", UInt64(peer.hops))
    line.add("verified", peer.isVerified)
    line.add("waiting", UInt64(lacking))
    line.put(on: console)
  }

  /// Shows a notice for people, not a received message.
  func notice(_ text: TextBuilder) {
    switch kind {
    case .typing(let screen):
      var line = TextBuilder("-- ")
      line.add(text)
      screen.show(line, isDim: true)
    case .plain, .json: console.putError(text)
    }
  }

  private func show(_ line: TextBuilder) {
    switch kind {
    case .typing(let screen): screen.show(line)
    case .plain, .json:
      var line = line
      line.add("\n")
      console.put(line)
    }
  }

  /// Restores the terminal.
  func close() { if case .typing(let screen) = kind { screen.close() } }
}
