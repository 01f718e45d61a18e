import Primitives

/// Neighbours that passed on advertisements with wrong signatures. Every node verifies before forwarding, so a wrong
/// signature proves that the neighbour that sent it did not verify. Two wrong signatures within `window` are tolerated.
/// The third wrong signature ends the link, and the neighbour's key is refused for a time that doubles with each
/// refusal.
struct SignatureOffenders {
  /// Two wrong signatures within this time are tolerated. The third one ends the link.
  static let window = TimeSpan.seconds(600)
  static let refusalMin = TimeSpan.seconds(60)
  static let refusalMax = TimeSpan.seconds(3600)

  private struct Entry {
    var peer = NodeID.none
    /// When the last two wrong signatures arrived. `.zero` for none.
    var last = Instant.zero
    var lastButOne = Instant.zero
    var refusedUntil = Instant.zero
    var refusals: UInt8 = 0

    /// The time after which the entry has no effect any more.
    var end: Instant { max(last + SignatureOffenders.window, refusedUntil + SignatureOffenders.refusalMax) }
  }

  /// Any neighbour with a proven key can fill an entry. In a full table the entry with the earliest `end` is replaced.
  private var entries = FixedArray<64, Entry>(repeating: Entry())

  /// Records that `peer` passed on a wrong signature. Returns true if its key is refused from now on.
  mutating func note(_ peer: NodeID, now: Instant) -> Bool {
    let index = find(peer) ?? least
    if entries[index].peer != peer || entries[index].end <= now { entries[index] = Entry(peer: peer) }
    let isThird = entries[index].lastButOne > .zero && entries[index].lastButOne + Self.window > now
    entries[index].lastButOne = entries[index].last
    entries[index].last = now
    if !isThird { return false }
    let refusals = entries[index].refusals
    entries[index].refusedUntil =
      now + Backoff.pause(after: Int(refusals), first: Self.refusalMin, longest: Self.refusalMax)
    entries[index].refusals = min(refusals, .max - 1) + 1
    // After the refusal the neighbour starts again without wrong signatures.
    entries[index].last = .zero
    entries[index].lastButOne = .zero
    return true
  }

  /// How long the key of `peer` is still refused, in seconds, rounded up. The result is 0 if the key is not refused.
  func secondsRefused(_ peer: NodeID, now: Instant) -> UInt16 {
    guard let index = find(peer) else { return 0 }
    return UInt16(((entries[index].refusedUntil - now).milliseconds + 999) / 1000)
  }

  private func find(_ peer: NodeID) -> Int? { entries.indices.first { entries[$0].peer == peer } }

  private var least: Int {
    var least = 0
    for index in entries.indices where rank(index) < rank(least) { least = index }
    return least
  }

  private func rank(_ index: Int) -> Instant { entries[index].peer == .none ? .zero : entries[index].end }
}
