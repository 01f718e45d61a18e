import Bearer
import Primitives

/// Peers that were heard advertising our service, or that answered an inquiry with it; of one kind. Its clock runs only while the
/// radio scans for them, so that no peer is lost for silence while nothing was received.
struct CandidateTable {
  /// Any device in radio range can use a place by advertising our UUID, under any number of addresses. In a full table a new peer
  /// replaces one that has been silent for `replaceableAfter`; else one where a dial led to no node; else the one that was found
  /// first, if it had `replaceableAfter` for its turn. One that is linked, or where a node has proved its key, keeps its place.
  static let entriesMax = 64
  /// Scanning time without being heard (three sessions) after which an unlinked peer is lost.
  static let lostAfter = TimeSpan.seconds(30)
  static let replaceableAfter = TimeSpan.seconds(12)
  /// So many dials in a row that lead to no node make a peer unworthy of more, for `withheldMin`, and twice as long after each
  /// further one, at most 2⁶ times: it is lost, and found when it is heard after that.
  static let fruitlessMax: UInt8 = 3
  static let withheldMin = TimeSpan.seconds(30)

  struct Change: Equatable {
    var lost: Candidate?
    var found: Candidate?
    static let none = Change()
  }

  private struct Entry {
    var candidate: Candidate
    let device: WireAddress
    let foundAt: TimeSpan
    var heardAt: TimeSpan
    var isLinked = false
    /// A node has proved its key there.
    var isProven = false
    /// The PSM of the channel that was opened last, and that of a channel over which a node proved its key. That one is
    /// used once: it stays known if it leads to a node again.
    var openedPSM: UInt16?
    var provenPSM: UInt16?
    /// Dials since a node has proved its key; until when it is withheld, if it is.
    var fruitless: UInt8 = 0
    var withheldUntil: Instant?
  }

  static let entryBytes = MemoryLayout<Entry>.stride

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
  mutating func heard(_ device: WireAddress, hint: UInt64, relays: Bool = true, _ now: Instant) -> Change {
    let heardAt = clock(now)
    if let index = index(of: device) {
      entries[index].heardAt = heardAt
      let known = entries[index].candidate
      if hint != 0 {
        entries[index].candidate.hint = hint
        entries[index].candidate.relays = relays
      }
      if let end = entries[index].withheldUntil {
        if now < end { return .none }
        entries[index].withheldUntil = nil
        return Change(found: entries[index].candidate)
      }
      return known == entries[index].candidate ? .none : Change(lost: known, found: entries[index].candidate)
    }
    let candidate = Candidate(bearer: device.bearer, address: device.remote, hint: hint, relays: relays)
    let entry = Entry(candidate: candidate, device: device, foundAt: heardAt, heardAt: heardAt)
    if entries.count < Self.entriesMax {
      entries.append(entry)
      return Change(found: candidate)
    }
    guard let index = stalest(heardAt) ?? mostFruitless ?? longestUnproven(heardAt) else { return .none }
    let former = entries.remove(at: index)
    entries.append(entry)
    return Change(lost: former.withheldUntil == nil ? former.candidate : nil, found: candidate)
  }

  /// A link to this address came up or went down. Linked peers are not lost, because many stop advertising.
  mutating func linked(_ device: WireAddress, _ isLinked: Bool, _ now: Instant) {
    guard let index = index(of: device) else { return }
    entries[index].isLinked = isLinked
    entries[index].heardAt = clock(now)
  }

  /// The PSM of a peer, if the last channel led to a node.
  mutating func takePSM(_ device: WireAddress) -> UInt16? {
    guard let index = index(of: device) else { return nil }
    defer { entries[index].provenPSM = nil }
    return entries[index].provenPSM
  }

  /// A channel was opened.
  mutating func opened(_ device: WireAddress, psm: UInt16) {
    guard let index = index(of: device) else { return }
    entries[index].openedPSM = psm
  }

  /// A dial has ended. The candidate that is withheld from now on.
  mutating func dialled(_ device: WireAddress, _ now: Instant) -> Candidate? {
    guard let index = index(of: device) else { return nil }
    let fruitless = min(entries[index].fruitless + 1, Self.fruitlessMax + 6)
    entries[index].fruitless = fruitless
    if fruitless < Self.fruitlessMax { return nil }
    entries[index].withheldUntil = now + Self.withheldMin * (1 << UInt64(fruitless - Self.fruitlessMax))
    return entries[index].candidate
  }

  /// Over the channel that was opened last a node has proved its key.
  mutating func proved(_ device: WireAddress) {
    guard let index = index(of: device) else { return }
    entries[index].provenPSM = entries[index].openedPSM
    entries[index].fruitless = 0
    entries[index].isProven = true
    if entries[index].withheldUntil != nil { entries[index].withheldUntil = .zero }
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

  private func index(of device: WireAddress) -> Int? { entries.firstIndex { $0.device == device } }

  private func clock(_ now: Instant) -> TimeSpan {
    guard let scanningSince else { return scanned }
    return TimeSpan(nanoseconds: scanned.nanoseconds &+ (now - scanningSince).nanoseconds)
  }

  private func isSilent(_ entry: Entry, _ span: TimeSpan, _ clock: TimeSpan) -> Bool {
    !entry.isLinked && clock.nanoseconds - min(entry.heardAt.nanoseconds, clock.nanoseconds) > span.nanoseconds
  }

  private var mostFruitless: Int? {
    var most: Int?
    for index in entries.indices where !entries[index].isLinked && !entries[index].isProven {
      if entries[index].fruitless > most.map({ entries[$0].fruitless }) ?? 0 { most = index }
    }
    return most
  }

  /// The first one in the order in which they were found.
  private func longestUnproven(_ clock: TimeSpan) -> Int? {
    entries.firstIndex {
      !$0.isLinked && !$0.isProven && clock.nanoseconds - $0.foundAt.nanoseconds > Self.replaceableAfter.nanoseconds
    }
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
