import Primitives

/// The order in which addresses of a session get its places, when more are joined than there are places: because merges
/// crossed, or because a member admitted too many.
///
/// Tickets make a tree: below each address are those that it admitted. A founder gets a place first. Then the addresses that an
/// admitter admitted take turns, in ascending order, each with all that is below it: in each round one place of each branch. So
/// whoever admits many, also under invented keys that admit further ones, takes places of its own branch alone. The order
/// follows from the records, so all members find the same one.
struct AdmissionTurns {
  private struct Entry {
    /// It is joined and has had no turn.
    var isDue: Bool
    /// Index of its admitter; nil for the sessions themselves.
    var above: Int?
    /// Indices of those that it admitted, ascending by address.
    var admitted: [Int] = []
    /// Whose turn among these is next.
    var turn = 0
  }

  /// In the order of the records; the last one stands for the sessions, whose founders are below it.
  private var entries: [Entry]

  /// `records`: all of a table, in their order.
  init(_ records: [MemberRecord], _ origins: [TableEntries.Origin]) {
    entries = records.map { Entry(isDue: $0.isJoined) }
    entries.append(Entry(isDue: false))
    for (index, record) in records.enumerated() {
      let isFounder = origins.contains { $0.id == record.session && $0.origin.founder == record.address }
      let admitter = isFounder ? nil : records.position(record.session, (record.root ?? record.ticket).admitter)
      // Tickets of less depth admit, so there is no circle.
      let isBelow = admitter.map { records[$0].depth < record.depth } ?? false
      let above = isBelow ? admitter ?? records.count : records.count
      entries[index].above = above
      entries[above].admitted.append(index)
    }
  }

  /// The index of the next record; nil when all had their turns.
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

  /// How many of `places`, which are indices of records, belong to each of the two branches that part at the nearest admitter above
  /// both records; nil when one of the two is above the other.
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

  /// The indices from the sessions down to a record.
  private func way(to index: Int) -> [Int] {
    var way = [index]
    while let above = entries[way[way.count - 1]].above { way.append(above) }
    return way.reversed()
  }
}
