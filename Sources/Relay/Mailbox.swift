import Channel
import Primitives

/// Messages that wait in the node for somebody who wants their kind: at most the first one of each lane of each peer, in
/// the order in which they came there.
struct Mailbox {
  /// How long a message that nobody wants waits before its sender is told that nobody listens.
  static let readerTime = TimeSpan.seconds(5)

  struct Waiting {
    let peer: NodeID
    let message: PendingMessage
    let since: Instant

    /// When it will have waited long enough.
    var end: Instant { since + Mailbox.readerTime }
  }

  private var waiting: [Waiting] = []

  /// The node told of a message.
  mutating func add(_ message: PendingMessage, from peer: NodeID, now: Instant) {
    waiting.append(Waiting(peer: peer, message: message, since: now))
  }

  /// The first message that `wants` wants, to be taken from the node: it waits no more.
  mutating func next(now: Instant, _ wants: (_ kind: UInt8, _ hasWaited: Bool) -> Bool) -> Waiting? {
    guard let index = waiting.firstIndex(where: { wants($0.message.kind, $0.end <= now) }) else { return nil }
    return waiting.remove(at: index)
  }

  /// When the next message will have waited long enough. One that has and still waits does so for a client with room.
  func deadline(after now: Instant) -> Instant {
    var earliest = Instant.never
    for entry in waiting where entry.end > now { earliest = min(earliest, entry.end) }
    return earliest
  }
}
