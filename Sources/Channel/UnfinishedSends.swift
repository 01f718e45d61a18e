/// The sends of one lane whose completion the owner has not taken, oldest first.
struct UnfinishedSends {
  private enum State { case pending, delivered, failed(SendFailure) }
  private struct Entry {
    var id: MessageID
    var stream: ByteRange
    var state: State
  }
  /// The maximum memory in bytes: all entries of a lane, and half as many again while the buffer is copied into a
  /// larger one.
  static let bytesMax = ChannelLimits.unfinishedMessagesMax * MemoryLayout<Entry>.stride * 3 / 2

  /// A circular buffer that doubles on demand.
  private var entries: [Entry] = []
  private var first = 0
  private var count = 0
  private let countMax: Int

  init(countMax: Int) { self.countMax = countMax }

  var isFull: Bool { count == countMax }
  var isEmpty: Bool { count == 0 }

  /// Whether any send is pending whose last byte is not acknowledged.
  func hasPending(above acknowledged: UInt64) -> Bool {
    guard count > 0 else { return false }
    let newest = entries[slot(count - 1)]
    return if case .pending = newest.state { newest.stream.end > acknowledged } else { false }
  }

  mutating func append(_ id: MessageID, stream: ByteRange) {
    precondition(!isFull)
    let entry = Entry(id: id, stream: stream, state: .pending)
    if count == entries.count { grow(filledWith: entry) }
    entries[slot(count)] = entry
    count += 1
  }

  /// Ends every pending send. A send whose bytes are all acknowledged is delivered; any other send has failed.
  mutating func failPending(_ failure: SendFailure, acknowledged: UInt64) {
    for index in 0..<count {
      let at = slot(index)
      guard case .pending = entries[at].state else { continue }
      entries[at].state = entries[at].stream.end <= acknowledged ? .delivered : .failed(failure)
    }
  }

  /// The end of the pending message that contains `position`, or `position` itself between two messages.
  func messageEnd(at position: UInt64) -> UInt64 {
    for index in 0..<count {
      let entry = entries[slot(index)]
      guard case .pending = entry.state, entry.stream.start < position, position < entry.stream.end else { continue }
      return entry.stream.end
    }
    return position
  }

  /// Removes and returns the oldest send if it was delivered or has failed; otherwise returns nil.
  mutating func next(acknowledged: UInt64) -> (id: MessageID, outcome: Completion.Outcome)? {
    guard count > 0 else { return nil }
    let entry = entries[first]
    let outcome: Completion.Outcome
    switch entry.state {
    case .pending:
      guard entry.stream.end <= acknowledged else { return nil }
      outcome = .delivered
    case .delivered: outcome = .delivered
    case .failed(let failure): outcome = .failed(failure)
    }
    first = slot(1)
    count -= 1
    return (entry.id, outcome)
  }

  private mutating func grow(filledWith entry: Entry) {
    var larger = [Entry](repeating: entry, count: min(max(2 * count, 8), countMax))
    for index in 0..<count { larger[index] = entries[slot(index)] }
    entries = larger
    first = 0
  }

  private func slot(_ index: Int) -> Int { (first + index) % entries.count }
}
