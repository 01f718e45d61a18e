import Primitives

/// The places for packets that are longer than what each client may send at any time: who has one, and who waits. The users
/// of the box share them. Among those that wait, the one whose user has fewest is first.
public struct LongPacketPlaces {
  private struct Entry {
    let client: Int
    let user: UInt32
    let isOperator: Bool
    /// Since when it waits, or has a place.
    var since: Instant
  }

  private var holders: [Entry] = []
  private var waiting: [Entry] = []

  public init() {}

  /// A client has begun a long packet. `next` gives it a place, at once or later.
  public mutating func ask(_ client: Int, user: UInt32, isOperator: Bool, now: Instant) {
    waiting.append(Entry(client: client, user: user, isOperator: isOperator, since: now))
  }

  /// The packet is complete, or the client is gone.
  public mutating func leave(_ client: Int) {
    holders.removeAll { $0.client == client }
    waiting.removeAll { $0.client == client }
  }

  /// The next client that gets a place; nil when there is none for anybody.
  public mutating func next(now: Instant) -> Int? {
    var best: (index: Int, held: Int)?
    for index in waiting.indices {
      let held = holders.count { $0.user == waiting[index].user }
      guard
        LocalLimits.longPackets.mayTake(
          1, held: held, taken: holders.count, isFavoured: waiting[index].isOperator),
        held < best?.held ?? .max
      else { continue }
      best = (index, held)
    }
    guard let best else { return nil }
    var entry = waiting.remove(at: best.index)
    entry.since = now
    holders.append(entry)
    return entry.client
  }

  /// When a client has had its place for too long, while another one waits.
  public var nextDeadline: Instant {
    waiting.isEmpty ? .never : holders.first.map { $0.since + LocalLimits.longPacketTime } ?? .never
  }

  /// The client that has had its place for longest, and for too long, while another one waits: for the host to close.
  public func overdue(now: Instant) -> Int? { nextDeadline <= now ? holders.first?.client : nil }
}
