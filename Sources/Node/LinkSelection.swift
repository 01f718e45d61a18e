import Primitives

/// Selects the links of a node in one broadcast domain, where all nodes can reach each other. A relay forwards for
/// others; a leaf is a node that does not.
///
/// - Up to `cliqueMax` relays all link with each other.
/// - More relays form two rings, each ordered by a number derived from the id. A relay links with its successor and
///   predecessor on each ring, so it has four links in a domain of any size. Paths are as short as in a random graph,
///   and the loss of a single node cannot partition the domain. A node that appears or vanishes changes only the links
///   of its neighbours on the rings.
/// - A leaf links with two relays. A leaf's choice is derived from the ids of the leaf and the relays, so leaves spread
///   evenly over the relays. If its domain has no relay, a leaf links with all nodes.
///
/// The selection depends on ids alone, so nodes that see the same domain agree: two relays both want a link with each
/// other, or neither. See docs/protocol.md, "Who links with whom".
struct LinkSelection {
  /// Up to this many relays, including this node, all link with each other. Each then has as many links as on two
  /// rings.
  static let cliqueMax = 5
  static let ringCount = 2

  /// The distances to the nearest usable relays on a ring, in both directions. `.max` without a usable relay.
  private struct Nearest {
    var ahead = UInt64.max
    var behind = UInt64.max
  }

  private let local: UInt64
  private let relays: Bool
  /// The first usable relays of the domain, enough to distinguish a clique from a larger domain.
  private var few = FixedArray<5, UInt64>(repeating: 0)
  private var fewCount = 0
  private var nearest = FixedArray<2, Nearest>(repeating: Nearest())
  /// For a leaf: the ranks of its two best usable relays.
  private var ranks = (best: UInt64.max, second: UInt64.max)

  /// `local` is this node's hint (the first 8 bytes of its id). `relays` is whether this node forwards for others.
  init(local: UInt64, relays: Bool) {
    self.local = local
    self.relays = relays
  }

  /// Adds a relay of the domain that this node believes reachable. Adding a relay twice has no further effect.
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

  /// For a leaf: whether this node ranks `relay` before all added relays. A relay that was not added is treated as if
  /// it had been added.
  func prefers(_ relay: UInt64) -> Bool { rank(relay) <= ranks.best }

  /// Whether there are too many relays for all of them to link with each other.
  var isCrowd: Bool { fewCount >= Self.cliqueMax }

  /// Whether this node wants a link with `other`. A relay that was not added is treated as if it had been added. A
  /// relay that was not added is wanted if it would displace a relay that was added.
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

  /// Whether the other node wants every link that this node wants, as far as this node can know: two relays or two
  /// leaves agree.
  func isMutual(relays isRelay: Bool) -> Bool { relays == isRelay }

  private func isAmongFew(_ relay: UInt64) -> Bool {
    for index in 0..<fewCount where few[index] == relay { return true }
    return false
  }

  /// The distances from this node to `other` around a ring, in both directions.
  private func distances(_ other: UInt64, _ ring: Int) -> (ahead: UInt64, behind: UInt64) {
    let (from, to) = (Self.position(local, ring), Self.position(other, ring))
    return (to &- from, from &- to)
  }

  /// A node's position on a ring: the first or second random number whose seed is the node's hint.
  private static func position(_ hint: UInt64, _ ring: Int) -> UInt64 {
    var numbers = SeededRandom(seed: hint)
    for _ in 0..<ring { _ = numbers.next() }
    return numbers.next()
  }

  /// A leaf's rank of a relay. Lower is preferred.
  private func rank(_ relay: UInt64) -> UInt64 {
    var numbers = SeededRandom(seed: Self.position(local, 0) ^ relay)
    return numbers.next()
  }
}
