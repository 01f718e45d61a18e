import CommandLine
import LocalAPI
import Primitives
import Terminal
import Text

/// Lines of output that other nodes can cause. `PeerNotices` limits the number of lines, and counts the omitted lines.
final class PeerLines {
  private var notices = PeerNotices()
  private let console: any Console
  private let show: (TextBuilder) -> Void

  init(_ console: any Console, _ show: @escaping (TextBuilder) -> Void) {
    self.console = console
    self.show = show
  }

  func write(_ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer) {
    if admits(text, subject, of: node, peer) { show(text) }
  }

  /// Whether a line may be shown. `text`: the line as text for people, even if the caller prints JSON.
  func admits(_ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer) -> Bool {
    notices.admits(text, subject, of: node, isVerified: peer.isVerified, now: console.now)
  }

  /// Returns `text` if the line may be shown, otherwise nil.
  func admitted(
    _ text: TextBuilder, _ subject: PeerNotices.Subject, of node: NodeID, _ peer: LocalPeer
  ) -> TextBuilder? {
    admits(text, subject, of: node, peer) ? text : nil
  }

  /// The time when the next count of omitted lines is due.
  var nextDeadline: Instant { notices.nextDeadline }

  /// Shows the counts of omitted lines that are due, or with `isLast` all counts.
  func printOmittedCounts(isLast: Bool = false) {
    while let text = notices.nextCount(now: console.now, isLast: isLast) { show(text) }
  }
}
