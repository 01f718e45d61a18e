/// How senders share the places of a receiver: those for offers and transfers, or others of which one sender could take all.
///
/// The sender that holds most gives way to a newcomer that would still hold less, and else one of another sender that has not moved for
/// `TransferLimits.stillSeconds`. Senders that nobody has accepted leave a quarter of the places to others,
/// and give way first.
public struct TransferPlaces<Sender: Equatable> {
  /// One place that is taken.
  public struct Entry {
    public var sender: Sender
    /// It was accepted, or its sender is one that is accepted without a question.
    public var isTrusted: Bool
    /// Since something came of it last, in milliseconds.
    public var stillMilliseconds: UInt64
    /// False for what cannot be taken back at present.
    public var mayYield: Bool

    public init(sender: Sender, isTrusted: Bool, stillMilliseconds: UInt64, mayYield: Bool = true) {
      self.sender = sender
      self.isTrusted = isTrusted
      self.stillMilliseconds = stillMilliseconds
      self.mayYield = mayYield
    }
  }

  /// Where a newcomer finds its place.
  public enum Place: Equatable {
    case free
    /// In the place of this entry, which waits outside.
    case instead(of: Int)
    case none
  }

  private let entries: [Entry]
  private let capacity: Int

  public init(_ entries: [Entry], of capacity: Int) {
    self.entries = entries
    self.capacity = capacity
  }

  /// The place for one more of a sender.
  public func place(for sender: Sender, isTrusted: Bool) -> Place {
    let strangers = entries.count { !$0.isTrusted }
    if entries.count < capacity && (isTrusted || strangers < capacity - capacity / 4) { return .free }
    if isTrusted, let index = victim(where: { !$0.isTrusted }) { return .instead(of: index) }
    let isRival = { (entry: Entry) in entry.isTrusted == isTrusted }
    guard let index = victim(where: isRival) else { return .none }
    if count(entries[index].sender, isRival) > count(sender, isRival) + 1 { return .instead(of: index) }
    let still = TransferLimits.stillSeconds * 1_000
    let other = victim { isRival($0) && $0.sender != sender && $0.stillMilliseconds >= still }
    return other.map { .instead(of: $0) } ?? .none
  }

  private func count(_ sender: Sender, _ isRival: (Entry) -> Bool) -> Int {
    entries.count { $0.sender == sender && isRival($0) }
  }

  /// The entry that has moved least, among those of the sender that holds most.
  private func victim(where isRival: (Entry) -> Bool) -> Int? {
    var found: (index: Int, count: Int)?
    for (index, entry) in entries.enumerated() where entry.mayYield && isRival(entry) {
      let count = count(entry.sender, isRival)
      if let found {
        if count < found.count { continue }
        if count == found.count && entry.stillMilliseconds <= entries[found.index].stillMilliseconds { continue }
      }
      found = (index, count)
    }
    return found?.index
  }
}
