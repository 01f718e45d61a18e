/// The policy by which senders share a receiver's places, such as those for offers and transfers.
///
/// A newcomer without a free place takes the place of the sender with the most entries, if it would still hold fewer
/// than that sender. Otherwise it takes the place of another sender's entry that has been idle for
/// `TransferLimits.stillSeconds`. Untrusted senders leave a quarter of the places to others and give way first.
public struct TransferPlaces<Sender: Equatable> {
  /// An occupied place.
  public struct Entry {
    public var sender: Sender
    /// Whether the entry was accepted, or its sender needs no acceptance.
    public var isTrusted: Bool
    /// The time since its last bytes arrived, in milliseconds.
    public var stillMilliseconds: UInt64
    /// Whether the entry can give way at present.
    public var mayYield: Bool

    public init(sender: Sender, isTrusted: Bool, stillMilliseconds: UInt64, mayYield: Bool = true) {
      self.sender = sender
      self.isTrusted = isTrusted
      self.stillMilliseconds = stillMilliseconds
      self.mayYield = mayYield
    }
  }

  /// The place for a newcomer.
  public enum Place: Equatable {
    case free
    /// The place of this entry, which gives way and waits outside.
    case instead(of: Int)
    case none
  }

  private let entries: [Entry]
  private let capacity: Int

  public init(_ entries: [Entry], of capacity: Int) {
    self.entries = entries
    self.capacity = capacity
  }

  /// The place for another entry of a sender.
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

  /// The entry that has been idle longest, among those of the sender with the most entries.
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
