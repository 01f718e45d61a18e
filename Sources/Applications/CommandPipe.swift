import CSystem
import CommandLine
import DaemonClient
import Text
import Session

/// `causeway pipe`
public func commandPipe(_ words: CommandWords) -> CInt {
  var options = LocalOptions()
  var rule = AcceptRule(canAsk: ProcessConsole.canAsk)
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
    let connection = try options.connect(as: "pipe")
    let console = ProcessConsole([SIGINT, SIGTERM, SIGHUP])
    if isListening {
      try PipeListener(connection, console, options, rule, type).run()
    } else {
      try PipeSender(connection, console, options, arguments[0], type).run()
    }
  }
}

private let pipeListenKey: CInt = 0x6C
/// The rules of the session: exactly two members, so that nobody else can join.
let pipeRules = SessionRules(onlyFounderAdmits: true, membersMax: SessionLimits.membersMin)

/// Throws if a stream ended in any way other than normally. The exit code depends on the way it ended.
func checkEnd(_ end: StreamEnd) throws(CommandError) {
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
