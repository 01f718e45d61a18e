import CSystem
import Diagnostics

/// Questions with the answer yes or no, on a terminal: one after the other. Who asks bounds their number.
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
  /// Nobody answers any more.
  var isOver: Bool { input.isOver }
  var isEmpty: Bool { questions.isEmpty }

  /// Asks as soon as those before are answered. The number tells it apart.
  func ask(_ number: UInt32, _ text: TextBuilder) {
    questions.append(Question(number: number, text: text))
    askNext()
  }

  /// Takes a question back. True when it was asked already.
  @discardableResult func withdraw(_ number: UInt32) -> Bool {
    guard let index = questions.firstIndex(where: { $0.number == number }) else { return false }
    return questions.remove(at: index).isAsked
  }

  /// Reads answers. `body` is told each, and what nobody can answer any more as a no.
  func readInput(_ body: (UInt32, Bool) -> Void) {
    input.read()
    while let line = input.next() {
      guard !questions.isEmpty, questions[0].isAsked else { continue }
      let first = line.first { $0 != 0x20 }
      body(questions.removeFirst().number, first == UInt8(ascii: "y") || first == UInt8(ascii: "Y"))
      askNext()
    }
    guard input.isOver else { return }
    while !questions.isEmpty { body(questions.removeFirst().number, false) }
  }

  /// After what was said meanwhile.
  func askNext() {
    guard !questions.isEmpty, !questions[0].isAsked else { return }
    questions[0].isAsked = true
    questions[0].text.write(to: STDERR_FILENO)
  }
}
