import Primitives

/// Remembers the last frames by source and identifier, so that no frame is forwarded twice.
///
/// A four-way set-associative cache in the caller's memory. A set is initialised when it is first used; in a full set
/// the oldest entry is replaced. It needs no clock and no randomness.
public struct DuplicateCache {
  private struct Entry {
    var source: NodeID
    var identifier: UInt64
  }

  private static let ways = Limits.duplicatesPerSet
  private static let sets = Limits.duplicatesMax / ways
  public static let byteCount = Table<Entry, Int>.byteCount(Limits.duplicatesMax)

  private let entries: Table<Entry, Int>
  /// The sets in use, one bit each.
  private var used = FixedArray<16, UInt64>(repeating: 0)

  /// `memory` has `byteCount` bytes, aligned as an `Arena`. No one else may use it.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    var arena = Arena(memory)
    entries = Table(count: Limits.duplicatesMax, in: &arena)
  }

  /// Records the frame. True if it was not seen before.
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
      // The simulation must find this bug (`make sim-planted`): only a set's newest frame is recognised.
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
