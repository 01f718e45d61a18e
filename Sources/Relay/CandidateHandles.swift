import Bearer
import Primitives

/// The candidates (addresses of nodes) that discovery found. The node refers to each candidate by a handle.
struct CandidateHandles {
  private typealias Entry = (handle: UInt32, candidate: Candidate, heardAt: Instant)

  static let entryBytes = MemoryLayout<Entry>.stride
  private var entries: [Entry] = []
  private var handleCounter: UInt32 = 0

  /// Adds or updates a candidate and returns its handle; an unknown address gets a new handle. Returns nil if the table
  /// is full. `Limits.candidatesMax` is the sum of what all discovery sources may hold, so the table has room for the
  /// candidates of all sources.
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

  /// Removes a candidate and returns its handle; nil if the candidate is unknown.
  mutating func strike(_ candidate: Candidate) -> UInt32? {
    guard let index = index(of: candidate) else { return nil }
    return entries.remove(at: index).handle
  }

  /// Calls `body` for each candidate with the time at which discovery last found it.
  func forEach(_ body: (_ handle: UInt32, _ candidate: Candidate, _ heardAt: Instant) -> Void) {
    for entry in entries { body(entry.handle, entry.candidate, entry.heardAt) }
  }

  subscript(handle: UInt32) -> Candidate? { entries.first { $0.handle == handle }?.candidate }

  /// An address over one bearer is one candidate, regardless of the node id that this address claims.
  private func index(of candidate: Candidate) -> Int? {
    entries.firstIndex { $0.candidate.bearer == candidate.bearer && $0.candidate.address == candidate.address }
  }
}
