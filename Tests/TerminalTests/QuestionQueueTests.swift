import Primitives
import Terminal
import Testing
import Text

private func text(_ words: String) -> TextBuilder {
  var text = TextBuilder()
  text.add(words)
  return text
}

private func queue(_ questions: String...) -> QuestionQueue {
  var queue = QuestionQueue()
  for (number, question) in questions.enumerated() { _ = queue.add(UInt32(number), text(question), isVerified: true) }
  return queue
}

private let start = Instant.zero + .seconds(100)
private let read = start + QuestionQueue.readingTime

@Suite struct QuestionQueueTests {
  @Test func `a question accepts an answer after it has been shown for a second`() {
    var queue = queue("one?")
    #expect(queue.next(start)?.bytes == text("one?").bytes)
    #expect(queue.deadline == start + .seconds(1))
    queue.readingTimeIsOver(read)
    #expect(queue.deadline == .never)
    #expect(queue.answer() == 0)
    #expect(queue.isEmpty && queue.answer() == nil)
  }

  @Test func `an answer within a second after the question was shown is ignored`() {
    var queue = queue("one?")
    _ = queue.next(start)
    queue.readingTimeIsOver(start + .milliseconds(999))
    #expect(queue.answer() == nil)
    #expect(!queue.isEmpty && queue.deadline == read)
  }

  @Test func `a question that is shown again accepts no answer for another second`() {
    var queue = queue("one?")
    _ = queue.next(start)
    let later = start + .milliseconds(600)
    #expect(queue.again(later)?.bytes == text("one?").bytes)
    queue.readingTimeIsOver(read)
    #expect(queue.answer() == nil)
    queue.readingTimeIsOver(later + .seconds(1))
    #expect(queue.answer() == 0)
  }

  @Test func `the question after a withdrawn one accepts no answer for a second`() {
    var queue = queue("harmless?", "evil?")
    _ = queue.next(start)
    queue.readingTimeIsOver(read)
    let swapped = start + .seconds(5)
    #expect(queue.remove(0) == true)
    #expect(queue.answer() == nil)
    #expect(queue.next(swapped)?.bytes == text("evil?").bytes)
    queue.readingTimeIsOver(swapped + .milliseconds(150))
    #expect(queue.answer() == nil)
    queue.readingTimeIsOver(swapped + .seconds(1))
    #expect(queue.answer() == 1)
  }

  @Test func `the question after an answered one accepts no answer for a second`() {
    var queue = queue("one?", "two?")
    _ = queue.next(start)
    queue.readingTimeIsOver(read)
    #expect(queue.answer() == 0)
    #expect(queue.next(read)?.bytes == text("two?").bytes)
    #expect(queue.answer() == nil)
  }

  @Test func `questions are shown one at a time, in order`() {
    var queue = queue("one?", "two?", "three?")
    #expect(queue.next(start) != nil && queue.next(read) == nil)
    #expect(queue.remove(1) == false)
    queue.readingTimeIsOver(read)
    #expect(queue.answer() == 0)
    #expect(queue.next(read)?.bytes == text("three?").bytes)
  }

  @Test func `questions about verified peers come before those about strangers`() {
    var queue = QuestionQueue()
    for (number, isVerified) in [false, false, true, false, true].enumerated() {
      #expect(queue.add(UInt32(number), text("\(number)?"), isVerified: isVerified) == nil)
      if number == 0 { _ = queue.next(start) }
    }
    var order: [UInt32] = []
    var now = start
    while !queue.isEmpty {
      _ = queue.next(now)
      now = now + QuestionQueue.readingTime
      queue.readingTimeIsOver(now)
      order.append(queue.answer()!)
    }
    #expect(order == [0, 2, 4, 1, 3])
  }

  @Test func `the newest four questions about strangers wait behind the one that is shown`() {
    var queue = QuestionQueue()
    #expect(queue.add(0, text("0?"), isVerified: false) == nil)
    _ = queue.next(start)
    for number in 1...4 { #expect(queue.add(UInt32(number), text("?"), isVerified: false) == nil) }
    for number in 10...30 { #expect(queue.add(UInt32(number), text("?"), isVerified: true) == nil) }
    for number in 5...9 { #expect(queue.add(UInt32(number), text("?"), isVerified: false) == UInt32(number - 4)) }
    #expect(queue.removeAll() == [0] + (10...30) + (6...9).map { UInt32($0) })
  }

  @Test func `a question that was not shown yet is removed without a trace`() {
    var queue = queue("one?")
    #expect(queue.remove(0) == false)
    #expect(queue.remove(7) == false)
    #expect(queue.isEmpty && queue.next(start) == nil && queue.again(start) == nil)
  }

  @Test func `all questions are removed when answers are no longer possible`() {
    var queue = queue("one?", "two?")
    _ = queue.next(start)
    #expect(queue.removeAll() == [0, 1])
    #expect(queue.isEmpty && queue.deadline == .never && queue.answer() == nil)
  }
}
