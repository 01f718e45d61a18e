import Applications
import CommandLine
import DaemonClient
import LocalAPI
import Primitives

/// A connection to a daemon that follows a script. It records the requests of the command.
final class ScriptedConnection: LocalConnection {
  /// One step of a script. Each wait of the command ends with the next step.
  enum Step {
    case event(LocalEvent)
    /// An event that depends on earlier requests.
    case answer((ScriptedConnection) -> LocalEvent)
    case input(String)
    case endOfInput
    case signal(CInt)
    case outputClosed
    /// Nothing happens until the deadline of the command.
    case time
    /// The daemon closes the connection.
    case lost
  }

  let node = NodeID(high: 0xA11C_E000_0000_0000, low: 1)
  let name = Array("alice".utf8)
  let terms = LocalTerms.own
  var isBehind = false
  private let console: RecordedConsole
  private var script: [Step]
  /// Returns further events after the script; nil if there is none now.
  var respond: ((ScriptedConnection) -> LocalEvent?)?
  /// The outcome of a request for which the command waits.
  var outcome: (LocalRequest.Body) -> LocalOutcome = { _ in .done }
  /// The connection that replaces this one after `lost`.
  var successor: ScriptedConnection?

  private var numbered: [(number: UInt32, body: LocalRequest.Body)] = []
  /// All requests, in order.
  private(set) var requests: [LocalRequest.Body] = []
  /// The bytes that were written to each stream.
  private(set) var written: [UInt32: [UInt8]] = [:]
  private(set) var watches: [DaemonConnection.Watch] = []
  private var lastNumber: UInt32 = 0
  private var timeouts = 0
  /// The number of waits that may end without an event. A command that needs more makes no progress.
  private static let timeoutsMax = 1_000

  init(_ console: RecordedConsole, _ script: [Step] = []) {
    self.console = console
    self.script = script
  }

  /// The number of the last request that meets the condition; 0 if there is none.
  func number(_ isWanted: (LocalRequest.Body) -> Bool) -> UInt32 { numbered.last { isWanted($0.body) }?.number ?? 0 }

  /// The number of the last stream that the command has opened.
  var openedStream: UInt32 { number { if case .stream = $0 { true } else { false } } }
  /// The name of the last stream that the command has opened.
  var openedName: [UInt8]? {
    for body in requests.reversed() { if case .stream(_, _, let name) = body { return name } }
    return nil
  }
  /// The number of the last stream that the command has accepted.
  var takenStream: UInt32 { number { if case .take(_, true, _, _) = $0 { true } else { false } } }

  var nextNumber: UInt32 { lastNumber + 1 }

  func ask(_ body: LocalRequest.Body) -> UInt32 {
    lastNumber += 1
    numbered.append((lastNumber, body))
    requests.append(body)
    return lastNumber
  }

  func post(_ body: LocalRequest.Body) { requests.append(body) }

  func write(_ stream: UInt32, _ bytes: RawSpan) {
    written[stream, default: []] += bytes.withUnsafeBytes { Array($0) }
  }

  func carryOut(_ body: LocalRequest.Body) throws(ConnectionError) -> DaemonConnection.Answer {
    DaemonConnection.Answer(number: ask(body), outcome: outcome(body))
  }

  func next(
    until deadline: Instant, watching watch: DaemonConnection.Watch
  ) throws(ConnectionError) -> DaemonConnection.Wake {
    watches.append(watch)
    while true {
      if watch.input >= 0 && console.hasInput { return .input }
      guard !script.isEmpty else {
        if let event = respond?(self) { return .event(event) }
        return try timeOut(deadline)
      }
      switch script.removeFirst() {
      case .event(let event): return .event(event)
      case .answer(let body): return .event(body(self))
      case .input(let text): console.type(text)
      case .endOfInput: console.endInput()
      case .signal(let signal):
        console.raise(signal)
        return .signal
      case .outputClosed: return .outputClosed
      case .time: return try timeOut(deadline)
      case .lost: throw ConnectionError("the daemon closed the connection")
      }
    }
  }

  private func timeOut(_ deadline: Instant) throws(ConnectionError) -> DaemonConnection.Wake {
    timeouts += 1
    guard deadline != .never, timeouts < Self.timeoutsMax else { throw ConnectionError("the script has ended") }
    console.wait(until: deadline)
    return .timedOut
  }

  func restored(until deadline: Instant, signals: CInt) -> (any LocalConnection)? { successor }
}
