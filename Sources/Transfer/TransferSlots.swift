/// The rule by which senders share a receiver's slots. A slot is, for example, room for one offer or transfer.
///
/// If no slot is free, a new entry replaces an existing one, by these rules in order:
///
/// - A trusted sender replaces an entry of an untrusted sender.
/// - A sender replaces an entry of the sender with the most entries, if the former has fewer entries than the latter
///   even afterwards.
/// - A sender replaces an entry of a different sender that has been idle for `TransferLimits.stillSeconds`.
///
/// The last two rules compare trusted senders only with trusted senders, and untrusted senders only with untrusted
/// senders. Untrusted senders can use at most three quarters of the slots.
public struct TransferSlots<Sender: Equatable> {
  /// An occupied slot.
  public struct Entry {
    public var sender: Sender
    /// Whether the user has accepted the offer, or the sender needs no acceptance.
    public var isTrusted: Bool
    /// The time since the last bytes of the entry arrived, in milliseconds.
    public var stillMilliseconds: UInt64
    /// Whether the entry can be replaced at present.
    public var mayYield: Bool

    public init(sender: Sender, isTrusted: Bool, stillMilliseconds: UInt64, mayYield: Bool = true) {
      self.sender = sender
      self.isTrusted = isTrusted
      self.stillMilliseconds = stillMilliseconds
      self.mayYield = mayYield
    }
  }

  /// The slot for a new entry.
  public enum Choice: Equatable {
    case free
    /// The slot of the entry with this index, which loses the slot and whose sender must try again.
    case instead(of: Int)
    case none
  }

  private let entries: [Entry]
  private let capacity: Int

  public init(_ entries: [Entry], of capacity: Int) {
    self.entries = entries
    self.capacity = capacity
  }

  /// The slot for a new entry of a sender.
  public func choose(for sender: Sender, isTrusted: Bool) -> Choice {
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

  /// The index of the entry that has been idle longest, among the entries of the sender with the most entries.
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
