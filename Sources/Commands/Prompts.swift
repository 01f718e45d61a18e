import CSystem
import Primitives
import Reactor
import Terminal
import Text

/// Yes-or-no questions on a terminal, asked one after the other. The caller limits the number of questions.
///
/// An answer is valid only for the question that was on the screen when the answer was typed. A question accepts
/// answers after the reading time of `QuestionQueue`. Earlier input is discarded.
final class Prompts {
  private var queue = QuestionQueue()
  private var input: LineInput
  private let output: CInt

  /// Prints questions on standard error and reads answers from standard input. Both must be the same terminal.
  convenience init() { self.init(STDIN_FILENO, STDERR_FILENO) }

  private init(_ input: CInt, _ output: CInt) {
    self.input = LineInput(byteCountMax: 256, from: input)
    self.output = output
  }

  /// The input's descriptor while a question waits for its answer; otherwise -1.
  var descriptor: CInt { queue.isEmpty || input.isOver ? -1 : input.descriptor }
  /// When to call `checkTime`.
  var deadline: Instant { queue.deadline }
  /// Whether the input is closed, so that nobody can answer.
  var isOver: Bool { input.isOver }
  var isEmpty: Bool { queue.isEmpty }

  /// Asks a question after all earlier questions are answered. `number` identifies the question in `readInput` and
  /// `withdraw`.
  func ask(_ number: UInt32, _ text: TextBuilder) {
    queue.add(number, text)
    askNext()
  }

  /// Removes a question without an answer. If the question is on the screen, prints `notice` unless that is nil, and
  /// asks the next question.
  func withdraw(_ number: UInt32, _ notice: @autoclosure () -> TextBuilder?) {
    guard queue.remove(number) else { return }
    Output.endQuestion(isAnswered: false)
    if let notice = notice() { printError(notice) }
    askNext()
  }

  /// Removes all questions without an answer.
  func withdrawAll() {
    if !queue.removeAll().isEmpty { Output.endQuestion(isAnswered: false) }
  }

  /// Reads answers, and passes each to `body` with the number of its question. At the end of input all open questions
  /// are answered with no.
  func readInput(_ body: (UInt32, Bool) -> Void) {
    input.read()
    if input.isOver {
      let unanswered = queue.removeAll()
      if !unanswered.isEmpty {
        Output.endQuestion(isAnswered: false)
        printError(TextBuilder("standard input has ended: everything that needs an answer is declined"))
      }
      for number in unanswered { body(number, false) }
      return
    }
    while let line = input.next() {
      guard let number = queue.answer() else {
        askAgain()
        continue
      }
      Output.endQuestion(isAnswered: true)
      body(number, isYes(line))
      askNext()
    }
  }

  /// Lets the shown question accept answers after its reading time. If a line was typed during this time, the line is
  /// discarded and the question repeated. Call it before each wait for input.
  func checkTime() {
    let now = monotonicNow()
    if input.isOver || now < queue.deadline { return }
    if input.isReadable { askAgain() } else { queue.readingTimeIsOver(now) }
  }

  private func askNext() {
    guard let text = queue.next(monotonicNow()) else { return }
    input.discard()
    Output.ask(text, on: output)
  }

  /// Repeats the question, because a line was typed before the question could be read.
  private func askAgain() {
    input.discard()
    guard let text = queue.again(monotonicNow()) else { return }
    // The return key has ended the line of the question, so the output starts on a new line.
    TextBuilder("causeway: this was typed before the prompt could be read and is ignored\n").write(to: output)
    Output.ask(text, on: output)
  }

  /// Asks one question on the controlling terminal, even if standard input and output are redirected, and waits for the
  /// answer. Returns nil without asking if the process has no controlling terminal.
  static func askAndWait(_ text: TextBuilder) -> Bool? {
    let terminal = csystem_open("/dev/tty", O_RDWR | O_CLOEXEC, 0)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    let questions = Prompts(terminal, terminal)
    var answer: Bool?
    questions.ask(0, text)
    while answer == nil {
      questions.checkTime()
      if questions.waitForInput() { questions.readInput { _, accepts in answer = accepts } }
    }
    return answer
  }

  /// Waits for input until the deadline. Returns whether there is input.
  private func waitForInput() -> Bool {
    var milliseconds: CInt = -1
    if deadline != .never {
      // Round up to a millisecond: a wait that ends before the deadline would be repeated without sleeping.
      milliseconds = CInt(clamping: ((deadline - monotonicNow()).nanoseconds + 999_999) / 1_000_000)
    }
    var polled = pollfd(fd: input.descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0
  }
}

private func isYes(_ line: [UInt8]) -> Bool {
  let first = line.first { $0 != 0x20 }
  return first == UInt8(ascii: "y") || first == UInt8(ascii: "Y")
}
