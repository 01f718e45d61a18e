import Diagnostics
import Primitives

/// Yes-or-no questions in order, and which answers count. Pure: the caller shows the questions and reads the lines.
///
/// A question takes no answer until it has been shown for `readingTime`. A line that comes earlier was meant for something
/// else: it is dropped, and the question is shown again. So nobody can exchange a question under an answer.
public struct QuestionQueue {
  /// How long a question is shown before it takes an answer: nobody reads it in less.
  public static let readingTime = TimeSpan.seconds(1)

  private struct Question {
    let number: UInt32
    let text: TextBuilder
  }

  private enum State {
    /// No question is shown.
    case idle
    /// The first question is shown, and takes no answer yet.
    case unread(until: Instant)
    /// The first question is shown, and takes an answer.
    case open
  }

  private var questions: [Question] = []
  private var state = State.idle

  public init() {}

  public var isEmpty: Bool { questions.isEmpty }

  /// When `readingTimeIsOver` is due; `.never` if nothing is.
  public var deadline: Instant { if case .unread(let until) = state { until } else { .never } }

  /// Adds a question behind the others. `number` identifies it.
  public mutating func add(_ number: UInt32, _ text: TextBuilder) {
    questions.append(Question(number: number, text: text))
  }

  /// The question to show now; nil when one is shown already, or none waits.
  public mutating func next(_ now: Instant) -> TextBuilder? {
    guard case .idle = state, let question = questions.first else { return nil }
    state = .unread(until: now + Self.readingTime)
    return question.text
  }

  /// The question that is shown, to be shown again: its reading time begins anew. Nil when none is shown.
  public mutating func again(_ now: Instant) -> TextBuilder? {
    if case .idle = state { return nil }
    state = .idle
    return next(now)
  }

  /// Removes a question. True if it was shown.
  public mutating func remove(_ number: UInt32) -> Bool {
    guard let index = questions.firstIndex(where: { $0.number == number }) else { return false }
    questions.remove(at: index)
    guard index == 0 else { return false }
    if case .idle = state { return false }
    state = .idle
    return true
  }

  /// Removes all questions; returns their numbers.
  public mutating func removeAll() -> [UInt32] {
    let numbers = questions.map { $0.number }
    questions = []
    state = .idle
    return numbers
  }

  /// The question takes answers from now on, if its reading time is over. The caller knows that no line waits unread: such a
  /// line may have been typed before.
  public mutating func readingTimeIsOver(_ now: Instant) {
    if now >= deadline { state = .open }
  }

  /// Takes the answer to the question that is shown, and removes it. Nil when the question does not take an answer yet, or none
  /// is shown.
  public mutating func answer() -> UInt32? {
    guard case .open = state else { return nil }
    state = .idle
    return questions.removeFirst().number
  }
}
