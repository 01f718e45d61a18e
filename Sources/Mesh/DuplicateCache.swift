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
  public static let byteCount = Limits.duplicatesMax * MemoryLayout<Entry>.stride

  private let entries: UnsafeMutablePointer<Entry>
  /// The sets in use, a bit each.
  private var used = FixedArray<16, UInt64>(repeating: 0)

  /// `memory` has `byteCount` bytes, aligned to 8, and is the cache's alone.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Self.byteCount)
    entries = memory.baseAddress!.bindMemory(to: Entry.self, capacity: Limits.duplicatesMax)
  }

  /// True, and remembered, when the frame was not seen before.
  public mutating func insert(_ source: NodeID, _ identifier: UInt64) -> Bool {
    let hash = (source.high ^ source.low &* 3 ^ identifier) &* 0x9E37_79B9_7F4A_7C15
    let set = Int(hash >> 32) % Self.sets
    let first = entries + set * Self.ways
    let bit: UInt64 = 1 << UInt64(set & 63)
    if used[set >> 6] & bit == 0 {
      used[set >> 6] |= bit
      first.initialize(repeating: Entry(source: .none, identifier: 0), count: Self.ways)
    }
    #if PLANTED_BUG
      // What the simulation must find (`make sim-planted`): only a set's newest frame is known again.
      let known = 1
    #else
      let known = Self.ways
    #endif
    for way in 0..<known where first[way].identifier == identifier && first[way].source == source { return false }
    for way in stride(from: Self.ways - 1, to: 0, by: -1) { first[way] = first[way - 1] }
    first[0] = Entry(source: source, identifier: identifier)
    return true
  }
}
