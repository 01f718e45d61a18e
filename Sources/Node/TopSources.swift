import Primitives

/// The sources that send the most forwarded bytes, in a table of fixed size. The algorithm is “Space-Saving” (Metwally,
/// Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005).
///
/// In a full table a new source replaces the entry of least weight and inherits that weight. A source with more than
/// 1/`entriesMax` of all bytes is always in the table, however many sources a neighbour invents.
public struct TopSources {
  /// The size of the table. This size is enough for every row that a screen shows.
  public static let entriesMax = 16

  /// One source of frames.
  public struct Entry: Sendable {
    public internal(set) var node = NodeID.none
    /// The bytes that were counted since the source entered the table.
    public internal(set) var bytes: UInt64 = 0
    /// `bytes` plus the weight of the entry that the source replaced.
    var weight: UInt64 = 0
  }

  private var entries = FixedArray<16, Entry>(repeating: Entry())
  private var count = 0

  init() {}

  mutating func count(_ bytes: Int, of node: NodeID) {
    var least = 0
    for index in 0..<count {
      if entries[index].node == node {
        entries[index].bytes &+= UInt64(bytes)
        entries[index].weight &+= UInt64(bytes)
        return
      }
      if entries[index].weight < entries[least].weight { least = index }
    }
    let isFull = count == Self.entriesMax
    let index = isFull ? least : count
    if !isFull { count += 1 }
    entries[index] = Entry(node: node, bytes: UInt64(bytes), weight: entries[index].weight &+ UInt64(bytes))
  }

  /// All entries, in no order.
  public var all: [Entry] { (0..<count).map { entries[$0] } }
}
