import Primitives

/// Limits the lines that other nodes can cause on a terminal. It admits the first lines of each node and subject.
/// Afterwards it shows, at most once a minute, the last line with the number of omitted ones.
///
/// Nodes without a verified key share one quota, because keys cost nothing. Nodes with a verified key share another
/// quota of the same size.
///
/// The owner calls `admits` for each line. It calls `nextCount` until the result is nil, whenever `nextDeadline` has
/// passed and at the end.
public struct PeerNotices {
  /// The subject of a line: an event that any node can cause, or the state of a member or a service.
  public enum Subject: UInt8, Sendable {
    case declined, withdrawn, interrupted, ended, member, service

    /// The number of lines that one node may cause per minute.
    var burst: Int {
      switch self {
      case .declined, .interrupted: 1
      // The user must see that a prompt on the screen is void.
      case .withdrawn, .ended: 4
      case .member: 8
      // All services of a node, several times.
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

  /// The quota that a class of nodes shares.
  struct Quota {
    /// The maximum number of tracked pairs of node and subject. A neighbour with many keys can fill the entries of
    /// unverified nodes. Lines without an entry are counted together.
    let entriesMax: Int
    /// The rate of lines of all nodes, including lines with counts.
    let rate: TokenRate

    static let events = Quota(entriesMax: 32, rate: TokenRate(interval: .seconds(3), burst: 16))
    /// Allows the maximum number of nodes, with some services each, at once.
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
    /// The number of omitted lines of nodes without an entry, and when it is due.
    var others = 0
    var othersUntil = Instant.never
  }

  /// Events of unverified and of verified nodes, then states of both.
  private var shares = [Quota.events, .events, .states, .states].map { Share(quota: $0) }

  public init() {}

  /// Whether to show a line now.
  public mutating func admits(
    _ text: TextBuilder, _ subject: Subject, of node: NodeID, isVerified: Bool, now: Instant
  ) -> Bool {
    shares[(subject.isState ? 2 : 0) + (isVerified ? 1 : 0)].admits(text, subject, node, now)
  }

  /// The next due count as a line, or nil. With `isLast`, all counts are due.
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
      // Without a token, the lines are counted with those of other nodes.
      guard isLast || bucket.take(quota.rate, now: now) else {
        others += entry.more
        othersUntil = min(othersUntil, now + PeerNotices.countTime)
        return nextCount(now, isLast)
      }
      // The entry stays for another minute and admits no single line in it.
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
