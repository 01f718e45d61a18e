import Bearer
import Primitives

/// The peers of one kind: LE peers that advertised the Causeway service, or classic peers that answered an inquiry with
/// it. The clock of the table runs only while the radio scans for peers of this kind. So no peer is removed for silence
/// while the radio could not receive.
struct HeardPeers {
  /// The maximum number of entries. Any device in radio range can create entries by advertising the service's UUID,
  /// under any number of addresses.
  ///
  /// In a full table, a new peer replaces the first of these that exists:
  /// - the unlinked peer that has been silent longest, if for more than `replaceableAfter`;
  /// - the unlinked peer with the most dials that led to no node, if no node ever proved its key there;
  /// - the unlinked peer that was found first, if more than `replaceableAfter` ago, and if no node ever proved its key
  ///   there;
  /// - the unlinked peer that was found first, if a node proved its key at each unlinked peer.
  static let entriesMax = 64
  /// The scanning time without an advertisement after which an unlinked peer is removed: about three scans.
  static let lostAfter = TimeSpan.seconds(30)
  static let replaceableAfter = TimeSpan.seconds(12)
  /// The number of dials in a row that lead to no node, after which a peer is withheld for `withheldMin`. With each
  /// further fruitless dial, the peer is withheld twice as long, up to `withheldMax`. A withheld peer is reported as
  /// lost. After that time, a withheld peer is reported as found when it advertises.
  static let fruitlessMax: UInt8 = 3
  static let withheldMin = TimeSpan.seconds(30)
  static let withheldMax = TimeSpan.seconds(1_920)

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
    /// Whether a node has proved its key at this address.
    var isProven = false
    /// `openedPSM`: the PSM of the channel that was opened last. `provenPSM`: the PSM of a channel over which a node
    /// proved its key. A dial uses `provenPSM` up. `provenPSM` is set again when a node proves its key over the new
    /// channel.
    var openedPSM: UInt16?
    var provenPSM: UInt16?
    /// `fruitless`: the number of dials since a node last proved its key. `withheldUntil`: until when the peer is
    /// withheld; nil if it is not withheld.
    var fruitless: UInt8 = 0
    var withheldUntil: Instant?
  }

  static let entryBytes = MemoryLayout<Entry>.stride

  private var entries: [Entry] = []
  private var scanned = TimeSpan(nanoseconds: 0)
  private var scanningSince: Instant?

  var count: Int { entries.count }

  /// Notes that scanning has begun or ended, which starts or stops the table's clock.
  mutating func scanning(_ isOn: Bool, _ now: Instant) {
    if isOn {
      if scanningSince == nil { scanningSince = now }
    } else {
      scanned = clock(now)
      scanningSince = nil
    }
  }

  /// Notes that a peer advertises the Causeway service. `hint`: the first 8 bytes of its node id, or 0. A report
  /// without a hint does not erase a known hint, because the scan response that carries the hint is sometimes lost.
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
    guard let index = stalest(heardAt) ?? mostFruitless ?? longestUnproven(heardAt) ?? longestProven else {
      return .none
    }
    let former = entries.remove(at: index)
    entries.append(entry)
    return Change(lost: former.withheldUntil == nil ? former.candidate : nil, found: candidate)
  }

  /// Notes that a link to this address came up or went down. Linked peers are not removed for silence, because many
  /// stop advertising.
  mutating func linked(_ device: WireAddress, _ isLinked: Bool, _ now: Instant) {
    guard let index = index(of: device) else { return }
    entries[index].isLinked = isLinked
    entries[index].heardAt = clock(now)
  }

  /// Returns the PSM of a peer once, for the next dial; nil unless a node proved its key over the last channel.
  mutating func takePSM(_ device: WireAddress) -> UInt16? {
    guard let index = index(of: device) else { return nil }
    defer { entries[index].provenPSM = nil }
    return entries[index].provenPSM
  }

  /// Notes that a channel with this PSM was opened.
  mutating func opened(_ device: WireAddress, psm: UInt16) {
    guard let index = index(of: device) else { return }
    entries[index].openedPSM = psm
  }

  /// Notes that a dial has ended. Returns the candidate if the peer is withheld from now on.
  mutating func dialled(_ device: WireAddress, _ now: Instant) -> Candidate? {
    guard let index = index(of: device) else { return nil }
    let fruitless = min(entries[index].fruitless + 1, Self.fruitlessMax + 6)
    entries[index].fruitless = fruitless
    if fruitless < Self.fruitlessMax { return nil }
    let withheld = Backoff.pause(
      after: Int(fruitless - Self.fruitlessMax), first: Self.withheldMin, longest: Self.withheldMax)
    entries[index].withheldUntil = now + withheld
    return entries[index].candidate
  }

  /// Notes that a node has proved its key over the channel that was opened last.
  mutating func proved(_ device: WireAddress) {
    guard let index = index(of: device) else { return }
    entries[index].provenPSM = entries[index].openedPSM
    entries[index].fruitless = 0
    entries[index].isProven = true
    if entries[index].withheldUntil != nil { entries[index].withheldUntil = .zero }
  }

  /// Removes the peers without an advertisement in `lostAfter` of scanning.
  mutating func expire(_ now: Instant) -> [Candidate] {
    let clock = clock(now)
    let silent = entries.filter { isSilent($0, Self.lostAfter, clock) }
    entries = entries.filter { !isSilent($0, Self.lostAfter, clock) }
    return silent.map { $0.candidate }
  }

  /// Removes all peers, because the adapter is gone.
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

  /// The unlinked peer that was found first, if more than `replaceableAfter` ago, and if no node ever proved its key
  /// there.
  private func longestUnproven(_ clock: TimeSpan) -> Int? {
    entries.firstIndex {
      !$0.isLinked && !$0.isProven && clock.nanoseconds - $0.foundAt.nanoseconds > Self.replaceableAfter.nanoseconds
    }
  }

  /// If a node proved its key at each unlinked peer, the one that was found first: one machine may have many keys and
  /// addresses. The newcomer in its place is unproven, so no further proven peer gives way until that changes.
  private var longestProven: Int? {
    if entries.contains(where: { !$0.isLinked && !$0.isProven }) { return nil }
    return entries.firstIndex { !$0.isLinked }
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
