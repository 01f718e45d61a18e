import Bearer
import Primitives

/// The candidates of discovery, each with the handle that the node uses.
struct CandidateTable {
  private typealias Entry = (handle: UInt32, candidate: Candidate, heardAt: Instant)

  static let entryBytes = MemoryLayout<Entry>.stride
  private var entries: [Entry] = []
  private var handleCounter: UInt32 = 0

  /// The candidate's handle, a new one for an unknown address; nil when the table is full, which all sources together do not
  /// fill (`Limits.candidatesMax`).
  mutating func enter(_ candidate: Candidate, now: Instant) -> UInt32? {
    if let index = index(of: candidate) {
      entries[index].candidate = candidate
      entries[index].heardAt = now
      return entries[index].handle
    }
    if entries.count == Limits.candidatesMax { return nil }
    repeat { handleCounter &+= 1 } while handleCounter == 0 || self[handleCounter] != nil
    entries.append((handleCounter, candidate, now))
    return handleCounter
  }

  /// Removes a candidate; returns its handle, nil when it had none.
  mutating func strike(_ candidate: Candidate) -> UInt32? {
    guard let index = index(of: candidate) else { return nil }
    return entries.remove(at: index).handle
  }

  /// Each candidate, and when it was last found.
  func forEach(_ body: (_ handle: UInt32, _ candidate: Candidate, _ heardAt: Instant) -> Void) {
    for entry in entries { body(entry.handle, entry.candidate, entry.heardAt) }
  }

  subscript(handle: UInt32) -> Candidate? { entries.first { $0.handle == handle }?.candidate }

  /// One address over one bearer is one candidate, whatever node id it claims.
  private func index(of candidate: Candidate) -> Int? {
    entries.firstIndex { $0.candidate.bearer == candidate.bearer && $0.candidate.address == candidate.address }
  }
}
