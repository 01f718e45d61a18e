import LocalAPI
import Primitives
import Session
import Text

/// The peer that a name refers to: a node, or one application on it.
public struct NamedPeer: Equatable {
  public let node: NodeID
  /// The application's endpoint; nil for all applications of the node.
  public let endpoint: UInt32?

  public init(_ node: NodeID, endpoint: UInt32? = nil) {
    self.node = node
    self.endpoint = endpoint
  }

  public func includes(_ address: MemberAddress) -> Bool {
    address.node == node && (endpoint ?? address.endpoint) == address.endpoint
  }
}

/// The result of looking up a name that a person typed.
public enum NameMatch: Equatable {
  case one(NamedPeer)
  case several([NamedPeer])
  /// No peer matches. `suggestion` is a similar name, or nil.
  case nobody(suggestion: [UInt8]?)

  /// Finds a node by its display name or by 4 or more leading digits of its id. Finds an application by the name that
  /// it chose. An exact match takes precedence over a match that differs in upper and lower case. A word of 8 or 32
  /// digits is always an id.
  public init(_ word: [UInt8], in sightings: [Sighting]) {
    let isID = looksLikeNodeID(word.span.bytes)
    let folded = Self.folded(word)
    var exact: [NamedPeer] = [], alike: [NamedPeer] = []
    for sighting in sightings {
      let address = sighting.address
      let node = NamedPeer(address.node), application = NamedPeer(address.node, endpoint: address.endpoint)
      if address.node.begins(withDigits: word) { Self.add(node, to: &exact) }
      if isID { continue }
      if sighting.peer.name == word { Self.add(node, to: &exact) }
      if Self.folded(sighting.peer.name) == folded { Self.add(node, to: &alike) }
      guard let chosen = sighting.chosenName else { continue }
      if chosen == word { Self.add(application, to: &exact) }
      if Self.folded(chosen) == folded { Self.add(application, to: &alike) }
    }
    let found = exact.isEmpty ? alike : exact
    if found.count == 1 {
      self = .one(found[0])
    } else if found.isEmpty {
      self = .nobody(suggestion: isID ? nil : Self.suggestion(folded, sightings))
    } else {
      self = .several(found)
    }
  }

  /// Adds a match. A matching node replaces matches of its applications. An application is not added if its node has
  /// matched.
  private static func add(_ peer: NamedPeer, to found: inout [NamedPeer]) {
    if found.contains(where: { $0 == peer || $0 == NamedPeer(peer.node) }) { return }
    if peer.endpoint == nil { found.removeAll { $0.node == peer.node } }
    found.append(peer)
  }

  private static func names(_ sighting: Sighting) -> [[UInt8]] {
    sighting.chosenName.map { [sighting.peer.name, $0] } ?? [sighting.peer.name]
  }

  /// The most similar name. The similar name starts with the word, or differs from the word by at most two letters: by
  /// one letter if the word is short.
  private static func suggestion(_ word: [UInt32], _ sightings: [Sighting]) -> [UInt8]? {
    guard word.count <= wordScalarsMax else { return nil }
    var best: [UInt8]?
    var least = word.count <= shortScalars ? 2 : 3
    for name in sightings.flatMap({ names($0) }) {
      let candidate = folded(name)
      let isBeginning = word.count > 1 && candidate.starts(with: word)
      let steps = isBeginning ? 1 : distance(word, candidate)
      if steps < least && candidate.count <= wordScalarsMax { (best, least) = (name, steps) }
    }
    return best
  }

  /// Names have at most 63 bytes.
  private static let wordScalarsMax = 63
  private static let shortScalars = 4

  /// The number of insertions, deletions, substitutions and transpositions of neighbours (optimal string alignment).
  static func distance(_ a: [UInt32], _ b: [UInt32]) -> Int {
    var before: [Int] = [], row = Array(0...b.count)
    for i in a.indices {
      var next = [i + 1]
      for j in b.indices {
        var least = min(row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { least = min(least, before[j - 1] + 1) }
        next.append(least)
      }
      (before, row) = (row, next)
    }
    return row[b.count]
  }

  /// The case-folded characters, for the Latin, Greek and Cyrillic alphabets. The complete Unicode tables would need
  /// 700 kB.
  public static func folded(_ text: [UInt8]) -> [UInt32] {
    var scalars: [UInt32] = []
    var decoder = UTF8()
    var iterator = text.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): scalars.append(lower(scalar.value))
      case .emptyInput: return scalars
      case .error: scalars.append(0xFFFD)
      }
    }
  }

  private static func lower(_ scalar: UInt32) -> UInt32 {
    switch scalar {
    case 0x41...0x5A, 0xC0...0xD6, 0xD8...0xDE, 0x391...0x3A9, 0x410...0x42F: scalar + 0x20
    case 0x400...0x40F: scalar + 0x50
    // Upper and lower case alternate in these ranges. The upper-case letter has the even code point in this case, and
    // the odd code point in the next case.
    case 0x100...0x12F, 0x132...0x137, 0x14A...0x177, 0x460...0x481, 0x48A...0x4BF, 0x1E00...0x1E95: scalar | 1
    case 0x139...0x148, 0x179...0x17E: scalar + (scalar & 1)
    default: scalar
    }
  }
}
