import Primitives

/// Remembers the last frames by source and identifier, so that nothing is forwarded twice.
///
/// Four-way sets over memory that somebody else owns, touched when they are first used; in a full set the oldest
/// entry gives way. Everything is in the frame's key: no clock, no randomness.
public struct DuplicateCache {
  private struct Entry {
    var source: NodeID
    var identifier: UInt64
  }

  private static let ways = 4
  private static let sets = Limits.duplicatesMax / ways
  public static let byteCount = Table<Entry, Int>.byteCount(Limits.duplicatesMax)

  private let entries: Table<Entry, Int>
  /// The sets in use, a bit each.
  private var used = FixedArray<16, UInt64>(repeating: 0)

  /// `memory` has `byteCount` bytes, aligned as an `Arena`, and is the cache's alone.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    var arena = Arena(memory)
    entries = Table(count: Limits.duplicatesMax, in: &arena)
  }

  /// True, and remembered, when the frame was not seen before.
  public mutating func insert(_ source: NodeID, _ identifier: UInt64) -> Bool {
    let hash = (source.high ^ source.low &* 3 ^ identifier) &* 0x9E37_79B9_7F4A_7C15
    let set = Int(hash >> 32) % Self.sets
    let first = set * Self.ways
    let bit: UInt64 = 1 << UInt64(set & 63)
    if used[set >> 6] & bit == 0 {
      used[set >> 6] |= bit
      for way in 0..<Self.ways { entries[first + way] = Entry(source: .none, identifier: 0) }
    }
    #if PLANTED_BUG
      // What the simulation must find (`make sim-planted`): only a set's newest frame is known again.
      let known = 1
    #else
      let known = Self.ways
    #endif
    for entry in first..<first + known
    where entries[entry].identifier == identifier && entries[entry].source == source {
      return false
    }
    for way in stride(from: Self.ways - 1, to: 0, by: -1) { entries[first + way] = entries[first + way - 1] }
    entries[first] = Entry(source: source, identifier: identifier)
    return true
  }
}
