import Primitives
import Text

/// A queue of yes-or-no questions that decides which input lines are valid answers. The queue is pure: the caller shows
/// the questions and reads the lines.
///
/// A question accepts no answer until it has been shown for `readingTime`. A line that arrives earlier was meant for
/// something else, so the caller drops the line and shows the question again. So an attacker cannot replace a question
/// just before the user answers.
///
/// Questions about verified peers are shown before those about strangers. Only the newest `strangersMax` of the
/// strangers' questions wait behind the shown one.
public struct QuestionQueue {
  /// The time for which a question is shown before accepting an answer. Nobody reads a question faster.
  public static let readingTime = TimeSpan.seconds(1)

  /// The maximum number of questions about strangers that wait behind the shown question. Any node in reach can cause
  /// such questions, and a person answers few of them.
  public static let strangersMax = 4

  private struct Question {
    let number: UInt32
    let text: TextBuilder
    let isVerified: Bool
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

  /// The time at which the caller must call `readingTimeIsOver`, or `.never` if no question is in its reading time.
  public var deadline: Instant { if case .unread(let until) = state { until } else { .never } }

  /// Adds a question. `number` identifies the question, and `isVerified` states whether the question is about a peer
  /// whose key is verified. Returns the number of the question that is removed because too many strangers' questions
  /// wait, or nil.
  public mutating func add(_ number: UInt32, _ text: TextBuilder, isVerified: Bool) -> UInt32? {
    let waiting = questions.indices.dropFirst(isShown ? 1 : 0)
    let strangers = waiting.filter { !questions[$0].isVerified }
    let question = Question(number: number, text: text, isVerified: isVerified)
    if isVerified {
      questions.insert(question, at: strangers.first ?? questions.endIndex)
      return nil
    }
    questions.append(question)
    return strangers.count < Self.strangersMax ? nil : questions.remove(at: strangers[0]).number
  }

  /// Whether the first question is shown.
  private var isShown: Bool { if case .idle = state { false } else { true } }

  /// The next question, which the caller must show. Returns nil if a question is already shown, or if the queue is
  /// empty.
  public mutating func next(_ now: Instant) -> TextBuilder? {
    guard case .idle = state, let question = questions.first else { return nil }
    state = .unread(until: now + Self.readingTime)
    return question.text
  }

  /// The current question, which the caller must show again. The reading time of the question restarts. Returns nil if
  /// no question is shown.
  public mutating func again(_ now: Instant) -> TextBuilder? {
    if case .idle = state { return nil }
    state = .idle
    return next(now)
  }

  /// Removes a question. Returns whether the question was shown.
  public mutating func remove(_ number: UInt32) -> Bool {
    guard let index = questions.firstIndex(where: { $0.number == number }) else { return false }
    questions.remove(at: index)
    guard index == 0, isShown else { return false }
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

  /// Lets the current question accept answers if its reading time is over. The caller must first read all lines of
  /// input, because the user may have typed them before the question was shown.
  public mutating func readingTimeIsOver(_ now: Instant) {
    if now >= deadline { state = .open }
  }

  /// Accepts an answer to the current question, and removes the question from the queue. Returns the number of the
  /// question. Returns nil if the question does not accept answers yet, or if no question is shown.
  public mutating func answer() -> UInt32? {
    guard case .open = state else { return nil }
    state = .idle
    return questions.removeFirst().number
  }
}
