import Diagnostics
import LocalAPI
import Primitives
import Reactor
import Session

/// Lines of output that other nodes can cause. `PeerNotices` limits them; the omitted ones are counted.
final class PeerLines {
  private var notices = PeerNotices()
  private let show: (TextBuilder) -> Void

  init(_ show: @escaping (TextBuilder) -> Void) { self.show = show }

  func tell(_ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer) {
    if admits(text, subject, of: node, peer) { show(text) }
  }

  /// Whether a line may be shown. `text` is its form for people, even if another form is printed.
  func admits(_ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer) -> Bool {
    notices.admits(text, subject, of: node, isVerified: peer.isVerified, now: monotonicNow())
  }

  /// The line, or nil if it must not be shown.
  func admitted(
    _ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer
  ) -> TextBuilder? {
    admits(text, subject, of: node, peer) ? text : nil
  }

  /// When the next count is due.
  var nextDeadline: Instant { notices.nextDeadline }

  /// Shows the counts that are due, or all of them at the end.
  func tellCounts(isLast: Bool = false) {
    while let text = notices.nextCount(now: monotonicNow(), isLast: isLast) { show(text) }
  }
}
