import CommandLine
import DaemonClient
import LocalAPI
import Primitives
import Session
import Terminal
import Text

/// The receiving end of one run of `causeway pipe`: accepts an invitation, and writes its first stream to standard
/// output.
final class PipeListener {
  private let connection: any LocalConnection
  private let console: any Console
  private let options: LocalOptions
  private let rule: AcceptRule
  private let type: [UInt8]
  private let patience: Instant
  /// The stream that is written to standard output; nil until it was accepted.
  private var stream: UInt32?
  private var window = StreamWindow()

  init(
    _ connection: any LocalConnection, _ console: any Console, _ options: LocalOptions, _ rule: AcceptRule,
    _ type: [UInt8]
  ) {
    self.connection = connection
    self.console = console
    self.options = options
    self.rule = rule
    self.type = type
    patience = deadline(after: options.waits, from: console.now)
  }

  /// Returns when a stream has arrived completely.
  func run() throws(CommandError) {
    let session = try make(.open(type: type, pipeRules), connection)
    let lines = PeerLines(console) { [console] text in console.putError(text) }
    let prompt = InvitationPrompt(connection, console, session, rule, type, lines) {
      invitation, peer, isAccepted in
      if !isAccepted { lines.write(answerText(invitation, peer, false), .declined, of: invitation.from.node, peer) }
    }
    defer { prompt.close() }
    try make(.advertise(type: type, info: options.info), connection)
    while true {
      prompt.update()
      let watch = DaemonConnection.Watch(
        input: prompt.descriptor, signals: console.signals, output: console.output)
      let end = stream == nil ? patience : .never
      let deadline = min(end, lines.nextDeadline, prompt.deadline)
      switch try wake(connection, console, until: deadline, watch) {
      case .input: prompt.readInput()
      case .signal:
        reset()
        throw CommandError(saying: "interrupted before the end of a stream", ExitCode.cut)
      case .timedOut:
        if console.now >= end { throw CommandError(saying: "no stream arrived in time", ExitCode.timedOut) }
        lines.printOmittedCounts()
      case .outputClosed:
        reset()
        throw CommandError(ExitCode.failed)
      case .event(.invited(_, let invitation, _, let peer)): prompt.invited(invitation, peer)
      case .event(.invitationEnded(_, let received, _)): prompt.ended(received)
      case .event(let event):
        guard try handle(event) else { continue }
        _ = try? connection.carryOut(.leave(session: session, text: []))
        return
      }
    }
  }

  /// Cuts the stream, if there is one.
  private func reset() { if let stream { _ = try? connection.carryOut(.reset(stream: stream)) } }

  /// Handles an event of the stream or the session. Returns whether the stream has ended normally.
  private func handle(_ event: LocalEvent) throws(CommandError) -> Bool {
    switch event {
    case .stream(_, let received, _, _):
      let isWanted = stream == nil
      let limit = isWanted ? window.limit : 0
      let number = connection.ask(.take(stream: received, isWanted: isWanted, limit: limit))
      if isWanted { stream = number }
    case .streamBytes(let number, let bytes) where number == stream: try write(bytes, number)
    case .streamEnded(let number, _, let end) where number == stream:
      try checkEnd(end)
      return true
    case .done(let number, let outcome, _) where number == stream:
      // The request to accept the stream failed, because the peer has already cut the stream.
      if outcome != .done { throw CommandError(saying: "the peer cut the stream", ExitCode.cut) }
    case .ended(_, let end, _): throw CommandError(saying: sessionEndText(end), ExitCode.cut)
    case .done, .doneAt, .welcome, .services, .allTold, .invited, .invitationEnded, .identified, .member, .message,
      .sent, .room, .streamBytes, .streamRoom, .streamEnded, .decisionWanted:
      break
    }
    return false
  }

  private func write(_ bytes: [UInt8], _ stream: UInt32) throws(CommandError) {
    var text = TextBuilder()
    for byte in bytes { text.add(byte: byte) }
    console.put(text)
    if console.hasFailed {
      reset()
      throw CommandError(ExitCode.failed)
    }
    window.took(bytes.count, stream, connection)
  }
}
