import CommandLine
import Text
import Primitives
import Reactor
import Terminal

/// A console that records what a command prints. Its input, its signals and its clock are set by the test.
final class RecordedConsole: Console {
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  let input: CInt = 0
  let output: CInt = 1
  let signals: CInt = 3
  private(set) var hasFailed = false
  /// Whether the next write to standard output fails.
  var failsWhenWritten = false

  private var printed: [UInt8] = []
  /// The lines on standard error, without the program's name.
  private(set) var errors: [String] = []
  /// The questions that were asked.
  private(set) var questions: [String] = []
  /// Each line that a person sees, of the output and of questions. As on a terminal, the open question is printed again
  /// below other output.
  private(set) var screen: [String] = []
  private var question: String?
  /// Whether a question is shown that has not ended.
  var isAsking: Bool { question != nil }
  private var unread: [UInt8] = []
  private var isAtEnd = false
  private var pending: [CInt] = []

  /// The text on standard output.
  var text: String { String(decoding: printed, as: UTF8.self) }

  // MARK: The test's side

  func type(_ text: String) { unread += Array(text.utf8) }
  func endInput() { isAtEnd = true }
  func raise(_ signal: CInt) { pending.append(signal) }
  func wait(until time: Instant) { now = max(now, time) }
  var hasInput: Bool { !unread.isEmpty || isAtEnd }

  // MARK: The command's side

  func read(atMost byteCount: Int) -> ConsoleInput {
    if unread.isEmpty { return isAtEnd ? .end : .nothing }
    let bytes = Array(unread.prefix(byteCount))
    unread.removeFirst(bytes.count)
    return .bytes(bytes)
  }

  var isReadable: Bool { hasInput }
  func discardInput() { unread = [] }
  func nextSignal() -> CInt? { pending.isEmpty ? nil : pending.removeFirst() }

  func put(_ text: TextBuilder) {
    if failsWhenWritten { hasFailed = true }
    if hasFailed { return }
    printed += text.bytes
    show(text)
  }

  func putError(_ text: TextBuilder) {
    errors.append(String(decoding: text.bytes, as: UTF8.self))
    show(text)
  }

  private func show(_ text: TextBuilder) {
    screen += String(decoding: text.bytes, as: UTF8.self).split(separator: "\n").map { String($0) }
    if let question { screen.append(question) }
  }

  let showsProgress = false
  let progressColumns: Int? = nil
  func draw(_ text: TextBuilder) {}

  func ask(_ question: TextBuilder) {
    let text = String(decoding: question.bytes, as: UTF8.self)
    self.question = text
    questions.append(text)
    screen.append(text)
  }

  func endQuestion(isAnswered: Bool) { question = nil }

  func openScreen() -> Screen? { nil }
  func stop() {}
}
