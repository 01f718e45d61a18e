import CSystem
import Configuration
import Diagnostics
import Reactor
import Relay

/// `causeway leds`
func commandLEDs(_ words: CommandWords) -> CInt {
  var path: String?
  var action: Action?
  CommandParser.parse(
    "causeway leds", words,
    help: """
      Say what the status LED shows when. With --ended, show the end of the daemon on it: dark when SERVICE_RESULT is \
      “success”, which systemd sets, and the blinking of a fault otherwise. With --prepare, let the owner of the runtime \
      directory drive it, when the daemon does not run as root.
      """,
    options: [
      configOption,
      CommandOption(
        name: "ended", key: Action.end.rawValue, argument: nil, help: "The daemon has ended; for ExecStopPost="),
      CommandOption(
        name: "prepare", key: Action.prepare.rawValue, argument: nil, help: "The daemon will start; for ExecStartPre="),
    ]
  ) { key, value in
    if let chosen = Action(rawValue: key) { action = chosen } else { path = value }
    return nil
  }
  guard let action else {
    var text = TextBuilder()
    for (pattern, meaning) in patterns {
      let start = text.bytes.count
      text.add(pattern)
      text.pad(from: start, to: 30)
      text.add("\(meaning)\n")
    }
    Output.put(text)
    return ExitCode.done
  }
  guard let configuration = loadConfiguration(path) else { return ExitCode.usage }
  do throws(SystemError) {
    switch action {
    case .prepare: try prepareStatusLED(configuration)
    case .end:
      let result = getenv("SERVICE_RESULT")
      try showEndOfDaemon(configuration, wasStopped: result.map { strcmp($0, "success") == 0 } ?? false)
    }
    return ExitCode.done
  } catch {
    printError("\(configuration.board.statusLED): \(error.text)")
    return ExitCode.failed
  }
}

private enum Action: CInt {
  case end = 0x65
  case prepare = 0x70
}

private let patterns: [(StaticString, StaticString)] = [
  ("lit", "all is well: a neighbour is linked"),
  ("a short flash every 2 s", "all is well, and nobody is there"),
  ("fast blinking", "a fault: see “causeway status”, or the daemon died"),
  ("dark", "the daemon was stopped, or the box has no power"),
]
