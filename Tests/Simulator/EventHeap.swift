import Primitives

/// Planned events, ordered by time. Events of the same instant keep the order of planning.
struct EventHeap<Event> {
  private struct Entry {
    var at: Instant
    var number: UInt64
    var event: Event

    func isBefore(_ other: Entry) -> Bool { at != other.at ? at < other.at : number < other.number }
  }

  private var entries: [Entry] = []
  private var planned: UInt64 = 0

  var nextInstant: Instant { entries.first?.at ?? .never }

  mutating func plan(_ event: Event, at instant: Instant) {
    planned += 1
    entries.append(Entry(at: instant, number: planned, event: event))
    var child = entries.count - 1
    while child > 0, entries[child].isBefore(entries[(child - 1) / 2]) {
      entries.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func next() -> Event? {
    guard let first = entries.first else { return nil }
    let last = entries.removeLast()
    if entries.isEmpty { return first.event }
    entries[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && entries[child].isBefore(entries[least]) {
        least = child
      }
      if least == parent { return first.event }
      entries.swapAt(parent, least)
      parent = least
    }
  }
}
