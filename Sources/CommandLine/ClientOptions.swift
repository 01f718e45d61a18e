import Configuration
import ControlSocket
import Text

/// Options of every command that uses the daemon's control socket.
public struct ClientOptions {
  public static let socketKey: CInt = 0x73
  public static let configKey: CInt = 0x63
  public static let options = [
    configOption,
    CommandOption(
      name: "socket", key: socketKey, argument: "PATH",
      help: "The daemon's control socket; default control.sock in the configuration's runtime-directory"),
  ]

  public init() {}

  public private(set) var socket: String?
  public private(set) var config: String?

  /// Parses one option. Returns false if the option is not in `options`.
  public mutating func take(_ key: CInt, _ value: String) -> Bool {
    switch key {
    case Self.socketKey: socket = value
    case Self.configKey: config = value
    default: return false
    }
    return true
  }

  /// The path of the daemon's control socket.
  public func socketPath() throws(CommandError) -> String {
    if let socket { socket } else { try findConfiguration(config).controlSocketPath }
  }

  /// Connects to the daemon.
  public func connect() throws(CommandError) -> ControlClient {
    let path = try socketPath()
    do throws(AccessError) {
      return try ControlClient(path: path)
    } catch {
      throw CommandError(saying: error.text, ExitCode.noDaemon)
    }
  }
}

extension ControlClient {
  /// Sends a request that the daemon answers with a text, and returns the text. If the daemon refuses, throws its
  /// reason.
  public func carryOut(_ request: ControlRequest) throws(CommandError) -> String {
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
