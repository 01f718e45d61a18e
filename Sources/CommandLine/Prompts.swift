import CSystem
import Primitives
import Terminal
import Text

/// Yes-or-no questions on a terminal, asked one after the other in the order of `QuestionQueue`. The caller limits the
/// number of questions about verified peers.
///
/// An answer is valid only for the question that was on the screen when the answer was typed. A question accepts
/// answers after the reading time of `QuestionQueue`. Earlier input is discarded.
public final class Prompts {
  private var queue = QuestionQueue()
  private var input: LineInput
  private let console: any Console

  /// Asks on the console. Its standard input and standard error must be the same terminal.
  public init(_ console: any Console) {
    self.console = console
    input = LineInput(byteCountMax: 256)
  }

  /// The input's descriptor while a question waits for its answer; otherwise -1.
  public var descriptor: CInt { queue.isEmpty || input.isOver ? -1 : console.input }
  /// When to call `update`.
  public var deadline: Instant { queue.deadline }
  /// Whether the input is closed, so that nobody can answer.
  public var isOver: Bool { input.isOver }
  public var isEmpty: Bool { queue.isEmpty }

  /// Adds a question, which `update` shows when no other question is shown. `number` identifies the question in
  /// `readInput` and `withdraw`, and `isVerified` states whether the question is about a peer whose key is verified.
  /// Returns the number of a question that is removed without an answer because too many strangers' questions wait, or
  /// nil.
  public func ask(_ number: UInt32, _ text: TextBuilder, isVerified: Bool) -> UInt32? {
    queue.add(number, text, isVerified: isVerified)
  }

  /// Removes a question without an answer. If the question is on the screen, prints `notice` unless that is nil.
  public func withdraw(_ number: UInt32, _ notice: @autoclosure () -> TextBuilder?) {
    guard queue.remove(number) else { return }
    console.endQuestion(isAnswered: false)
    if let notice = notice() { console.putError(notice) }
  }

  /// Removes all questions without an answer.
  public func withdrawAll() {
    if !queue.removeAll().isEmpty { console.endQuestion(isAnswered: false) }
  }

  /// Reads answers, and passes each to `body` with the number of its question. At the end of input all open questions
  /// are answered with no.
  public func readInput(_ body: (UInt32, Bool) -> Void) {
    input.read(console)
    if input.isOver {
      let unanswered = queue.removeAll()
      if !unanswered.isEmpty {
        console.endQuestion(isAnswered: false)
        console.putError(TextBuilder("standard input has ended: everything that needs an answer is declined"))
      }
      for number in unanswered { body(number, false) }
      return
    }
    while let line = input.next() {
      guard let number = queue.answer() else {
        askAgain()
        continue
      }
      console.endQuestion(isAnswered: true)
      body(number, isYes(line))
    }
  }

  /// Shows the next question if none is shown, and lets the shown question accept answers after its reading time. If a
  /// line was typed during this time, the line is discarded and the question repeated.
  ///
  /// Call it before each wait, after all that the last event has caused is printed. The next question is then below the
  /// result of the previous one, and is not printed twice.
  public func update() {
    if input.isOver { return }
    askNext()
    let now = console.now
    if now < queue.deadline { return }
    if console.isReadable { askAgain() } else { queue.readingTimeIsOver(now) }
  }

  private func askNext() {
    guard let text = queue.next(console.now) else { return }
    input.discard(console)
    console.ask(text)
  }

  /// Repeats the question, because a line was typed before the question could be read.
  private func askAgain() {
    input.discard(console)
    guard let text = queue.again(console.now) else { return }
    // The return key has ended the line of the question, so the output starts on a new line.
    console.draw(TextBuilder("causeway: this was typed before the prompt could be read and is ignored\n"))
    console.ask(text)
  }

  /// Asks one question on the controlling terminal, even if standard input and output are redirected, and waits for the
  /// answer. Returns nil without asking if the process has no controlling terminal.
  public static func askAndWait(_ text: TextBuilder) -> Bool? {
    let terminal = csystem_open("/dev/tty", O_RDWR | O_CLOEXEC, 0)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    let questions = Prompts(ProcessConsole(terminal: terminal))
    var answer: Bool?
    _ = questions.ask(0, text, isVerified: true)
    while answer == nil {
      questions.update()
      if questions.waitForInput() { questions.readInput { _, accepts in answer = accepts } }
    }
    return answer
  }

  /// Waits for input until the deadline. Returns whether there is input.
  private func waitForInput() -> Bool {
    var milliseconds: CInt = -1
    if deadline != .never {
      // Round up to a millisecond: a wait that ends before the deadline would be repeated without sleeping.
      milliseconds = CInt(clamping: ((deadline - console.now).nanoseconds + 999_999) / 1_000_000)
    }
    var polled = pollfd(fd: console.input, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0
  }
}

private func isYes(_ line: [UInt8]) -> Bool {
  let first = line.first { $0 != 0x20 }
  return first == UInt8(ascii: "y") || first == UInt8(ascii: "Y")
}
