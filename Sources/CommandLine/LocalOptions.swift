import Configuration
import LocalAPI
import Primitives

/// The options of every command that uses the local API, the daemon's socket for applications.
public struct LocalOptions {
  public static let socketKey: CInt = 0x73
  public static let configKey: CInt = 0x63
  public static let jsonKey: CInt = 0x6A
  public static let forKey: CInt = 0x66
  public static let waitKey: CInt = 0x77
  public static let nameKey: CInt = 0x6E

  public static let options = [
    configOption,
    CommandOption(
      name: "socket", key: socketKey, argument: "PATH",
      help: "The daemon's socket for applications; default api.sock in the configuration's runtime-directory"),
  ]
  public static let json = CommandOption(
    name: "json", key: jsonKey, argument: nil, help: "Print one JSON object per line (docs/operations/read-the-box.md)")
  public static let stay = CommandOption(name: "for", key: forKey, argument: "SECONDS", help: "Run for this time")
  public static let name = CommandOption(
    name: "name", key: nameKey, argument: "NAME",
    help: "The name that others see, before the box's name; also distinguishes commands that run at the same time")

  public static func wait(_ help: StaticString) -> CommandOption {
    CommandOption(name: "wait", key: waitKey, argument: "SECONDS", help: help)
  }

  /// The default of --wait: the time to wait for other nodes, in seconds.
  public static let waitSecondsDefault: UInt64 = 30
  public static let nameAccepted: StaticString = "a name of 1 to 63 bytes without control characters"
  public static let typeAccepted: StaticString = "a service type: 1 to 15 of a-z, 0-9 and single hyphens, with a letter"

  public init() {}

  private var socket: String?
  private var config: String?
  public private(set) var isJSON = false
  public private(set) var stays: UInt64?
  /// The value of --wait in seconds; nil if it is not given.
  public private(set) var waits: UInt64?
  public private(set) var name: [UInt8] = []

  /// Parses one option. Returns nil if the option belongs to another set of options. Returns `.some(nil)` if the value
  /// is accepted, and a description of the accepted values if not.
  public mutating func take(_ key: CInt, _ value: String) -> StaticString?? {
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
  public var info: [[UInt8]] { name.isEmpty ? [] : [utf8("name=") + name] }
  public var waitSeconds: UInt64 { waits ?? Self.waitSecondsDefault }

  /// The end of the time of --for, which begins now; `.never` without --for.
  public func endOfStay(from now: Instant) -> Instant { deadline(after: stays, from: now) }

  /// The path of the daemon's socket for applications.
  public func socketPath() throws(CommandError) -> String {
    if let socket { socket } else { try findConfiguration(config).localSocketPath }
  }
}

/// A service type from the command line; nil if it is invalid.
public func serviceType(_ word: String) -> [UInt8]? {
  let type = Array(word.utf8)
  return isServiceType(type.span.bytes) ? type : nil
}
