import Bearer
import Primitives

/// Peers that were heard advertising our service. Its clock runs only while the radio scans, so that no peer is lost
/// for silence while nothing was received.
struct CandidateTable {
  /// Any device in radio range can use a place by advertising our UUID. In a full table a new peer only replaces one
  /// that has been silent for `replaceableAfter`.
  static let entriesMax = 64
  /// Scanning time without being heard (three sessions) after which an unlinked peer is lost.
  static let lostAfter = TimeSpan.seconds(30)
  static let replaceableAfter = TimeSpan.seconds(12)

  struct Change: Equatable {
    var lost: Candidate?
    var found: Candidate?
    static let none = Change()
  }

  private struct Entry {
    var candidate: Candidate
    let endpoint: BluetoothEndpoint
    var heardAt: TimeSpan
    var isLinked = false
    /// The PSM of the channel that was opened last, and that of a channel over which a node proved its key. That one is
    /// used once: it stays known if it leads to a node again.
    var openedPSM: UInt16?
    var provenPSM: UInt16?
  }

  private var entries: [Entry] = []
  private var scanned = TimeSpan(nanoseconds: 0)
  private var scanningSince: Instant?

  var count: Int { entries.count }

  /// Scanning has begun or ended.
  mutating func scanning(_ isOn: Bool, _ now: Instant) {
    if isOn {
      if scanningSince == nil { scanningSince = now }
    } else {
      scanned = clock(now)
      scanningSince = nil
    }
  }

  /// A peer advertises our service. A report without a hint keeps a known hint: the scan response that carries it is
  /// sometimes lost.
  mutating func heard(_ endpoint: BluetoothEndpoint, hint: UInt64, relays: Bool = true, _ now: Instant) -> Change {
    let heardAt = clock(now)
    if let index = entries.firstIndex(where: { $0.endpoint == endpoint }) {
      entries[index].heardAt = heardAt
      let known = entries[index].candidate
      if hint == 0 || hint == known.hint && relays == known.relays { return .none }
      entries[index].candidate.hint = hint
      entries[index].candidate.relays = relays
      return Change(lost: known, found: entries[index].candidate)
    }
    let candidate = Candidate(bearer: .bluetoothLE, address: .bluetooth(endpoint), hint: hint, relays: relays)
    let entry = Entry(candidate: candidate, endpoint: endpoint, heardAt: heardAt)
    if entries.count < Self.entriesMax {
      entries.append(entry)
      return Change(found: candidate)
    }
    guard let index = stalest(heardAt) else { return .none }
    let lost = entries[index].candidate
    entries[index] = entry
    return Change(lost: lost, found: candidate)
  }

  /// A link to this address came up or went down. Linked peers are not lost, because many stop advertising.
  mutating func linked(_ endpoint: BluetoothEndpoint, _ isLinked: Bool, _ now: Instant) {
    guard let index = entries.firstIndex(where: { $0.endpoint == endpoint }) else { return }
    entries[index].isLinked = isLinked
    entries[index].heardAt = clock(now)
  }

  /// The PSM of a peer, if the last channel led to a node.
  mutating func takePSM(_ endpoint: BluetoothEndpoint) -> UInt16? {
    guard let index = entries.firstIndex(where: { $0.endpoint == endpoint }) else { return nil }
    defer { entries[index].provenPSM = nil }
    return entries[index].provenPSM
  }

  /// A channel was opened.
  mutating func opened(_ endpoint: BluetoothEndpoint, psm: UInt16) {
    guard let index = entries.firstIndex(where: { $0.endpoint == endpoint }) else { return }
    entries[index].openedPSM = psm
  }

  /// Over the channel that was opened last a node has proved its key.
  mutating func proved(_ endpoint: BluetoothEndpoint) {
    guard let index = entries.firstIndex(where: { $0.endpoint == endpoint }) else { return }
    entries[index].provenPSM = entries[index].openedPSM
  }

  /// Removes the peers that were not heard for `lostAfter` of scanning.
  mutating func expire(_ now: Instant) -> [Candidate] {
    let clock = clock(now)
    let silent = entries.filter { isSilent($0, Self.lostAfter, clock) }
    entries = entries.filter { !isSilent($0, Self.lostAfter, clock) }
    return silent.map { $0.candidate }
  }

  /// Removes all peers: the adapter is gone.
  mutating func removeAll(_ now: Instant) -> [Candidate] {
    let lost = entries.map { $0.candidate }
    entries = []
    scanning(false, now)
    return lost
  }

  private func clock(_ now: Instant) -> TimeSpan {
    guard let scanningSince else { return scanned }
    return TimeSpan(nanoseconds: scanned.nanoseconds &+ (now - scanningSince).nanoseconds)
  }

  private func isSilent(_ entry: Entry, _ span: TimeSpan, _ clock: TimeSpan) -> Bool {
    !entry.isLinked && clock.nanoseconds - min(entry.heardAt.nanoseconds, clock.nanoseconds) > span.nanoseconds
  }

  private func stalest(_ clock: TimeSpan) -> Int? {
    var stalest: Int?
    for index in entries.indices where isSilent(entries[index], Self.replaceableAfter, clock) {
      if let known = stalest, entries[known].heardAt <= entries[index].heardAt { continue }
      stalest = index
    }
    return stalest
  }
}
