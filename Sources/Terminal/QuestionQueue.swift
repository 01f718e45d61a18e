import Diagnostics
import Primitives

/// A queue of yes-or-no questions that decides which answers count. Pure: the caller shows the questions and reads the
/// lines.
///
/// A question accepts no answer until it has been shown for `readingTime`. An earlier line was meant for something
/// else: it is dropped, and the question is shown again. This prevents an attacker from replacing a question just
/// before the answer.
public struct QuestionQueue {
  /// The time a question is shown before it accepts an answer: nobody reads it faster.
  public static let readingTime = TimeSpan.seconds(1)

  private struct Question {
    let number: UInt32
    let text: TextBuilder
  }

  private enum State {
    /// No question is shown.
    case idle
    /// The first question is shown and does not accept an answer yet.
    case unread(until: Instant)
    /// The first question is shown and accepts an answer.
    case open
  }

  private var questions: [Question] = []
  private var state = State.idle

  public init() {}

  public var isEmpty: Bool { questions.isEmpty }

  /// When to call `readingTimeIsOver`; `.never` if no question is waiting for it.
  public var deadline: Instant { if case .unread(let until) = state { until } else { .never } }

  /// Appends a question. `number` identifies it.
  public mutating func add(_ number: UInt32, _ text: TextBuilder) {
    questions.append(Question(number: number, text: text))
  }

  /// The next question to show; nil if one is shown already or none waits.
  public mutating func next(_ now: Instant) -> TextBuilder? {
    guard case .idle = state, let question = questions.first else { return nil }
    state = .unread(until: now + Self.readingTime)
    return question.text
  }

  /// The current question, to be shown again; its reading time restarts. Nil if none is shown.
  public mutating func again(_ now: Instant) -> TextBuilder? {
    if case .idle = state { return nil }
    state = .idle
    return next(now)
  }

  /// Removes a question. Returns whether it was shown.
  public mutating func remove(_ number: UInt32) -> Bool {
    guard let index = questions.firstIndex(where: { $0.number == number }) else { return false }
    questions.remove(at: index)
    guard index == 0 else { return false }
    if case .idle = state { return false }
    state = .idle
    return true
  }

  /// Removes all questions and returns their numbers.
  public mutating func removeAll() -> [UInt32] {
    let numbers = questions.map { $0.number }
    questions = []
    state = .idle
    return numbers
  }

  /// Lets the question accept answers if its reading time is over. The caller ensures that no unread line waits,
  /// because it may have been typed earlier.
  public mutating func readingTimeIsOver(_ now: Instant) {
    if now >= deadline { state = .open }
  }

  /// Accepts the answer to the current question and removes it. Returns its number; nil if the question does not accept
  /// answers yet or none is shown.
  public mutating func answer() -> UInt32? {
    guard case .open = state else { return nil }
    state = .idle
    return questions.removeFirst().number
  }
}
