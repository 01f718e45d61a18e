import CommandLine
import Text
import LocalAPI
import Session
import Transfer
import TransferFiles

/// The notices of `causeway send` that are shown once, although their cause repeats with each attempt.
struct SendNotices {
  private let view: FilesView
  private var hasShownWaiting = false
  private var hasShownFull = false
  private var hasShownAsking = false
  /// The number of files of this attempt whose results were shown.
  private var filesShown = 0

  init(_ view: FilesView) { self.view = view }

  /// Shows that the command waits for PEER, which is not in reach.
  mutating func waiting(for word: [UInt8]) {
    if hasShownWaiting || view.isJSON { return }
    hasShownWaiting = true
    view.notice(TextBuilder(quoting: word, " is not receiving yet: waiting for it"))
  }

  /// Shows that the daemon has no room for an invitation, which is repeated.
  mutating func full(_ reason: TextBuilder) {
    if hasShownFull || view.isJSON { return }
    hasShownFull = true
    var text = reason
    text.add("; retrying (^C ends)")
    view.notice(text)
  }

  /// Shows that PEER is asked to accept.
  mutating func asking(_ peer: LocalPeer, _ address: MemberAddress, _ manifest: Manifest) {
    if hasShownAsking { return }
    hasShownAsking = true
    view.printQuestion(peer, address, manifest)
  }

  /// Handles the beginning of an attempt, in which the receiver reports each file again.
  mutating func attemptBegins() { filesShown = 0 }

  /// Shows the results of files that the receiver has reported since the last call.
  mutating func files(_ work: OutgoingWork) {
    let sender = work.sender
    while filesShown < sender.manifest.files.count, let verdict = sender.verdicts[filesShown] {
      view.printFile(work.path(filesShown), sender.manifest.size(file: filesShown), verdict)
      filesShown += 1
    }
  }
}
