import Channel
import Primitives

/// Messages in the node that wait for a control client: at most the first one of each lane of each peer, in order of
/// arrival.
struct Mailbox {
  /// How long a message without a listener waits before its sender is told so.
  static let readerTime = TimeSpan.seconds(5)

  struct Waiting {
    let peer: NodeID
    let message: PendingMessage
    let since: Instant

    /// When it has waited for `readerTime`.
    var end: Instant { since + Mailbox.readerTime }
  }

  private var waiting: [Waiting] = []

  /// The node reported a message.
  mutating func add(_ message: PendingMessage, from peer: NodeID, now: Instant) {
    waiting.append(Waiting(peer: peer, message: message, since: now))
  }

  /// Removes and returns the first message that `wants` accepts; the caller takes it from the node.
  mutating func next(now: Instant, _ wants: (_ kind: UInt8, _ hasWaited: Bool) -> Bool) -> Waiting? {
    guard let index = waiting.firstIndex(where: { wants($0.message.kind, $0.end <= now) }) else { return nil }
    return waiting.remove(at: index)
  }

  /// When the next message has waited for `readerTime`. Later it only waits for a client with room.
  func deadline(after now: Instant) -> Instant {
    var earliest = Instant.never
    for entry in waiting where entry.end > now { earliest = min(earliest, entry.end) }
    return earliest
  }
}
