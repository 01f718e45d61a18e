import CSystem
import DaemonClient
import LocalAPI
import Primitives
import Reactor
import Session
import Terminal
import Text

/// `causeway pipe`
func commandPipe(_ words: CommandWords) -> CInt {
  var options = LocalOptions()
  var rule = AcceptRule()
  var arguments: [String] = []
  var isListening = false
  CommandParser.parse(
    "causeway pipe", words, arguments: "PEER [TYPE]\n--listen [TYPE]", count: 0...2,
    help: """
      Send standard input to PEER as one stream of bytes; “causeway pipe --listen” there writes it to standard output. \
      PEER is a name, or the first 4 or more digits of an id; TYPE is a service type, default “pipe”.\u{0B}Both ends \
      exit with 0 only if all bytes were written at PEER, and with 5 if the stream was cut: the bytes received are \
      then a prefix. The sender exits with 6 if it was refused, and with 4 if PEER did not appear in time. The \
      listener exits after its first stream.
      """,
    options: LocalOptions.options + [
      CommandOption(name: "listen", key: pipeListenKey, argument: nil, help: "Receive a stream and write it"),
      LocalOptions.name,
      LocalOptions.wait(
        "How long to wait for PEER and its answer, default 30; with --listen, for a stream, default unlimited"),
    ] + AcceptRule.options
  ) { key, value in
    if let accepted = options.take(key, value) { return accepted }
    if let accepted = rule.take(key, value) { return accepted }
    if key == pipeListenKey { isListening = true } else { arguments.append(value) }
    return nil
  }
  return run { () throws(CommandError) in
    guard arguments.count <= (isListening ? 1 : 2) else {
      throw CommandError(saying: "too many arguments; see “causeway pipe --help”", ExitCode.usage)
    }
    if !isListening && arguments.isEmpty {
      throw CommandError(saying: "name a PEER, or --listen; see “causeway pipe --help”", ExitCode.usage)
    }
    let word = arguments.count == (isListening ? 1 : 2) ? arguments[arguments.count - 1] : "pipe"
    guard let type = serviceType(word) else {
      throw CommandError(
        saying: "“\(shown(word))” is not accepted; expected \(LocalOptions.typeAccepted)", ExitCode.usage)
    }
    if isListening { try listen(options, rule, type) } else { try send(options, arguments[0], type) }
  }
}

private let pipeListenKey: CInt = 0x6C
/// The rules of the session: exactly two members, so that nobody else can join.
private let pipeRules = SessionRules(onlyFounderAdmits: true, membersMax: SessionLimits.membersMin)

/// Throws if a stream ended in any way other than normally. The exit code depends on the way it ended.
private func checkEnd(_ end: StreamEnd) throws(CommandError) {
  switch end {
  case .finished: return
  case .reset(.refused): throw CommandError(saying: "the peer refused the stream", ExitCode.refused)
  case .reset(.cancelled): throw CommandError(saying: "the peer cut the stream", ExitCode.cut)
  case .reset(.tooMany): throw CommandError(saying: "the peer has no place for another stream", ExitCode.refused)
  case .reset(.broken):
    throw CommandError(saying: "the stream was cut: the protocol was violated", ExitCode.cut)
  case .lost: throw CommandError(saying: "the stream is lost: the peer is out of reach or has left", ExitCode.cut)
  }
}

// MARK: Sending end

/// The state of the sending end.
private enum PipeStep {
  /// The peer has not been found yet.
  case seeking
  case inviting(MemberAddress)
  case writing
}

private func send(_ options: LocalOptions, _ word: String, _ type: [UInt8]) throws(CommandError) {
  let connection = try options.connect(as: "pipe")
  let signals = Signals([SIGINT, SIGTERM, SIGHUP])
  let session = try connection.make(.open(type: type, pipeRules)).number
  try connection.make(.browse(type: type))
  let patience = deadline(after: options.waitSeconds)
  var sightings = Sightings()
  var search = PeerSearch(Array(word.utf8), isWaiting: options.waits != nil)
  var step = PipeStep.seeking
  var stream: UInt32 = 0
  var limit: UInt64 = 0, written: UInt64 = 0
  var isInputOver = false
  while true {
    let room = limit - written
    let mayRead = stream != 0 && !isInputOver && room > 0 && !connection.isBehind
    let watch = DaemonConnection.Watch(input: mayRead ? STDIN_FILENO : -1, signals: signals.descriptor)
    var until = patience
    if case .writing = step { until = .never }
    switch try connection.wake(until: until, watch) {
    case .input:
      let bytes = try readInput(atMost: Int(min(room, UInt64(LocalLimits.streamBytesMax))))
      written += UInt64(bytes.count)
      if bytes.isEmpty {
        isInputOver = true
        connection.ask(.finish(stream: stream))
      } else {
        connection.write(stream, bytes.span.bytes)
      }
      continue
    case .signal:
      if stream != 0 { _ = try? connection.carryOut(.reset(stream: stream)) }
      throw CommandError(saying: "interrupted: the stream was cut", ExitCode.cut)
    case .timedOut:
      var text = " did not appear in time; run “causeway pipe --listen” there" as StaticString
      if case .inviting = step { text = " did not answer in time" }
      throw CommandError(saying: TextBuilder(quoting: search.word, text), ExitCode.timedOut)
    case .outputClosed: continue
    case .event(.services(_, let place, let node, let peer, let services)):
      _ = sightings.hear(place: place, node, peer, services)
    case .event(.allTold): search.isAllTold = true
    case .event(.invitationEnded(_, _, let outcome)):
      try check(outcome)
      continue
    case .event(.member(_, let address, .connected, _)):
      guard case .inviting(address) = step else { continue }
      stream = try connection.make(.stream(session: session, to: address, name: Array("pipe".utf8))).number
      step = .writing
      continue
    case .event(.streamRoom(stream, let now)):
      limit = max(limit, now)
      continue
    case .event(.streamEnded(stream, _, let end)):
      try checkEnd(end)
      _ = try? connection.carryOut(.leave(session: session, text: []))
      return
    case .event(.ended(_, let end, _)): throw CommandError(saying: sessionEndText(end), ExitCode.cut)
    case .event: continue
    }
    guard case .seeking = step else { continue }
    switch search.look(in: sightings.all) {
    case .nothing: continue
    case .hint(let text): printError(text)
    case .failed(let text): throw CommandError(saying: text)
    case .found(let peer):
      // If several applications on the peer's box listen, the first one found is invited.
      guard let address = sightings.all.first(where: { peer.includes($0.address) })?.address else { continue }
      step = .inviting(address)
      let milliseconds = UInt32(clamping: max((patience - monotonicNow()).milliseconds, 1))
      try connection.make(.invite(session: session, address, milliseconds: milliseconds, context: []))
    }
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

/// Reads standard input once. Returns an empty array at the end of the input.
private func readInput(atMost most: Int) throws(CommandError) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: most)
  while true {
    let count = bytes.withUnsafeMutableBytes { read(STDIN_FILENO, $0.baseAddress, $0.count) }
    if count >= 0 {
      bytes.removeLast(most - count)
      return bytes
    }
    if csystem_errno() == EINTR { continue }
    throw CommandError(saying: "standard input: \(SystemError.last.text)")
  }
}

// MARK: Receiving end

private func listen(_ options: LocalOptions, _ rule: AcceptRule, _ type: [UInt8]) throws(CommandError) {
  let connection = try options.connect(as: "pipe")
  let signals = Signals([SIGINT, SIGTERM, SIGHUP])
  let session = try connection.make(.open(type: type, pipeRules)).number
  let lines = PeerLines { printError($0) }
  let doorkeeper = InvitationPrompt(connection, session, rule, type, lines) { invitation, peer, isAccepted in
    if !isAccepted { lines.tell(answerText(invitation, peer, false), .declined, of: invitation.from.node, peer) }
  }
  try connection.make(.advertise(type: type, info: options.info))
  let patience = deadline(after: options.waits)
  var stream: UInt32 = 0
  var window = StreamWindow()
  while true {
    doorkeeper.checkTime()
    let watch = DaemonConnection.Watch(
      input: doorkeeper.descriptor, signals: signals.descriptor, output: STDOUT_FILENO)
    let end = stream == 0 ? patience : .never
    switch try connection.wake(until: min(end, lines.nextDeadline, doorkeeper.deadline), watch) {
    case .input: doorkeeper.readInput()
    case .signal:
      if stream != 0 { _ = try? connection.carryOut(.reset(stream: stream)) }
      throw CommandError(saying: "interrupted before the end of a stream", ExitCode.cut)
    case .timedOut:
      if monotonicNow() >= end { throw CommandError(saying: "no stream arrived in time", ExitCode.timedOut) }
      lines.tellCounts()
    case .outputClosed:
      if stream != 0 { _ = try? connection.carryOut(.reset(stream: stream)) }
      throw CommandError(ExitCode.failed)
    case .event(.invited(_, let invitation, _, let peer)): doorkeeper.invited(invitation, peer)
    case .event(.invitationEnded(_, let received, _)): doorkeeper.ended(received)
    case .event(.stream(_, let received, _, _)):
      guard stream == 0 else {
        connection.ask(.take(stream: received, isWanted: false, limit: 0))
        continue
      }
      stream = connection.ask(.take(stream: received, isWanted: true, limit: window.limit))
    case .event(.streamBytes(stream, let bytes)):
      var text = TextBuilder()
      for byte in bytes { text.add(byte: byte) }
      Output.put(text)
      if Output.hasFailed {
        _ = try? connection.carryOut(.reset(stream: stream))
        throw CommandError(ExitCode.failed)
      }
      window.took(bytes.count, stream, connection)
    case .event(.streamEnded(stream, _, let end)):
      try checkEnd(end)
      _ = try? connection.carryOut(.leave(session: session, text: []))
      return
    case .event(.done(stream, let outcome, _)):
      // The request to accept the stream failed, because the peer has already cut the stream.
      if outcome != .done { throw CommandError(saying: "the peer cut the stream", ExitCode.cut) }
    case .event(.ended(_, let end, _)): throw CommandError(saying: sessionEndText(end), ExitCode.cut)
    case .event: continue
    }
  }
}
