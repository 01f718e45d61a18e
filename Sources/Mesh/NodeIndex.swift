import Primitives

/// Finds a node's record by the node's id. A hash table with linear probing (Knuth, The Art of Computer Programming 3,
/// section 6.4, algorithms L and R) that is at most half full.
struct NodeIndex {
  private static let capacity = 2 * Limits.nodesMax
  static let byteCount = Table<UInt16, Int>.byteCount(capacity)

  /// The number of a record plus one, or zero for a free position of the hash table.
  private let places: Table<UInt16, Int>
  private let records: Table<NodeRecord, Int>

  /// Allocates `byteCount` bytes from `arena`.
  init(over records: Table<NodeRecord, Int>, in arena: inout Arena) {
    places = Table(count: Self.capacity, in: &arena)
    places.fill(0)
    self.records = records
  }

  func find(_ id: NodeID) -> Int? {
    var place = Self.home(of: id)
    while places[place] != 0 {
      let number = Int(places[place]) - 1
      if records[number].id == id { return number }
      place = Self.next(place)
    }
    return nil
  }

  /// Adds record `number`, whose id is set.
  func insert(_ number: Int) {
    var place = Self.home(of: records[number].id)
    while places[place] != 0 { place = Self.next(place) }
    places[place] = UInt16(number + 1)
  }

  /// Removes record `number`, whose id must still be set.
  func remove(_ number: Int) {
    var hole = Self.home(of: records[number].id)
    while Int(places[hole]) != number + 1 { hole = Self.next(hole) }
    var place = hole
    while true {
      place = Self.next(place)
      if places[place] == 0 { break }
      // An entry behind the hole moves into the hole, unless the entry's home position lies between the hole and the
      // entry.
      let home = Self.home(of: records[Int(places[place]) - 1].id)
      if (place &- home) & (Self.capacity - 1) < (place &- hole) & (Self.capacity - 1) { continue }
      places[hole] = places[place]
      hole = place
    }
    places[hole] = 0
  }

  private static func next(_ place: Int) -> Int { (place + 1) & (capacity - 1) }

  private static func home(of id: NodeID) -> Int {
    Int(truncatingIfNeeded: ((id.high ^ id.low) &* 0x9E37_79B9_7F4A_7C15) >> 40) & (capacity - 1)
  }
}
