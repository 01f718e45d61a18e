import Primitives
import Text

/// Limits the lines that other nodes can cause on a terminal. The first lines of each node about each subject are
/// shown. Further lines are omitted. At most once a minute the last omitted line is shown, with the number of omitted
/// lines.
///
/// All nodes without a verified key share one quota, because a node can create any number of keys. All nodes with a
/// verified key share a second quota of the same size.
///
/// The owner calls `admits` for each line. When `nextDeadline` has passed, and once more at the end, the owner calls
/// `nextCount` until the result is nil.
public struct PeerNotices {
  /// The subject of a line. `declined` to `ended` are events that any node can cause. `member` and `service` are
  /// changes of the state of a session's member or of a service.
  public enum Subject: UInt8, Sendable {
    case declined, withdrawn, interrupted, ended, member, service

    /// The number of lines about this subject that are shown for one node in a minute.
    var burst: Int {
      switch self {
      case .declined, .interrupted: 1
      // These lines cancel a question on the screen, so the user must see several of them.
      case .withdrawn, .ended: 4
      case .member: 8
      // Enough to show all services of a node several times.
      case .service: 64
      }
    }

    var isState: Bool {
      switch self {
      case .declined, .withdrawn, .interrupted, .ended: false
      case .member, .service: true
      }
    }
  }

  /// The quota that all verified nodes, or all unverified nodes, share.
  struct Quota {
    /// The maximum number of entries, one for each pair of node and subject. A neighbour can fill the entries of
    /// unverified nodes with many keys. Lines that get no entry are omitted and counted together.
    let entriesMax: Int
    /// The maximum rate of the lines that are shown for all nodes of the quota, including lines with counts.
    let rate: TokenRate

    static let events = Quota(entriesMax: 32, rate: TokenRate(interval: .seconds(3), burst: 16))
    /// The burst has room for the maximum number of nodes, 256, with 4 services each.
    static let states = Quota(entriesMax: 256, rate: TokenRate(interval: .milliseconds(100), burst: 1_024))
  }

  public static let countTime = TimeSpan.seconds(60)

  fileprivate struct Entry {
    let node: NodeID
    let subject: Subject
    let until: Instant
    var shown = 1
    var more = 0
    var last = TextBuilder()
  }

  fileprivate struct Share {
    let quota: Quota
    var bucket = TokenBucket()
    var entries: [Entry] = []
    /// The number of omitted lines of nodes that have no entry, and the time when the number is shown.
    var others = 0
    var othersUntil = Instant.never
  }

  /// In this order: events of unverified nodes, events of verified nodes, states of unverified nodes, states of
  /// verified nodes.
  private var shares = [Quota.events, .events, .states, .states].map { Share(quota: $0) }

  public init() {}

  /// Whether to show a line now. If not, the line is omitted and counted.
  public mutating func admits(
    _ text: TextBuilder, _ subject: Subject, of node: NodeID, isVerified: Bool, now: Instant
  ) -> Bool {
    shares[(subject.isState ? 2 : 0) + (isVerified ? 1 : 0)].admits(text, subject, node, now)
  }

  /// The next count of omitted lines that is due, as a line; nil if none is due. With `isLast`, all counts are due.
  public mutating func nextCount(now: Instant, isLast: Bool = false) -> TextBuilder? {
    for index in shares.indices {
      if let line = shares[index].nextCount(now, isLast) { return line }
    }
    return nil
  }

  public var nextDeadline: Instant { shares.reduce(.never) { min($0, $1.nextDeadline) } }
}

extension PeerNotices.Share {
  fileprivate mutating func admits(
    _ text: TextBuilder, _ subject: PeerNotices.Subject, _ node: NodeID, _ now: Instant
  ) -> Bool {
    entries.removeAll { $0.until <= now && $0.more == 0 }
    if let index = entries.firstIndex(where: { $0.node == node && $0.subject == subject }) {
      if entries[index].shown < subject.burst && entries[index].more == 0 && bucket.take(quota.rate, now: now) {
        entries[index].shown += 1
        return true
      }
      entries[index].more += 1
      entries[index].last = text
      return false
    }
    guard entries.count < quota.entriesMax, bucket.take(quota.rate, now: now) else {
      others += 1
      othersUntil = min(othersUntil, now + PeerNotices.countTime)
      return false
    }
    entries.append(PeerNotices.Entry(node: node, subject: subject, until: now + PeerNotices.countTime))
    return true
  }

  fileprivate mutating func nextCount(_ now: Instant, _ isLast: Bool) -> TextBuilder? {
    if let index = entries.firstIndex(where: { $0.more > 0 && ($0.until <= now || isLast) }) {
      let entry = entries.remove(at: index)
      // If the rate allows no line now, the omitted lines are counted with those of nodes without an entry.
      guard isLast || bucket.take(quota.rate, now: now) else {
        others += entry.more
        othersUntil = min(othersUntil, now + PeerNotices.countTime)
        return nextCount(now, isLast)
      }
      // The entry stays for another minute, in which further lines of this node and subject are only counted.
      if !isLast {
        entries.append(
          PeerNotices.Entry(
            node: entry.node, subject: entry.subject, until: now + PeerNotices.countTime, shown: entry.subject.burst))
      }
      var line = entry.last
      line.add(" (")
      line.add(UInt64(entry.more))
      line.add(
        entry.more == 1 ? " more line like this was left out)" : " more lines like this were left out)" as StaticString)
      return line
    }
    guard others > 0, othersUntil <= now || isLast else { return nil }
    var line = TextBuilder()
    line.add(UInt64(others))
    line.add(others == 1 ? " line" : " lines" as StaticString)
    line.add(" about other peers ")
    line.add(others == 1 ? "was" : "were" as StaticString)
    line.add(" left out")
    (others, othersUntil) = (0, .never)
    return line
  }

  fileprivate var nextDeadline: Instant {
    entries.reduce(othersUntil) { $1.more > 0 ? min($0, $1.until) : $0 }
  }
}
