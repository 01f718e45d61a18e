import CSystem
import Configuration
import DaemonClient
import LocalAPI
import Primitives
import Reactor
import Session
import Terminal

/// The options of every command that uses the local API, the daemon's socket for applications.
struct LocalOptions {
  static let socketKey: CInt = 0x73
  static let configKey: CInt = 0x63
  static let jsonKey: CInt = 0x6A
  static let forKey: CInt = 0x66
  static let waitKey: CInt = 0x77
  static let nameKey: CInt = 0x6E

  static let options = [
    configOption,
    CommandOption(
      name: "socket", key: socketKey, argument: "PATH",
      help: "The daemon's socket for applications; default api.sock in the configuration's runtime-directory"),
  ]
  static let json = CommandOption(
    name: "json", key: jsonKey, argument: nil, help: "Print one JSON object per line (docs/operations/read-the-box.md)")
  static let stay = CommandOption(name: "for", key: forKey, argument: "SECONDS", help: "Run for this time")
  static let name = CommandOption(
    name: "name", key: nameKey, argument: "NAME",
    help: "The name that others see, before the box's name; also distinguishes commands that run at the same time")

  static func wait(_ help: StaticString) -> CommandOption {
    CommandOption(name: "wait", key: waitKey, argument: "SECONDS", help: help)
  }

  /// The default of --wait: the time to wait for other nodes, in seconds.
  static let waitSecondsDefault: UInt64 = 30
  static let nameAccepted: StaticString = "a name of 1 to 63 bytes without control characters"
  static let typeAccepted: StaticString = "a service type: 1 to 15 of a-z, 0-9 and single hyphens, with a letter"

  private var socket: String?
  private var config: String?
  private(set) var isJSON = false
  private(set) var stays: UInt64?
  /// The value of --wait in seconds; nil if it is not given.
  private(set) var waits: UInt64?
  private(set) var name: [UInt8] = []

  /// Parses one option. Returns nil if the option belongs to another set of options. Returns `.some(nil)` if the value
  /// is accepted, and a description of the accepted values if not.
  mutating func take(_ key: CInt, _ value: String) -> StaticString?? {
    switch key {
    case Self.socketKey: socket = value
    case Self.configKey: config = value
    case Self.jsonKey: isJSON = true
    case Self.forKey:
      guard let seconds = parseSeconds(value) else { return secondsAccepted }
      stays = seconds
    case Self.waitKey:
      guard let seconds = parseSeconds(value) else { return secondsAccepted }
      waits = seconds
    case Self.nameKey:
      name = Array(value.utf8)
      // The name must fit into two fields: the discovery pair “name=”, and the application's name in its hello.
      guard (1...LocalLimits.instanceBytesMax).contains(name.count), isPlainText(name.span.bytes) else {
        return Self.nameAccepted
      }
    default: return nil
    }
    return .some(nil)
  }

  /// The discovery info of the service that the command advertises.
  var info: [[UInt8]] { name.isEmpty ? [] : [utf8("name=") + name] }
  var waitSeconds: UInt64 { waits ?? Self.waitSecondsDefault }
  var endOfStay: Instant { deadline(after: stays) }

  /// Connects to the daemon, under the name given by --name or else under the command's name. If the connection fails,
  /// prints the reason and throws the exit code.
  func connect(as command: StaticString) throws(CommandError) -> DaemonConnection { try connect(in: command.bytes) }

  /// Connects like `connect(as:)`, for a command that computes the name of its connection.
  func connect(in instance: [UInt8]) throws(CommandError) -> DaemonConnection {
    let path = try socketPath
    return try attempt { () throws(ConnectionError) in
      try DaemonConnection(path: path, name: name.isEmpty ? instance : name)
    }
  }

  private var socketPath: String {
    get throws(CommandError) { if let socket { socket } else { try findConfiguration(config).localSocketPath } }
  }

  /// Tries to connect every 0.5 s, until a lost daemon answers again. Returns nil after the deadline, or when a signal
  /// arrives.
  func connectAgain(in instance: [UInt8], until deadline: Instant, _ signals: Signals) -> DaemonConnection? {
    guard let path = try? socketPath else { return nil }
    while monotonicNow() < deadline {
      var polled = pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0)
      if poll(&polled, 1, Self.againMilliseconds) > 0 { return nil }
      if let connection = try? DaemonConnection(path: path, name: name.isEmpty ? instance : name) { return connection }
    }
    return nil
  }

  private static let againMilliseconds: CInt = 500
}

/// Runs `body`. If it throws a connection error, prints the error and throws the exit code.
func attempt<Result>(_ body: () throws(ConnectionError) -> Result) throws(CommandError) -> Result {
  do throws(ConnectionError) {
    return try body()
  } catch {
    throw CommandError(saying: error.text, error.isNoDaemon ? ExitCode.noDaemon : ExitCode.failed)
  }
}

extension DaemonConnection {
  /// Sends a request. Returns the number and the endpoint of the object that the request creates, if any. If the
  /// request fails, prints the reason and throws the exit code.
  @discardableResult
  func make(_ body: LocalRequest.Body) throws(CommandError) -> (number: UInt32, endpoint: UInt32) {
    let answer = try attempt { () throws(ConnectionError) in try carryOut(body) }
    if answer.outcome == .done { return (answer.number, answer.endpoint) }
    if answer.outcome == .inUse {
      throw CommandError(saying: "another of your commands already does this; give one of the two a --name")
    }
    throw CommandError(
      saying: answer.text.isEmpty ? "the daemon refused the request" : String(decoding: answer.text, as: UTF8.self))
  }

  /// Waits for an event of the daemon, for input, a signal or the deadline.
  func wake(until deadline: Instant, _ watch: Watch = Watch()) throws(CommandError) -> Wake {
    if Output.hasFailed { throw CommandError(ExitCode.failed) }
    return try attempt { () throws(ConnectionError) in try next(until: deadline, watching: watch) }
  }
}

/// A service type from the command line; nil if it is invalid.
func serviceType(_ word: String) -> [UInt8]? {
  let type = Array(word.utf8)
  return isServiceType(type.span.bytes) ? type : nil
}

extension StaticString {
  var bytes: [UInt8] { withUTF8Buffer { [UInt8]($0) } }
}

/// The bytes of a literal.
func utf8(_ text: StaticString) -> [UInt8] { text.bytes }
