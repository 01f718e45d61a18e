import CSystem
import Diagnostics

/// Yes-or-no questions on a terminal, one after the other. The caller bounds their number.
///
/// An answer belongs to the question that was on the screen when it was typed: input that came before is discarded.
final class Questions {
  private struct Question {
    let number: UInt32
    let text: TextBuilder
    var isAsked = false
  }

  private var questions: [Question] = []
  private var input = LineInput(byteCountMax: 256)

  /// Standard input while a question waits for its answer; otherwise -1.
  var descriptor: CInt { questions.isEmpty || input.isOver ? -1 : STDIN_FILENO }
  /// Standard input is closed: nobody answers any more.
  var isOver: Bool { input.isOver }
  var isEmpty: Bool { questions.isEmpty }

  /// Asks as soon as the questions before it are answered. `number` identifies it.
  func ask(_ number: UInt32, _ text: TextBuilder) {
    questions.append(Question(number: number, text: text))
    askNext()
  }

  /// Removes a question without an answer. If it was on the screen, prints `notice`, if there is one, and asks the next one.
  func withdraw(_ number: UInt32, _ notice: @autoclosure () -> TextBuilder?) {
    guard let index = questions.firstIndex(where: { $0.number == number }) else { return }
    guard questions.remove(at: index).isAsked else { return }
    Output.endQuestion(isAnswered: false)
    if let notice = notice() { printError(notice) }
    askNext()
  }

  /// Removes all questions without an answer.
  func withdrawAll() {
    if !questions.isEmpty { Output.endQuestion(isAnswered: false) }
    questions = []
  }

  /// Reads answers, and passes each to `body`. At the end of input the remaining questions are answered with no.
  func readInput(_ body: (UInt32, Bool) -> Void) {
    input.read()
    while let line = input.next() {
      guard !questions.isEmpty, questions[0].isAsked else { continue }
      let number = questions.removeFirst().number
      Output.endQuestion(isAnswered: true)
      body(number, isYes(line))
      askNext()
    }
    guard input.isOver else { return }
    if !questions.isEmpty { Output.endQuestion(isAnswered: false) }
    while !questions.isEmpty { body(questions.removeFirst().number, false) }
  }

  private func askNext() {
    guard !questions.isEmpty, !questions[0].isAsked else { return }
    questions[0].isAsked = true
    input.discard()
    Output.ask(questions[0].text)
  }

  /// Asks one question and waits for its answer. Without a terminal nothing is asked, and the result is nil.
  static func askAndWait(_ text: TextBuilder) -> Bool? {
    guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return nil }
    let questions = Questions()
    var answer: Bool?
    questions.ask(0, text)
    while answer == nil { questions.readInput { _, accepts in answer = accepts } }
    return answer
  }
}

private func isYes(_ line: [UInt8]) -> Bool {
  let first = line.first { $0 != 0x20 }
  return first == UInt8(ascii: "y") || first == UInt8(ascii: "Y")
}
