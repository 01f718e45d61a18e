import Bearer

/// The peers that several adapters hear: each is one candidate, found when the first adapter hears it and lost with the last.
struct SharedCandidates {
  struct Change: Equatable {
    var lost: Candidate?
    var found: Candidate?
  }

  /// At most what the tables of all adapters hold: `AdapterChoice.countMax` times two tables of `CandidateTable.entriesMax`.
  static let entryBytes = MemoryLayout<(candidate: Candidate, adapters: UInt8)>.stride
  private var entries: [(candidate: Candidate, adapters: UInt8)] = []

  /// An adapter has found a peer. Of what two adapters tell of one address the later is true.
  mutating func found(_ candidate: Candidate, by adapter: Int) -> Change {
    let bit = UInt8(1) << UInt8(adapter)
    guard let index = entries.firstIndex(where: { $0.candidate.address == candidate.address }) else {
      entries.append((candidate, bit))
      return Change(found: candidate)
    }
    entries[index].adapters |= bit
    let known = entries[index].candidate
    if known == candidate { return Change() }
    entries[index].candidate = candidate
    return Change(lost: known, found: candidate)
  }

  /// An adapter has lost a peer; the candidate that is lost with it.
  mutating func lost(_ candidate: Candidate, by adapter: Int) -> Candidate? {
    guard let index = entries.firstIndex(where: { $0.candidate.address == candidate.address }) else { return nil }
    entries[index].adapters &= ~(1 << UInt8(adapter))
    return entries[index].adapters == 0 ? entries.remove(at: index).candidate : nil
  }

  /// Whether an adapter hears the peer.
  func hears(_ address: RemoteAddress, _ adapter: Int) -> Bool {
    entries.contains { $0.candidate.address == address && $0.adapters & 1 << UInt8(adapter) != 0 }
  }
}
