import CSystem
import Channel
import Configuration
import Diagnostics
import Messages
import Primitives
import Reactor

/// `causeway peer chat`
func commandPeerChat(_ words: CommandWords) -> CInt {
  var chat = Chat()
  CommandParser.parse(
    "causeway peer chat", words,
    help: """
      Send each line of standard input, and show what arrives as “<name> text”. Who comes and goes is told on standard \
      error.\u{0B}At the end of input it ends as soon as every line was delivered; with --wait-for or --seconds it \
      stays until those are fulfilled. Exit code 1 tells that a line was not delivered.
      """,
    options: ClientOptions.options + [
      CommandOption(
        name: "to", key: PeerOption.toKey, argument: "NAME", help: "Send to NAME alone; default: to everybody there"),
      CommandOption(name: "wait-for", key: 0x77, argument: "N", help: "Stay until N lines arrived, then end"),
      PeerOption.seconds("Stay this long; with --wait-for: at most this long, then exit with 4"),
    ]
  ) { key, value in
    if chat.options.take(key, value) { return nil }
    switch key {
    case PeerOption.toKey: chat.to = value
    case 0x77:
      guard let count = Text(value).number(in: 1...1_000_000) else { return "a number from 1 to 1000000" }
      chat.waitFor = count
    default:
      guard let seconds = PeerOption.parseSeconds(value) else { return PeerOption.secondsAccepted }
      chat.seconds = seconds
    }
    return nil
  }
  return run { () throws(CommandFailure) in try chat.run() }
}

/// One run of `causeway peer chat`.
private struct Chat {
  /// Undelivered lines; with that many no more is read from standard input.
  static let outstandingMax = 32

  var options = ClientOptions()
  var to: String?
  var waitFor: UInt64?
  var seconds: UInt64?

  private var received: UInt64 = 0
  private var outstanding: [(request: UInt32, peer: NodeID)] = []
  private var input: [UInt8] = []
  private var isInputOver = false
  private var hasFailed = false

  mutating func run() throws(CommandFailure) {
    let end = deadline(after: seconds)
    let connection = try PeerConnection(options, kinds: [MessageKind.text.rawValue, MessageKind.control.rawValue])
    var only: NodeID?
    if let to {
      only = try connection.peer(
        named: to, until: seconds == nil ? deadline(after: PeerConnection.appearSecondsDefault) : end)
    }
    while true {
      if isFulfilled { break }
      // Without a peer nothing is read from standard input.
      let mayRead = !isInputOver && outstanding.count < Self.outstandingMax && !connection.book.peers.isEmpty
      switch try connection.next(until: end, other: mayRead ? STDIN_FILENO : -1) {
      case .appeared(let peer): printError("\(describe(peer)) is here")
      case .changed: continue
      case .vanished(let peer): printError("\(peer.name) (\(peer.id.shortText)) is gone")
      case .message(let message) where message.kind == MessageKind.control.rawValue: control(message, connection)
      case .message(let message):
        guard let text = try? TextMessage(message.bytes.span.bytes) else { continue }
        received += 1
        show("<", connection.book.name(message.peer) + "> " + String(decoding: text.utf8, as: UTF8.self))
      case .completed(let request, let outcome): completed(request, outcome, connection)
      case .otherReady: readInput(connection, only)
      case .timedOut:
        if waitFor != nil || !outstanding.isEmpty {
          throw CommandFailure(
            saying:
              "the time ran out: \(received) lines arrived, \(outstanding.count) sent ones were not delivered yet",
            ExitCode.timedOut)
        }
        return try finish()
      }
    }
    try finish()
  }

  private func finish() throws(CommandFailure) {
    if hasFailed { throw CommandFailure(ExitCode.failed) }
  }

  private var isFulfilled: Bool {
    guard outstanding.isEmpty else { return false }
    if let waitFor { return received >= waitFor && (isInputOver || !isInputReady) }
    return isInputOver && seconds == nil
  }

  /// Whether standard input can be read now.
  private var isInputReady: Bool {
    var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    return poll(&input, 1, 0) > 0
  }

  private mutating func completed(_ request: UInt32, _ outcome: SendOutcome, _ connection: PeerConnection) {
    guard let index = outstanding.firstIndex(where: { $0.request == request }) else { return }
    let peer = outstanding.remove(at: index).peer
    if outcome == .delivered { return }
    hasFailed = true
    printError("not delivered to \(connection.book.name(peer)): \(outcome.text)")
  }

  /// The peer's daemon received a line, but no application there listens.
  private mutating func control(_ message: Diagnostics.ControlMessage, _ connection: PeerConnection) {
    guard let control = try? Messages.ControlMessage(message.bytes.span.bytes), control.code == .noListener,
      control.kind == MessageKind.text.rawValue
    else { return }
    hasFailed = true
    printError("\(connection.book.name(message.peer)) does not read: nobody runs “causeway peer chat” there")
  }

  private mutating func readInput(_ connection: PeerConnection, _ only: NodeID?) {
    var chunk = [UInt8](repeating: 0, count: 4096)
    let count = chunk.withUnsafeMutableBytes { read(STDIN_FILENO, $0.baseAddress, $0.count) }
    if count <= 0 {
      isInputOver = true
      if !input.isEmpty { send(input, connection, only) }
      return input.removeAll()
    }
    input += chunk[..<count]
    while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
      send(Array(input[..<end]), connection, only)
      input.removeFirst(end + 1)
    }
  }

  /// Sends one line, in several messages when it is longer than a text may be.
  private mutating func send(_ line: [UInt8], _ connection: PeerConnection, _ only: NodeID?) {
    // Decoding replaces invalid UTF-8.
    var rest = Array(String(decoding: line, as: UTF8.self).utf8)
    while !rest.isEmpty {
      var length = min(rest.count, MessageLimits.textBytesMax)
      while length < rest.count && rest[length] & 0xC0 == 0x80 { length -= 1 }
      let piece = Array(rest[..<length])
      rest.removeFirst(length)
      for peer in connection.book.peers where only == nil || peer.id == only { sendPiece(piece, connection, peer.id) }
      if let only, connection.book.peer(only) == nil { sendPiece(piece, connection, only) }
    }
  }

  private mutating func sendPiece(_ piece: [UInt8], _ connection: PeerConnection, _ peer: NodeID) {
    let request = connection.send(MessageKind.text.rawValue, piece, lane: Lane.interactive.rawValue, to: peer)
    outstanding.append((request, peer))
  }
}
