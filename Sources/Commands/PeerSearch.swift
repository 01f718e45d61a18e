import Diagnostics
import LocalAPI
import LocalClient
import Primitives
import Session

/// Looks for the peer that the user named, as long as it is not there.
struct PeerSearch {
  /// What a look has found out.
  enum Result {
    case nothing
    case found(NamedPeer)
    /// To be told once: the name may be misspelt, and the user said how long to wait for it.
    case hint(TextBuilder)
    case failed(TextBuilder)
  }

  let word: [UInt8]
  private let isWaiting: Bool
  private(set) var peer: NamedPeer?
  /// All who are in reach have been told.
  var isAllTold = false
  private var hasHinted = false

  /// `isWaiting`: the user said how long to wait.
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
      var text = TextBuilder(quoting: word, " is not there: did you mean “")
      text.add(untrusted: suggestion)
      text.add("”?")
      if isWaiting { return .hint(text) }
      text.add(" (--wait SECONDS waits for the other name)")
      return .failed(text)
    }
  }
}

/// Several nodes are called the same.
func severalText(_ word: [UInt8], _ nodes: [NodeID]) -> TextBuilder {
  var text = TextBuilder("several peers are called “")
  text.add(untrusted: word)
  for (index, node) in nodes.enumerated() {
    text.add(index == 0 ? "”: " : ", " as StaticString)
    text.add(node.text)
  }
  text.add("; name one by the start of its id")
  return text
}
