import Primitives

/// The order in which the addresses of a session get places when more addresses are joined than the session allows.
/// More addresses than allowed are joined when two merges happen at the same time, or when a member admits too many
/// addresses.
///
/// Tickets (signed memberships) form a tree: each address is above the addresses that it admitted. A founder gets a
/// place first. After the founders, the branches below an admitter take turns, in ascending order of address. Each
/// round gives one place to each branch. So a member that admits many addresses, even invented ones, uses only places
/// of its own branch. The order depends on the records alone, so all members compute the same order.
struct AdmissionTurns {
  private struct Entry {
    /// Whether the address is joined and has had no turn.
    var isDue: Bool
    /// The index of the admitter's entry; nil for the root.
    var above: Int?
    /// The indices of the entries that this address admitted, ascending by address.
    var admitted: [Int] = []
    /// The position in `admitted` of the branch that has the next turn.
    var turn = 0
  }

  /// There is one entry for each record, in table order. The last entry is the root, directly above the founders.
  private var entries: [Entry]

  /// `records` are all records of a table, in their order.
  init(_ records: [MemberRecord], _ origins: [TableEntries.Origin]) {
    entries = records.map { Entry(isDue: $0.isJoined) }
    entries.append(Entry(isDue: false))
    for (index, record) in records.enumerated() {
      let isFounder = origins.contains { $0.id == record.session && $0.origin.founder == record.address }
      let admitter = isFounder ? nil : records.position(record.session, (record.root ?? record.ticket).admitter)
      // An admitter's depth is less than the depth of the tickets that this admitter gives, so there is no cycle.
      let isBelow = admitter.map { records[$0].depth < record.depth } ?? false
      let above = isBelow ? admitter ?? records.count : records.count
      entries[index].above = above
      entries[above].admitted.append(index)
    }
  }

  /// The index of the record that has the next turn; nil after all records had their turn.
  mutating func next() -> Int? { next(from: entries.count - 1) }

  private mutating func next(from index: Int) -> Int? {
    if entries[index].isDue {
      entries[index].isDue = false
      return index
    }
    for _ in entries[index].admitted.indices {
      let below = entries[index].admitted[entries[index].turn]
      entries[index].turn = (entries[index].turn + 1) % entries[index].admitted.count
      if let record = next(from: below) { return record }
    }
    return nil
  }

  /// The numbers of `places` (indices of records that have a place) in the branches of the records `one` and `other`.
  /// The two branches begin directly below the nearest common admitter of the two records. Nil if one record is above
  /// the other.
  func shares(of one: Int, and other: Int, in places: [Int]) -> (one: Int, other: Int)? {
    let ways = (way(to: one), way(to: other))
    guard let parting = ways.0.indices.first(where: { $0 >= ways.1.count || ways.0[$0] != ways.1[$0] }),
      parting < ways.1.count
    else { return nil }
    var shares = (one: 0, other: 0)
    for place in places {
      let way = way(to: place)
      guard way.count > parting else { continue }
      if way[parting] == ways.0[parting] { shares.one += 1 }
      if way[parting] == ways.1[parting] { shares.other += 1 }
    }
    return shares
  }

  /// The indices from the root down to a record, both included.
  private func way(to index: Int) -> [Int] {
    var way = [index]
    while let above = entries[way[way.count - 1]].above { way.append(above) }
    return way.reversed()
  }
}
