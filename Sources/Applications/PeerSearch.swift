import CommandLine
import DaemonClient
import Primitives
import Text

/// Searches for the peer that the user named on the command line, until the peer appears.
struct PeerSearch {
  /// The result of one search.
  enum Result {
    case nothing
    case found(NamedPeer)
    /// A notice to show once: the name may be misspelt. The search goes on, because the user gave --wait.
    case hint(TextBuilder)
    case failed(TextBuilder)
  }

  let word: [UInt8]
  private let isWaiting: Bool
  private(set) var peer: NamedPeer?
  /// Whether the daemon has reported all services that are in reach.
  var isAllTold = false
  private var hasHinted = false

  /// `isWaiting`: whether the user gave --wait.
  init(_ word: [UInt8], isWaiting: Bool) {
    self.word = word
    self.isWaiting = isWaiting
  }

  mutating func look(in sightings: [Sighting]) -> Result {
    if peer != nil { return .nothing }
    switch NameMatch(word, in: sightings) {
    case .one(let found):
      peer = found
      return .found(found)
    case .several(let peers): return .failed(severalText(word, peers.map { $0.node }))
    case .nobody(let suggestion):
      guard isAllTold, !hasHinted, let suggestion else { return .nothing }
      hasHinted = true
      var text = TextBuilder(quoting: word, " is not in reach: did you mean “")
      text.add(untrusted: suggestion)
      text.add("”?")
      if isWaiting { return .hint(text) }
      text.add(" (--wait SECONDS waits for the name as given)")
      return .failed(text)
    }
  }
}
