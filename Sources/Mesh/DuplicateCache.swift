import Primitives

/// Remembers the last frames by source and identifier, so that nothing is forwarded twice.
///
/// Four-way sets over memory that somebody else owns; in a full set the oldest entry gives way. Everything
/// is in the frame's key: no clock, no randomness.
public struct DuplicateCache {
  private struct Entry {
    var source: NodeID
    var identifier: UInt64
  }

  private static let ways = 4
  private static let sets = Limits.duplicatesMax / ways
  public static let byteCount = Limits.duplicatesMax * MemoryLayout<Entry>.stride

  private let entries: UnsafeMutablePointer<Entry>

  /// `memory` has `byteCount` bytes, aligned to 8, and is the cache's alone.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= Self.byteCount)
    entries = memory.baseAddress!.bindMemory(to: Entry.self, capacity: Limits.duplicatesMax)
    entries.initialize(repeating: Entry(source: .none, identifier: 0), count: Limits.duplicatesMax)
  }

  /// True, and remembered, when the frame was not seen before.
  public func insert(_ source: NodeID, _ identifier: UInt64) -> Bool {
    let hash = (source.high ^ source.low &* 3 ^ identifier) &* 0x9E37_79B9_7F4A_7C15
    let first = entries + Int(hash >> 32) % Self.sets * Self.ways
    for way in 0..<Self.ways where first[way].identifier == identifier && first[way].source == source { return false }
    for way in stride(from: Self.ways - 1, to: 0, by: -1) { first[way] = first[way - 1] }
    first[0] = Entry(source: source, identifier: identifier)
    return true
  }
}
