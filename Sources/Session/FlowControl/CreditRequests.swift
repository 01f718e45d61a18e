/// When members' requests for credit are examined, and their order.
struct CreditRequests {
  /// Whether a member requested credit, or buffer space became free, since the requests were examined last.
  private var isDue = false
  private var lastTurn: UInt64 = 0

  /// Notes a request. Returns its number in the order of arrival.
  mutating func request() -> UInt64 {
    isDue = true
    lastTurn += 1
    return lastTurn
  }

  /// Notes that buffer space may have become free.
  mutating func roomAppeared() { isDue = true }

  /// Returns whether the requests must be examined now. They are then not due until the next change.
  mutating func takeDue() -> Bool {
    defer { isDue = false }
    return isDue
  }
}
