import CSystem
import Configuration
import ControlSocket
import Text

/// Options of every command that uses the daemon's control socket.
struct ClientOptions {
  static let socketKey: CInt = 0x73
  static let configKey: CInt = 0x63
  static let options = [
    configOption,
    CommandOption(
      name: "socket", key: socketKey, argument: "PATH",
      help: "The daemon's control socket; default control.sock in the configuration's runtime-directory"),
  ]

  private(set) var socket: String?
  private(set) var config: String?

  /// Parses one option. Returns false if the option is not in `options`.
  mutating func take(_ key: CInt, _ value: String) -> Bool {
    switch key {
    case Self.socketKey: socket = value
    case Self.configKey: config = value
    default: return false
    }
    return true
  }

  /// The path of the daemon's control socket.
  func socketPath() throws(CommandError) -> String {
    if let socket { socket } else { try findConfiguration(config).controlSocketPath }
  }

  /// Connects to the daemon. If the connection fails, prints the reason and throws the exit code.
  func connect() throws(CommandError) -> ControlClient {
    let path = try socketPath()
    do throws(DiagnosticsError) {
      return try ControlClient(path: path)
    } catch {
      printError(error.text)
      throw CommandError(ExitCode.noDaemon)
    }
  }
}

extension ControlClient {
  /// Sends a request that the daemon answers with a text, and returns the text. If the daemon refuses, prints its
  /// reason and throws.
  func carryOut(_ request: ControlRequest) throws(CommandError) -> String {
    send(request)
    while true {
      switch next(milliseconds: 10_000) {
      case .event(.answer(let isDone, let text)):
        if !isDone { throw CommandError(saying: text) }
        return text
      case .event: continue
      case .closed(let reason): throw CommandError(saying: reason)
      case .timedOut: throw CommandError(saying: "the daemon did not answer for 10 s; see “causeway log”")
      }
    }
  }
}

/// A failure that ends a command with an exit code. The reason has already been printed.
struct CommandError: Error {
  let code: CInt
  init(_ code: CInt) { self.code = code }

  /// Prints `text`, the reason of the failure, on standard error.
  init(saying text: String, _ code: CInt = ExitCode.failed) {
    printError(text)
    self.code = code
  }

  init(saying text: TextBuilder, _ code: CInt = ExitCode.failed) {
    printError(text)
    self.code = code
  }
}

/// Runs the body of a command. Returns the exit code.
func run(_ body: () throws(CommandError) -> Void) -> CInt {
  do throws(CommandError) {
    try body()
    return ExitCode.done
  } catch {
    return error.code
  }
}
