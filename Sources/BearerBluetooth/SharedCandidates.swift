import Bearer

/// The peers in range of all adapters. A peer is one candidate, even if several adapters find it. A peer is found when
/// the first adapter finds the peer, and lost when the last adapter loses the peer.
struct SharedCandidates {
  struct Change: Equatable {
    var lost: Candidate?
    var found: Candidate?
  }

  /// The memory for one entry in bytes. All adapters together have at most `AdapterChoice.countMax` times two tables of
  /// `HeardPeers.entriesMax` peers.
  static let entryBytes = MemoryLayout<(candidate: Candidate, adapters: UInt8)>.stride
  private var entries: [(candidate: Candidate, adapters: UInt8)] = []

  /// Notes that an adapter has found a peer. If two adapters report different facts about one address, the later report
  /// replaces the earlier one.
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

  /// Notes that an adapter has lost a peer. Returns the candidate if no other adapter has the peer in range.
  mutating func lost(_ candidate: Candidate, by adapter: Int) -> Candidate? {
    guard let index = entries.firstIndex(where: { $0.candidate.address == candidate.address }) else { return nil }
    entries[index].adapters &= ~(1 << UInt8(adapter))
    return entries[index].adapters == 0 ? entries.remove(at: index).candidate : nil
  }

  /// Whether the peer with this address is in range of this adapter.
  func isInRange(_ address: RemoteAddress, _ adapter: Int) -> Bool {
    entries.contains { $0.candidate.address == address && $0.adapters & 1 << UInt8(adapter) != 0 }
  }
}
