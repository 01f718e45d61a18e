import CSystem
import Text
import Primitives
import Reactor
import Terminal

/// The result of reading the input of a console once.
public enum ConsoleInput {
  case bytes([UInt8])
  /// No input can be read now.
  case nothing
  case end
  case failed(SystemError)
}

/// Everything outside a command except the daemon: standard input, output and error, signals, and the clock.
/// `ProcessConsole` is that of this process. Tests of commands record the output and script the rest.
public protocol Console: AnyObject {
  /// The present monotonic time.
  var now: Instant { get }

  /// The descriptor of standard input, for a wait.
  var input: CInt { get }
  /// The descriptor of standard output, for a wait.
  var output: CInt { get }
  /// The descriptor that is readable while a signal is pending.
  var signals: CInt { get }

  /// Reads standard input once, at most `byteCount` bytes.
  func read(atMost byteCount: Int) -> ConsoleInput
  /// Whether standard input can be read now. A terminal in line mode has input after a complete line, or at the end of
  /// input.
  var isReadable: Bool { get }
  /// Discards input that the terminal has not delivered.
  func discardInput()
  /// The next pending signal, or nil if no signal is pending.
  func nextSignal() -> CInt?

  /// Whether a write to standard output has failed. A command that waits for events must then end.
  var hasFailed: Bool { get }
  /// Writes to standard output.
  func put(_ text: TextBuilder)
  /// Writes one line to standard error, after the program's name. `text` must already be free of control characters.
  func putError(_ text: TextBuilder)

  /// Whether standard error is a terminal, which can show a line of progress.
  var showsProgress: Bool { get }
  /// The width of standard error in columns; nil if it is unknown.
  var progressColumns: Int? { get }
  /// Writes to standard error without the program's name.
  func draw(_ text: TextBuilder)
  /// Prints a question, which is kept as the last line on the terminal until `endQuestion`.
  func ask(_ question: TextBuilder)
  /// Ends the shown question, which the user has answered or not.
  func endQuestion(isAnswered: Bool)

  /// Takes over the terminal key by key; nil if standard input or output is not a terminal.
  func openScreen() -> Screen?
  /// Stops this process, as ^Z does, until it is continued.
  func stop()
}

/// The console of this process.
public final class ProcessConsole: Console {
  public let input: CInt
  private let error: CInt
  private let pending: Signals?

  /// `signals`: the signals that are read by `nextSignal`. They are blocked from now on.
  public init(_ signals: [CInt]) {
    (input, error) = (STDIN_FILENO, STDERR_FILENO)
    pending = Signals(signals)
  }

  /// A console whose questions are asked and answered on another terminal.
  init(terminal: CInt) {
    (input, error) = (terminal, terminal)
    pending = nil
  }

  /// Whether a person can answer questions on standard input and error.
  public static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

  public var now: Instant { monotonicNow() }
  public var output: CInt { STDOUT_FILENO }
  public var signals: CInt { pending?.descriptor ?? -1 }

  public func read(atMost byteCount: Int) -> ConsoleInput {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    let count = bytes.withUnsafeMutableBytes { CSystem.read(input, $0.baseAddress, $0.count) }
    if count > 0 {
      bytes.removeLast(byteCount - count)
      return .bytes(bytes)
    }
    if count == 0 { return .end }
    let error = SystemError.last
    return error.code == EINTR || error.code == EAGAIN ? .nothing : .failed(error)
  }

  public var isReadable: Bool {
    var polled = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) > 0
  }

  public func discardInput() { tcflush(input, TCIFLUSH) }
  public func nextSignal() -> CInt? { pending?.next() }

  public var hasFailed: Bool { Output.hasFailed }
  public func put(_ text: TextBuilder) { Output.put(text) }
  public func putError(_ text: TextBuilder) { Output.putError(text) }

  public var showsProgress: Bool { isatty(error) == 1 }

  public var progressColumns: Int? {
    var size = winsize()
    return csystem_terminal_size(error, &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil
  }

  public func draw(_ text: TextBuilder) { text.write(to: error) }
  public func ask(_ question: TextBuilder) { Output.ask(question, on: error) }
  public func endQuestion(isAnswered: Bool) { Output.endQuestion(isAnswered: isAnswered) }

  public func openScreen() -> Screen? { Screen() }
  public func stop() { kill(getpid(), SIGSTOP) }
}
