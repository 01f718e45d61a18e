import Node
import Primitives

/// Manages inbound streams from arrival until the peer proves its key. The gate is sans-IO: `InboundStreams` owns the
/// descriptors and gives each stream a number. `Admission` decides which streams are admitted. The gate stores the
/// first bytes of each stream.
///
/// A source is the address that is charged for a stream (`RemoteAddress.source`). While a stream of another source
/// waits for a handshake slot, the gate can end a running handshake. In this case, the gate ends a handshake that makes
/// no progress or takes too long (`Admission.patience`), first of the source with the most handshakes.
///
/// A handshake begins only while the budget of the processor's time lasts (`HandshakeBudget`). Streams that wait for
/// the budget take turns by source: a source that never had a turn is first, and then the source whose turn was longest
/// ago.
///
/// Order of calls:
///
/// - Before the handshake: call `arrive` once for a stream, `receive` for its bytes, and `leave` when the stream ends.
///   The caller acts on each result.
/// - During the handshake (`Opening`): call `progressed` when bytes arrive, `spent` after each step, and
///   `handshakeEnded` once.
/// - At all times: call `nextExpired`, `nextStalled` and `nextOpening` no later than `deadline`. Call `nextExpired`
///   also after each `arrive`.
struct AdmissionGate {
  /// The number of bytes needed to recognise TLS. No more bytes are read from a byte stream before its handshake
  /// begins.
  static let bytesNeeded = 6

  /// A stream whose handshake may begin, and must be complete by `deadline`.
  struct Opening: Equatable {
    let stream: UInt32
    let source: UInt64
    /// The bytes that were read from the stream so far.
    let bytes: [UInt8]
    let deadline: Instant
  }

  /// The end of a handshake, as reported by the caller.
  enum HandshakeEnd {
    /// The peer proved its key, and the node assigned a link slot. The second value is the peer's admission class:
    /// stranger, proven or pinned.
    case link(NodeID, Standing)
    /// The handshake failed, or the node has no free link slot.
    case noLink
  }

  /// The result of `receive`: what the caller must do with the stream.
  enum Verdict: Equatable {
    /// More bytes are needed to recognise TLS.
    case incomplete
    /// The stream speaks TLS and waits for a handshake slot. The caller reads no more from the stream, and watches only
    /// for its end.
    case waits
    case opens(Opening)
    /// The stream does not speak TLS and was removed.
    case refused
  }

  private struct Entry {
    let stream: UInt32
    let source: UInt64
    let standing: Standing
    let bearer: BearerKind
    let deadline: Instant
    var bytes: [UInt8] = []
    /// Whether the stream speaks TLS and waits for a handshake slot.
    var isReady = false
    /// The number of the source's last turn (`HandshakeBudget.turn`).
    var turn: UInt64

    /// Whether so little time is left that the handshake may not be complete by the deadline. If a flood makes all
    /// streams wait, those with time left are useful to begin.
    func isLate(_ now: Instant) -> Bool { deadline - now < Admission.deadline(bearer) * 3 / 10 }
  }

  private struct Handshake {
    let stream: UInt32
    let source: UInt64
    let standing: Standing
    let bearer: BearerKind
    let begunAt: Instant
    var heardAt: Instant
    var charge: HandshakeBudget.Charge

    /// The time from which the gate may end this handshake, so that a waiting stream can use its slot.
    func stalledAt(isCrowded: Bool) -> Instant {
      let patience = Admission.patience(bearer, isCrowded: isCrowded)
      return min(heardAt + patience.silence, begunAt + patience.total)
    }
  }

  /// A summary of the streams that wait for a handshake slot. Streams that wait for the budget alone are not included.
  private struct Waiting {
    /// For each admission class, the smallest number of running handshakes of any source that waits. `Int.max` if no
    /// source of the class waits.
    var fewest = FixedArray<3, Int>(repeating: .max)
    /// Whether the sources that wait without a handshake outnumber the unreserved handshake slots.
    var isCrowded = false
  }

  private(set) var admission = Admission()
  private(set) var budget = HandshakeBudget()
  /// Streams that wait for bytes or for a handshake slot, oldest first; at most `Admission.pendingStreamsMax`.
  private var entries: [Entry] = []
  /// Running handshakes, oldest first; at most `Admission.handshakesMax`.
  private var handshakes: [Handshake] = []
  /// Streams that were removed to make room for a newer stream, and that the caller has not closed yet.
  private var displaced: [UInt32] = []

  /// When the next stream expires, when the next waiting stream may begin, or when the gate may end the next handshake
  /// for a waiting stream.
  var deadline: Instant {
    var expiry = entries.reduce(.never) { min($0, $1.deadline) }
    for entry in entries where entry.isReady && admission.mayBegin(entry.standing) {
      expiry = min(expiry, budget.readyAt(entry.standing))
    }
    guard let waiting else { return expiry }
    return handshakes.reduce(expiry) {
      givesWay($1, handshakeCount($1.source), to: waiting) ? min($0, $1.stalledAt(isCrowded: waiting.isCrowded)) : $0
    }
  }

  /// Adds a stream. Returns false if admission refuses the stream. `random` is 64 random bits.
  mutating func arrive(_ stream: UInt32, _ source: UInt64, over bearer: BearerKind, random: UInt64, now: Instant)
    -> Bool
  {
    let standing = admission.standing(of: source)
    let crowded = crowdedIndex(for: source, standing)
    if let crowded {
      displaced.append(entries[crowded].stream)
      leave(at: crowded, .dropped)
    }
    if admission.arrive(source, random: random, replaces: crowded != nil, now: now) != nil { return false }
    entries.append(
      Entry(
        stream: stream, source: source, standing: standing, bearer: bearer, deadline: now + Admission.deadline(bearer),
        turn: budget.turn(of: source)))
    return true
  }

  /// Handles received bytes of a stream.
  mutating func receive(_ bytes: UnsafeRawBufferPointer, from stream: UInt32, now: Instant) -> Verdict {
    guard let index = index(of: stream) else { return .refused }
    entries[index].bytes += bytes
    switch Admission.isClientHello(entries[index].bytes) {
    case nil: return .incomplete
    case .some(false):
      leave(at: index, .notTLS)
      return .refused
    case .some(true):
      entries[index].isReady = true
      return (nextIndex(now) == index ? begin(at: index, now) : nil).map { .opens($0) } ?? .waits
    }
  }

  /// Removes a stream that has ended.
  mutating func leave(_ stream: UInt32) {
    if let index = index(of: stream) { leave(at: index, .silent) }
  }

  /// Records that a stream received bytes during its handshake.
  mutating func progressed(_ stream: UInt32, now: Instant) {
    guard let index = handshakes.firstIndex(where: { $0.stream == stream }) else { return }
    handshakes[index].heardAt = now
  }

  /// Charges the processor time of a step of a handshake.
  mutating func spent(_ time: TimeSpan, by stream: UInt32, now: Instant) {
    guard let index = handshakes.firstIndex(where: { $0.stream == stream }) else { return }
    budget.spent(time, &handshakes[index].charge, now: now)
  }

  /// Handles the end of a handshake. Returns the stream whose handshake begins in the free slot (`nextOpening`).
  /// `checks` is the time spent on the peer's certificate chain, in units of one P-256 signature check.
  mutating func handshakeEnded(_ stream: UInt32, _ end: HandshakeEnd, checks: Int = 0, now: Instant) -> Opening? {
    guard let ended = handshakes.firstIndex(where: { $0.stream == stream }) else { return nil }
    let handshake = handshakes.remove(at: ended)
    admission.leave(handshake.source, hadHandshake: true)
    budget.ended(handshake.charge)
    switch end {
    case .link(let peer, let standing): admission.met(handshake.source, peer, standing)
    case .noLink: admission.wasted(handshake.source, checks: checks, now: now)
    }
    return nextOpening(now: now)
  }

  /// Returns the next stream whose handshake begins; nil if no waiting stream may begin. Call until it returns nil.
  mutating func nextOpening(now: Instant) -> Opening? { nextIndex(now).flatMap { begin(at: $0, now) } }

  /// The index of the waiting stream to begin next. The gate chooses a stream of the source with the fewest handshakes,
  /// and among several such sources the one whose last turn was longest ago. Among several streams, the gate chooses
  /// the stream that has waited longest. Streams that have waited too long to finish in time are chosen last.
  private func nextIndex(_ now: Instant) -> Int? {
    var next: (index: Int, isLate: Bool, handshakes: Int)?
    for (index, entry) in entries.enumerated()
    where entry.isReady && admission.mayBegin(entry.standing) && budget.readyAt(entry.standing) <= now {
      let count = handshakeCount(entry.source), isLate = entry.isLate(now)
      if let next {
        if isLate && !next.isLate { continue }
        let isSooner = (count, entry.turn) < (next.handshakes, entries[next.index].turn)
        if isLate == next.isLate && !isSooner { continue }
      }
      next = (index, isLate, count)
    }
    return next?.index
  }

  /// Returns the stream of a handshake that makes no progress or takes too long, while another source waits for the
  /// slot. The caller ends the handshake. The gate chooses a handshake of the source with the most handshakes, and
  /// among several handshakes the first that stalled. Call `nextStalled`, then `handshakeEnded`, until `nextStalled`
  /// returns nil.
  func nextStalled(now: Instant) -> UInt32? {
    guard let waiting else { return nil }
    var next: (stream: UInt32, count: Int, stalledAt: Instant)?
    for handshake in handshakes {
      let stalledAt = handshake.stalledAt(isCrowded: waiting.isCrowded)
      let count = handshakeCount(handshake.source)
      if stalledAt > now || !givesWay(handshake, count, to: waiting) { continue }
      if let next, next.count > count || next.count == count && next.stalledAt <= stalledAt { continue }
      next = (handshake.stream, count, stalledAt)
    }
    return next?.stream
  }

  /// Charges a source for a link that ended without a lasting use (`Node.isLinkWasted`), as for a failed handshake.
  mutating func wasted(_ source: UInt64, checks: Int, now: Instant) {
    admission.wasted(source, checks: checks, now: now)
  }

  /// Removes and returns a stream whose deadline has passed, or that was removed for a newer stream. Call `nextExpired`
  /// until it returns nil.
  mutating func nextExpired(now: Instant) -> UInt32? {
    if let stream = displaced.popLast() { return stream }
    guard let index = entries.firstIndex(where: { $0.deadline <= now }) else { return nil }
    let stream = entries[index].stream
    leave(at: index, .silent)
    return stream
  }

  private mutating func begin(at index: Int, _ now: Instant) -> Opening? {
    guard admission.begin(entries[index].source) else { return nil }
    let entry = entries.remove(at: index)
    let charge = budget.begin(entry.source, entry.standing, now: now)
    for other in entries.indices where entries[other].source == entry.source { entries[other].turn = charge.turn }
    handshakes.append(
      Handshake(
        stream: entry.stream, source: entry.source, standing: entry.standing, bearer: entry.bearer, begunAt: now,
        heardAt: now, charge: charge))
    return Opening(stream: entry.stream, source: entry.source, bytes: entry.bytes, deadline: entry.deadline)
  }

  private mutating func leave(at index: Int, _ reason: Admission.Refusal) {
    admission.count(reason)
    admission.leave(entries.remove(at: index).source, hadHandshake: false)
  }

  private func handshakeCount(_ source: UInt64) -> Int { handshakes.count { $0.source == source } }

  /// The summary of the streams that wait for a handshake slot; nil if no stream waits.
  private var waiting: Waiting? {
    var waiting = Waiting()
    var without: [UInt64] = []
    for entry in entries where entry.isReady && !admission.mayBegin(entry.standing) {
      let count = handshakeCount(entry.source)
      let level = entry.standing.rawValue
      waiting.fewest[level] = min(waiting.fewest[level], count)
      if count == 0 { without.append(entry.source) }
    }
    let slots = Admission.handshakesMax - Admission.reserved
    waiting.isCrowded = without.count > slots && Set(without).count > slots
    return waiting.fewest.indices.allSatisfy { waiting.fewest[$0] == .max } ? nil : waiting
  }

  /// Whether the gate may end `handshake` for a waiting stream. `count` is the number of running handshakes of the
  /// source of `handshake`. The waiting stream must come from a source with fewer handshakes. Admission must allow the
  /// waiting stream to begin once `handshake` has ended.
  private func givesWay(_ handshake: Handshake, _ count: Int, to waiting: Waiting) -> Bool {
    [.stranger, .proven, .pinned].contains { (standing: Standing) in
      waiting.fewest[standing.rawValue] < count && admission.mayBegin(standing, after: handshake.standing)
    }
  }

  /// The index of the pending stream to drop for a new stream: the youngest of the source with the most pending
  /// streams. If no source has more than one, the stream of the source whose turn was last, if the turn of the new
  /// stream's source was before. The search includes only streams whose removal would let the new stream in. Returns
  /// nil while there is room, or if the source of the new stream already has a pending stream.
  private func crowdedIndex(for newcomer: UInt64, _ standing: Standing) -> Int? {
    if admission.pendingStreams <= Admission.dropFrom { return nil }
    var counts: [UInt64: Int] = [:]
    for entry in entries where entry.source == newcomer || admission.mayArrive(standing, after: entry.standing) {
      counts[entry.source, default: 0] += 1
    }
    guard counts[newcomer] == nil, let most = counts.values.max() else { return nil }
    if most > 1 { return entries.lastIndex { counts[$0.source] == most } }
    var last: (index: Int?, turn: UInt64) = (nil, budget.turn(of: newcomer))
    for (index, entry) in entries.enumerated() where entry.turn > last.turn && counts[entry.source] != nil {
      last = (index, entry.turn)
    }
    return last.index
  }

  private func index(of stream: UInt32) -> Int? { entries.firstIndex { $0.stream == stream } }
}
