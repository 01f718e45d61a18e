import Primitives
import Testing

@Test func `pauses double up to the maximum`() {
  var backoff = Backoff(first: .seconds(1), longest: .seconds(5))
  #expect((0..<5).map { _ in backoff.take() } == [1, 2, 4, 5, 5].map { .seconds($0) })
}

@Test func `a back-off that was reset starts with the first pause`() {
  var backoff = Backoff(first: .milliseconds(500), longest: .seconds(60))
  backoff.double()
  #expect(backoff.pause == .seconds(1))
  backoff.reset()
  #expect(backoff.take() == .milliseconds(500))
}

@Test func `the pause of a back-off is computed from the number of failures`() {
  let pauses = [-1, 0, 1, 2, 3, 4, 40, .max].map { Backoff.pause(after: $0, first: .seconds(1), longest: .seconds(10)) }
  #expect(pauses == [1, 1, 2, 4, 8, 10, 10, 10].map { .seconds($0) })
}
