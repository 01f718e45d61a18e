import Channel
import Primitives

/// Messages that wait in their channels for somebody who wants their kind.
struct Mailbox {
  /// How long the first unwanted message of a lane waits before its sender is told that nobody listens.
  static let readerTime = TimeSpan.seconds(5)

  private var waiting: [(peer: NodeID, lane: Lane, since: Instant)] = []

  /// Whether the lane's first message has waited long enough; from the first call on it waits.
  mutating func hasWaited(_ peer: NodeID, _ lane: Lane, now: Instant) -> Bool {
    if let entry = waiting.first(where: { $0.peer == peer && $0.lane == lane }) {
      return entry.since + Self.readerTime <= now
    }
    waiting.append((peer, lane, now))
    return false
  }

  /// The lane's first message was taken; the next one waits anew.
  mutating func taken(_ peer: NodeID, _ lane: Lane) { waiting.removeAll { $0.peer == peer && $0.lane == lane } }

  /// Forget who waited long enough and was not taken all the same: its channel may have begun anew.
  mutating func forgetExpired(now: Instant) { waiting.removeAll { $0.since + Self.readerTime <= now } }

  /// When a message will have waited long enough.
  var deadline: Instant {
    var earliest = Instant.never
    for entry in waiting { earliest = min(earliest, entry.since + Self.readerTime) }
    return earliest
  }
}
