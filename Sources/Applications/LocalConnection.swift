import CommandLine
import DaemonClient
import LocalAPI
import Primitives

/// The connection of a command to the daemon's local API: `DaemonConnection`, or the script of a test.
public protocol LocalConnection: AnyObject {
  /// The id of the daemon's node.
  var node: NodeID { get }
  /// The display name of the daemon's node.
  var name: [UInt8] { get }
  var terms: LocalTerms { get }
  /// Whether many requests wait to be read by the daemon. The command must not read more input while this is true.
  var isBehind: Bool { get }
  /// The number of the request that the next `ask` sends.
  var nextNumber: UInt32 { get }

  /// Sends a request. Returns its number, which also identifies the answer and the created object.
  @discardableResult func ask(_ body: LocalRequest.Body) -> UInt32
  /// Sends a request that has no answer.
  func post(_ body: LocalRequest.Body)
  /// Sends bytes of a stream. The caller has checked that the bytes are within the stream's write limit.
  func write(_ stream: UInt32, _ bytes: RawSpan)
  /// Sends a request and waits for the answer.
  func carryOut(_ body: LocalRequest.Body) throws(ConnectionError) -> DaemonConnection.Answer
  /// Waits for the next event, for a watched descriptor, or until the deadline.
  func next(until deadline: Instant, watching watch: DaemonConnection.Watch) throws(ConnectionError)
    -> DaemonConnection.Wake
  /// A new connection after this one was lost. Returns nil after the deadline, or when the descriptor `signals` is
  /// readable.
  func restored(until deadline: Instant, signals: CInt) -> (any LocalConnection)?
}

extension DaemonConnection: LocalConnection {
  public func restored(until deadline: Instant, signals: CInt) -> (any LocalConnection)? {
    connectAgain(until: deadline, signals: signals)
  }
}

extension LocalOptions {
  /// Connects to the daemon, under the name given by --name or else under the command's name.
  func connect(as command: StaticString) throws(CommandError) -> DaemonConnection { try connect(in: command.bytes) }

  /// Connects like `connect(as:)`, for a command that computes the name of its connection.
  func connect(in instance: [UInt8]) throws(CommandError) -> DaemonConnection {
    let path = try socketPath()
    return try attempt { () throws(ConnectionError) in
      try DaemonConnection(path: path, name: name.isEmpty ? instance : name)
    }
  }
}

/// Runs `body`. If it throws a connection error, throws the error with its exit code.
private func attempt<Result>(_ body: () throws(ConnectionError) -> Result) throws(CommandError) -> Result {
  do throws(ConnectionError) {
    return try body()
  } catch {
    throw CommandError(saying: error.text, error.isNoDaemon ? ExitCode.noDaemon : ExitCode.failed)
  }
}

/// Sends a request, and returns the number of the request, which identifies the object that it creates. If the request
/// fails, throws the reason.
@discardableResult
func make(_ body: LocalRequest.Body, _ connection: any LocalConnection) throws(CommandError) -> UInt32 {
  let answer = try attempt { () throws(ConnectionError) in try connection.carryOut(body) }
  if answer.outcome == .done { return answer.number }
  if answer.outcome == .inUse {
    throw CommandError(saying: "another of your commands already does this; give one of the two a --name")
  }
  throw CommandError(
    saying: answer.text.isEmpty ? "the daemon refused the request" : String(decoding: answer.text, as: UTF8.self))
}

/// Waits for an event of the daemon, for input, a signal or the deadline. Throws if a write to standard output has
/// failed.
func wake(
  _ connection: any LocalConnection, _ console: any Console, until deadline: Instant,
  _ watch: DaemonConnection.Watch
) throws(CommandError) -> DaemonConnection.Wake {
  if console.hasFailed { throw CommandError(ExitCode.failed) }
  return try attempt { () throws(ConnectionError) in try connection.next(until: deadline, watching: watch) }
}
