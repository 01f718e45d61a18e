import CommandLine
import DaemonClient
import Text
import LocalAPI
import Primitives
import Reactor
import Session

/// The sending end of one run of `causeway pipe`: finds the peer, invites it, and writes standard input into a stream.
final class PipeSender {
  private enum Step {
    /// The peer has not been found yet.
    case seeking
    case inviting(MemberAddress)
    case writing(Writing)
  }

  /// A stream that is being written.
  private struct Writing {
    let stream: UInt32
    var written: UInt64 = 0
    /// The number of bytes that the daemon allows to be written, since the stream was opened.
    var limit: UInt64 = 0
    /// Whether all input was written, and only the end of the stream is awaited.
    var isInputOver = false

    /// The number of bytes that can be written now.
    var room: UInt64 { isInputOver ? 0 : limit - written }
  }

  private let connection: any LocalConnection
  private let console: any Console
  private let type: [UInt8]
  private let patience: Instant
  private var search: PeerSearch
  private var sightings = Sightings()
  private var session: UInt32 = 0
  private var step = Step.seeking

  /// `word`: the peer, as the user named it.
  init(
    _ connection: any LocalConnection, _ console: any Console, _ options: LocalOptions, _ word: String, _ type: [UInt8]
  ) {
    self.connection = connection
    self.console = console
    self.type = type
    patience = deadline(after: options.waitSeconds, from: console.now)
    search = PeerSearch(Array(word.utf8), isWaiting: options.waits != nil)
  }

  /// Returns when the peer has confirmed all bytes.
  func run() throws(CommandError) {
    session = try make(.open(type: type, pipeRules), connection)
    try make(.browse(type: type), connection)
    while true {
      let watch = DaemonConnection.Watch(input: mayRead ? console.input : -1, signals: console.signals)
      switch try wake(connection, console, until: stepEnd, watch) {
      case .input: try readInput()
      case .signal:
        if case .writing(let writing) = step { _ = try? connection.carryOut(.reset(stream: writing.stream)) }
        throw CommandError(saying: "interrupted: the stream was cut", ExitCode.cut)
      case .timedOut: throw CommandError(saying: TextBuilder(quoting: search.word, missing), ExitCode.timedOut)
      case .outputClosed: continue
      case .event(let event):
        if try handle(event) { return leave() }
      }
    }
  }

  private func leave() { _ = try? connection.carryOut(.leave(session: session, text: [])) }

  private var mayRead: Bool {
    if case .writing(let writing) = step { writing.room > 0 && !connection.isBehind } else { false }
  }

  private var stepEnd: Instant { if case .writing = step { .never } else { patience } }

  private var missing: StaticString {
    switch step {
    case .inviting: " did not answer in time"
    case .seeking, .writing: " did not appear in time; run “causeway pipe --listen” there"
    }
  }

  /// Handles an event. Returns whether the stream has ended normally.
  private func handle(_ event: LocalEvent) throws(CommandError) -> Bool {
    switch event {
    case .services(_, let reference, let node, let peer, let services):
      _ = sightings.update(reference: reference, node, peer, services)
      try seek()
    case .allTold:
      search.isAllTold = true
      try seek()
    case .invitationEnded(_, _, let outcome): try check(outcome)
    case .member(_, let address, .connected, _):
      guard case .inviting(address) = step else { return false }
      let stream = try make(.stream(session: session, to: address, name: Array("pipe".utf8)), connection)
      step = .writing(Writing(stream: stream))
    case .streamRoom(let stream, let limit):
      guard case .writing(var writing) = step, writing.stream == stream else { return false }
      writing.limit = max(writing.limit, limit)
      step = .writing(writing)
    case .streamEnded(let stream, _, let end):
      guard case .writing(let writing) = step, writing.stream == stream else { return false }
      try checkEnd(end)
      return true
    case .ended(_, let end, _): throw CommandError(saying: sessionEndText(end), ExitCode.cut)
    case .done, .doneAt, .welcome, .invited, .identified, .member, .message, .sent, .room, .stream, .streamBytes,
      .decisionWanted:
      break
    }
    return false
  }

  /// Invites the peer when it has appeared.
  private func seek() throws(CommandError) {
    guard case .seeking = step else { return }
    switch search.look(in: sightings.all) {
    case .nothing: return
    case .hint(let text): console.putError(text)
    case .failed(let text): throw CommandError(saying: text)
    case .found(let peer):
      // If several applications on the peer's box listen, the first one found is invited.
      guard let address = sightings.all.first(where: { peer.includes($0.address) })?.address else { return }
      step = .inviting(address)
      let milliseconds = UInt32(clamping: max((patience - console.now).milliseconds, 1))
      try make(.invite(session: session, address, milliseconds: milliseconds, context: []), connection)
    }
  }

  /// Reads standard input once, and writes it into the stream.
  private func readInput() throws(CommandError) {
    guard case .writing(var writing) = step else { return }
    switch console.read(atMost: Int(min(writing.room, UInt64(LocalLimits.streamBytesMax)))) {
    case .bytes(let bytes):
      writing.written += UInt64(bytes.count)
      connection.write(writing.stream, bytes.span.bytes)
    case .nothing: return
    case .end:
      writing.isInputOver = true
      connection.ask(.finish(stream: writing.stream))
    case .failed(let error): throw CommandError(saying: "standard input: \(error.text)")
    }
    step = .writing(writing)
  }
}

private func check(_ outcome: InvitationOutcome) throws(CommandError) {
  switch outcome {
  case .connected: return
  case .declined(let text):
    var line = TextBuilder("the peer declined")
    line.add(words: text)
    throw CommandError(saying: line, ExitCode.refused)
  case .timedOut: throw CommandError(saying: "the peer did not answer in time", ExitCode.timedOut)
  case .incompatible:
    throw CommandError(
      saying: "the peer does not run “causeway pipe --listen” (incompatible session rules)", ExitCode.refused)
  case .full, .busy: throw CommandError(saying: "the peer is busy", ExitCode.refused)
  case .cancelled, .noService, .sessionEnded:
    throw CommandError(saying: "the peer is no longer available")
  }
}
