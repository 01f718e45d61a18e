import CommandLine
import Relay

/// `causeway run`
public func commandRun(_ words: CommandWords) -> CInt {
  var path: String?
  CommandParser.parse(
    "causeway run", words,
    help:
      """
      Run the relay until SIGTERM or SIGINT; SIGHUP reloads the configuration. Missing radios and daemons are reported, and \
      used as soon as they appear.
      """,
    options: [configOption]
  ) { _, value in
    path = value
    return nil
  }
  guard let configuration = loadConfiguration(path) else { return ExitCode.usage }
  do throws(StartError) {
    try runRelay(configuration, configurationFile: path)
    return ExitCode.done
  } catch {
    printError(error.text)
    return ExitCode.failed
  }
}
