import Primitives

/// The slots for packets from clients that are longer than `LocalLimits.shortPacketBytesMax`. The users of the node
/// share the slots. If several clients wait, the client whose user has the fewest slots is first.
public struct LongPacketSlots {
  private struct Entry {
    let client: Int
    let user: UInt32
    let isOperator: Bool
    /// The time since which the client waits, or since which the client has a slot.
    var since: Instant
  }

  private var holders: [Entry] = []
  private var waiting: [Entry] = []

  public init() {}

  /// Queues a client that has begun a long packet. `next` assigns the slot.
  public mutating func ask(_ client: Int, user: UInt32, isOperator: Bool, now: Instant) {
    waiting.append(Entry(client: client, user: user, isOperator: isOperator, since: now))
  }

  /// Removes a client whose packet is complete or whose connection has ended.
  public mutating func leave(_ client: Int) {
    holders.removeAll { $0.client == client }
    waiting.removeAll { $0.client == client }
  }

  /// Assigns a slot to the next waiting client and returns the client. Returns nil if no waiting client can have a
  /// slot.
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

  /// The time at which the client with the oldest slot becomes overdue; `.never` while no client waits.
  public var nextDeadline: Instant {
    waiting.isEmpty ? .never : holders.first.map { $0.since + LocalLimits.longPacketTime } ?? .never
  }

  /// The client that has had a slot for longest, if it is overdue and another client waits. The host then closes the
  /// connection of the overdue client.
  public func overdue(now: Instant) -> Int? { nextDeadline <= now ? holders.first?.client : nil }
}
