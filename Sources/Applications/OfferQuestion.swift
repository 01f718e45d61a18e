import CommandLine
import LocalAPI
import Primitives
import Session
import Terminal
import Text

/// The question to the user whether to accept an offer. The transfer of the offer keeps the question while it waits for
/// the answer, and withdraws the question when it no longer waits.
struct OfferQuestion {
  /// The number of the question in `Prompts`.
  let number: UInt32
  private let prompts: Prompts
  private let lines: PeerLines
  private let name: [UInt8]
  private let node: NodeID
  private let peer: LocalPeer

  init(_ transfer: IncomingFiles, _ peer: LocalPeer, _ prompts: Prompts, _ lines: PeerLines) {
    number = transfer.stream
    (name, node) = (transfer.name, transfer.from.node)
    (self.prompts, self.lines, self.peer) = (prompts, lines, peer)
  }

  /// Ends the question. If it is on the screen, prints that no answer is needed.
  func withdraw() {
    let text = TextBuilder(name: name, ": the offer has ended, no answer is needed")
    prompts.withdraw(number, lines.admitted(text, .withdrawn, of: node, peer))
  }
}
