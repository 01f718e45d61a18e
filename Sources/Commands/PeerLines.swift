import Diagnostics
import LocalAPI
import Primitives
import Reactor
import Session

/// The lines of a command that other nodes can cause: those that `PeerNotices` admits, and its counts.
final class PeerLines {
  private var notices = PeerNotices()
  private let show: (TextBuilder) -> Void

  init(_ show: @escaping (TextBuilder) -> Void) { self.show = show }

  func tell(_ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer) {
    if admits(text, subject, of: node, peer) { show(text) }
  }

  /// For a line of another form, of which `text` is the one for people.
  func admits(_ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer) -> Bool {
    notices.admits(text, subject, of: node, isVerified: peer.isVerified, now: monotonicNow())
  }

  /// A line if it is shown.
  func admitted(
    _ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer
  ) -> TextBuilder? {
    admits(text, subject, of: node, peer) ? text : nil
  }

  /// When a count is due.
  var nextDeadline: Instant { notices.nextDeadline }

  /// The counts that are due, or all of them at the end.
  func tellCounts(isLast: Bool = false) {
    while let text = notices.nextCount(now: monotonicNow(), isLast: isLast) { show(text) }
  }
}
