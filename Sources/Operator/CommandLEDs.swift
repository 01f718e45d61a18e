import CSystem
import CommandLine
import Relay
import Text

/// `causeway leds`
public func commandLEDs(_ words: CommandWords) -> CInt {
  var path: String?
  var action: Action?
  CommandParser.parse(
    "causeway leds", words,
    help: """
      List the patterns of the status light. With --ended, show on it that the daemon has ended: an LED is dark if \
      SERVICE_RESULT, which systemd sets, is “success”, and blinks as for a fault otherwise; a light at a GPIO line is \
      dark. With --prepare, let the owner of the runtime directory drive the LED, for a daemon that does not run as \
      root.
      """,
    options: [
      configOption,
      CommandOption(
        name: "ended", key: Action.end.rawValue, argument: nil, help: "The daemon has ended; for ExecStopPost="),
      CommandOption(
        name: "prepare", key: Action.prepare.rawValue, argument: nil,
        help: "The daemon is about to start; for ExecStartPre="),
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
      text.add(meaning)
      text.add("\n")
    }
    Output.put(text)
    return ExitCode.done
  }
  guard let configuration = loadConfiguration(path) else { return ExitCode.usage }
  let failure: String?
  switch action {
  case .prepare: failure = prepareStatusLED(configuration)
  case .end:
    let result = getenv("SERVICE_RESULT")
    failure = showEndOfDaemon(configuration, wasStopped: result.map { strcmp($0, "success") == 0 } ?? false)
  }
  guard let failure else { return ExitCode.done }
  printError(failure)
  return ExitCode.failed
}

private enum Action: CInt {
  case end = 0x65
  case prepare = 0x70
}

private let patterns: [(StaticString, StaticString)] = [
  ("lit", "working, with a link to a neighbour"),
  ("a short flash now and then", "working, without a neighbour"),
  ("slow blinking", "the button was pressed: a device may join"),
  ("fast blinking", "a fault (see “causeway status”), or a crash"),
  ("dark", "stopped, no power, or at a GPIO line: crashed"),
]
