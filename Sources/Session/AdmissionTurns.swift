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
    let address: MemberAddress
    /// It is joined and has had no turn.
    var isDue: Bool
    /// Indices of those that it admitted, ascending by address.
    var admitted: [Int] = []
    /// Whose turn among these is next.
    var turn = 0
  }

  /// In the order of the records; the last one stands for the sessions, whose founders are below it.
  private var entries: [Entry]

  /// `records`: all of a table, in their order.
  init(_ records: [MemberRecord], _ origins: [TableEntries.Origin]) {
    entries = records.map { Entry(address: $0.address, isDue: $0.isJoined) }
    entries.append(Entry(address: MemberAddress(node: .none, endpoint: 0), isDue: false))
    for (index, record) in records.enumerated() {
      let isFounder = origins.contains { $0.id == record.session && $0.origin.founder == record.address }
      let admitter = isFounder ? nil : records.position(record.session, (record.root ?? record.ticket).admitter)
      // Tickets of less depth admit, so there is no circle.
      let isBelow = admitter.map { records[$0].depth < record.depth } ?? false
      entries[isBelow ? admitter ?? records.count : records.count].admitted.append(index)
    }
  }

  /// The next address; nil when all had a place.
  mutating func next() -> MemberAddress? { next(from: entries.count - 1) }

  private mutating func next(from index: Int) -> MemberAddress? {
    if entries[index].isDue {
      entries[index].isDue = false
      return entries[index].address
    }
    for _ in entries[index].admitted.indices {
      let below = entries[index].admitted[entries[index].turn]
      entries[index].turn = (entries[index].turn + 1) % entries[index].admitted.count
      if let address = next(from: below) { return address }
    }
    return nil
  }
}
