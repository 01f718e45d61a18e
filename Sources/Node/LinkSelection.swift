import Primitives

/// With whom a node links in one broadcast domain, where everybody could reach everybody.
///
/// - A few relays all link with each other.
/// - More relays form two rings, each ordered by a number that follows from the id. A relay links with its successor
///   and its predecessor on both: four links however large the domain is, paths as short as in a random graph, and no
///   single node whose loss divides it. A node that comes or goes changes the links of its neighbours only.
/// - A leaf links with two relays, which follow from both ids, so that leaves spread evenly over the relays. Without a
///   relay in its domain it links with everybody.
///
/// The choice depends on ids alone. Nodes that see the same domain agree: of two relays both want the link or none
/// does. docs/protocol.md, "Who links with whom".
struct LinkSelection {
  /// So many relays, this node included, all link with each other: as many links as two rings give.
  static let cliqueMax = 5
  static let ringCount = 2

  /// The distances to the nearest usable relays on a ring, in both directions; `.max` without any.
  private struct Nearest {
    var ahead = UInt64.max
    var behind = UInt64.max
  }

  private let local: UInt64
  private let relays: Bool
  /// The first usable relays of the domain, as many as tell a clique from a larger domain.
  private var few = FixedArray<5, UInt64>(repeating: 0)
  private var fewCount = 0
  private var nearest = FixedArray<2, Nearest>(repeating: Nearest())
  /// For a leaf: the ranks of its two best usable relays.
  private var ranks = (best: UInt64.max, second: UInt64.max)

  /// `local` is the hint of this node (the first 8 bytes of its id), `relays` whether it forwards.
  init(local: UInt64, relays: Bool) {
    self.local = local
    self.relays = relays
  }

  /// A relay of the domain that can be reached, as far as this node knows. One that is added twice counts once.
  mutating func add(_ relay: UInt64) {
    if relay == local { return }
    if !isAmongFew(relay), fewCount < Self.cliqueMax {
      few[fewCount] = relay
      fewCount += 1
    }
    if !relays {
      let rank = rank(relay)
      if rank < ranks.best {
        ranks = (rank, ranks.best)
      } else if rank != ranks.best {
        ranks.second = min(ranks.second, rank)
      }
      return
    }
    for ring in 0..<Self.ringCount {
      let (ahead, behind) = distances(relay, ring)
      nearest[ring].ahead = min(nearest[ring].ahead, ahead)
      nearest[ring].behind = min(nearest[ring].behind, behind)
    }
  }

  /// Whether any usable relay was added.
  var hasRelay: Bool { fewCount > 0 }

  /// For a leaf: whether a relay is the best one. One that was not added is judged as if it was.
  func prefers(_ relay: UInt64) -> Bool { rank(relay) <= ranks.best }

  /// Whether there are too many relays for everybody to link with everybody.
  var isCrowd: Bool { fewCount >= Self.cliqueMax }

  /// Whether this node wants a link with another one. A relay that was not added is judged as if it was: it is wanted
  /// when it would take the place of one that was.
  func wants(_ other: UInt64, relays isRelay: Bool) -> Bool {
    if !relays { return isRelay ? rank(other) <= ranks.second : fewCount == 0 }
    if !isRelay { return false }
    let others = isAmongFew(other) ? fewCount : fewCount + 1
    if others < Self.cliqueMax { return true }
    for ring in 0..<Self.ringCount {
      let (ahead, behind) = distances(other, ring)
      if ahead <= nearest[ring].ahead || behind <= nearest[ring].behind { return true }
    }
    return false
  }

  /// Whether the other one wants each link that this node wants with it, as far as this node can know.
  func isMutual(relays isRelay: Bool) -> Bool { relays == isRelay }

  private func isAmongFew(_ relay: UInt64) -> Bool {
    for index in 0..<fewCount where few[index] == relay { return true }
    return false
  }

  /// From this node to another one, around a ring in both directions.
  private func distances(_ other: UInt64, _ ring: Int) -> (ahead: UInt64, behind: UInt64) {
    let (from, to) = (Self.place(local, ring), Self.place(other, ring))
    return (to &- from, from &- to)
  }

  /// A node's place on a ring: the first, and the second number after the seed that is its hint.
  private static func place(_ hint: UInt64, _ ring: Int) -> UInt64 {
    var numbers = SeededRandom(seed: hint)
    for _ in 0..<ring { _ = numbers.next() }
    return numbers.next()
  }

  /// The lower, the more a leaf prefers a relay.
  private func rank(_ relay: UInt64) -> UInt64 {
    var numbers = SeededRandom(seed: Self.place(local, 0) ^ relay)
    return numbers.next()
  }
}
