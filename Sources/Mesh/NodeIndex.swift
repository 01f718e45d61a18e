import Primitives

/// Finds a node's record by the node's id. A hash table with linear probing (Knuth, The Art of Computer Programming 3,
/// section 6.4, algorithms L and R) that is at most half full.
struct NodeIndex {
  private static let capacity = 2 * Limits.nodesMax
  static let byteCount = Table<UInt16, Int>.byteCount(capacity)

  /// The number of a record plus one, or zero for a free position of the hash table.
  private let entries: Table<UInt16, Int>
  private let records: Table<NodeRecord, Int>

  /// Allocates `byteCount` bytes from `arena`.
  init(over records: Table<NodeRecord, Int>, in arena: inout Arena) {
    entries = Table(count: Self.capacity, in: &arena)
    entries.fill(0)
    self.records = records
  }

  func find(_ id: NodeID) -> Int? {
    var position = Self.home(of: id)
    while entries[position] != 0 {
      let number = Int(entries[position]) - 1
      if records[number].id == id { return number }
      position = Self.next(position)
    }
    return nil
  }

  /// Adds record `number`, whose id is set.
  func insert(_ number: Int) {
    var position = Self.home(of: records[number].id)
    while entries[position] != 0 { position = Self.next(position) }
    entries[position] = UInt16(number + 1)
  }

  /// Removes record `number`, whose id must still be set.
  func remove(_ number: Int) {
    var hole = Self.home(of: records[number].id)
    while Int(entries[hole]) != number + 1 { hole = Self.next(hole) }
    var position = hole
    while true {
      position = Self.next(position)
      if entries[position] == 0 { break }
      // An entry behind the hole moves into the hole, unless the entry's home position lies between the hole and the
      // entry.
      let home = Self.home(of: records[Int(entries[position]) - 1].id)
      if (position &- home) & (Self.capacity - 1) < (position &- hole) & (Self.capacity - 1) { continue }
      entries[hole] = entries[position]
      hole = position
    }
    entries[hole] = 0
  }

  private static func next(_ position: Int) -> Int { (position + 1) & (capacity - 1) }

  private static func home(of id: NodeID) -> Int {
    Int(truncatingIfNeeded: ((id.high ^ id.low) &* 0x9E37_79B9_7F4A_7C15) >> 40) & (capacity - 1)
  }
}
