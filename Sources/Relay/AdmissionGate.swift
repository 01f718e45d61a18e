import Node
import Primitives

/// Inbound streams until their key is proved. Sans-IO: `InboundStreams` owns the descriptors and gives each stream a
/// number. `Admission` decides which stream may enter; the gate keeps the first bytes of each, and takes a place back that
/// makes no progress, or that belongs to a source with several, when another source waits.
///
/// The rule: call `arrive` once for a stream, then `receive` for its bytes and `leave` when it has ended, and carry out
/// what they return. For a stream that opened, call `progressed` when bytes come and `handshakeEnded` once. Call `nextExpired` and
/// `nextStalled` no later than `deadline`, and `nextExpired` after each `arrive`.
struct AdmissionGate {
  /// The bytes by which TLS is recognised. No more are read of a byte stream before its handshake begins.
  static let bytesNeeded = 6

  /// A stream whose handshake may begin, and must be complete by `deadline`.
  struct Opening: Equatable {
    let stream: UInt32
    let source: UInt64
    /// The bytes read so far.
    let bytes: [UInt8]
    let deadline: Instant
  }

  /// The result of a handshake.
  enum HandshakeEnd {
    /// The key of a peer of this standing is proved, and there is a slot for its link.
    case link(Standing)
    /// It failed, or there is no slot.
    case noLink
  }

  /// The result of received bytes.
  enum Verdict: Equatable {
    /// More bytes are needed to recognise TLS.
    case incomplete
    /// It speaks TLS and waits for a handshake slot. No more is read of it; watch only for its end.
    case waits
    case opens(Opening)
    /// It does not speak TLS and was removed.
    case refused
  }

  private struct Entry {
    let stream: UInt32
    let source: UInt64
    let standing: Standing
    let bearer: BearerKind
    let deadline: Instant
    var bytes: [UInt8] = []
    /// It speaks TLS.
    var isReady = false
  }

  private struct Handshake {
    let stream: UInt32
    let source: UInt64
    let standing: Standing
    let bearer: BearerKind
    let begunAt: Instant
    var heardAt: Instant

    /// From then on it gives way.
    func stalledAt(isCrowded: Bool) -> Instant {
      let patience = Admission.patience(bearer, isCrowded: isCrowded)
      return min(heardAt + patience.silence, begunAt + patience.total)
    }
  }

  /// The streams that wait for a handshake.
  private struct Waiting {
    /// The handshakes of the source with fewest, by standing; `Int.max` where nobody waits.
    var fewest = FixedArray<3, Int>(repeating: .max)
    /// More sources without a handshake wait than there are places.
    var isCrowded = false
  }

  private(set) var admission = Admission()
  /// Oldest first; at most `Admission.pendingStreamsMax`.
  private var entries: [Entry] = []
  /// Oldest first; at most `Admission.handshakesMax`.
  private var handshakes: [Handshake] = []
  /// Streams whose place another one has.
  private var displaced: [UInt32] = []

  /// When the next stream expires, or a handshake gives way.
  var deadline: Instant {
    let expiry = entries.reduce(.never) { min($0, $1.deadline) }
    guard let waiting else { return expiry }
    return handshakes.reduce(expiry) {
      givesWay($1, handshakeCount($1.source), to: waiting) ? min($0, $1.stalledAt(isCrowded: waiting.isCrowded)) : $0
    }
  }

  /// Adds a stream; false when it is refused. `random`: 64 random bits.
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
        stream: stream, source: source, standing: standing, bearer: bearer, deadline: now + Admission.deadline(bearer)))
    return true
  }

  /// Handles bytes of a stream.
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
      return begin(at: index, now).map { .opens($0) } ?? .waits
    }
  }

  /// Removes a stream that has ended.
  mutating func leave(_ stream: UInt32) {
    if let index = index(of: stream) { leave(at: index, .silent) }
  }

  /// Bytes of a handshake have come.
  mutating func progressed(_ stream: UInt32, now: Instant) {
    guard let index = handshakes.firstIndex(where: { $0.stream == stream }) else { return }
    handshakes[index].heardAt = now
  }

  /// A handshake has ended. Returns the stream that takes the free slot: of those that may begin, one of the source with the
  /// fewest handshakes, of these the one that has waited longest.
  /// `checks`: the time that its chain has taken, in checks of a signature over P-256.
  mutating func handshakeEnded(_ stream: UInt32, _ end: HandshakeEnd, checks: Int = 0, now: Instant) -> Opening? {
    guard let ended = handshakes.firstIndex(where: { $0.stream == stream }) else { return nil }
    let source = handshakes.remove(at: ended).source
    admission.leave(source, hadHandshake: true)
    switch end {
    case .link(let standing): admission.met(source, standing)
    case .noLink: admission.wasted(source, checks: checks, now: now)
    }
    var next: (index: Int, handshakes: Int)?
    for (index, entry) in entries.enumerated()
    where entry.isReady && admission.mayBegin(entry.standing) {
      let count = handshakeCount(entry.source)
      if next == nil || count < next!.handshakes { next = (index, count) }
    }
    return next.flatMap { begin(at: $0.index, now) }
  }

  /// Returns a handshake to end, because it makes no progress and another source waits for its place; call it, and
  /// `handshakeEnded`, until it returns nil. It chooses from the source with most handshakes the one that stalled first.
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

  /// A link from this source has ended before it was worth its handshake.
  mutating func wasted(_ source: UInt64, checks: Int, now: Instant) {
    admission.wasted(source, checks: checks, now: now)
  }

  /// Removes and returns a stream whose deadline has passed, or whose place another one has; call it until it returns nil.
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
    handshakes.append(
      Handshake(
        stream: entry.stream, source: entry.source, standing: entry.standing, bearer: entry.bearer, begunAt: now,
        heardAt: now))
    return Opening(stream: entry.stream, source: entry.source, bytes: entry.bytes, deadline: entry.deadline)
  }

  private mutating func leave(at index: Int, _ reason: Admission.Refusal) {
    admission.count(reason)
    admission.leave(entries.remove(at: index).source, hadHandshake: false)
  }

  private func handshakeCount(_ source: UInt64) -> Int { handshakes.count { $0.source == source } }

  /// Nil when nobody waits.
  private var waiting: Waiting? {
    var waiting = Waiting()
    var without: [UInt64] = []
    for entry in entries where entry.isReady {
      let count = handshakeCount(entry.source)
      let level = entry.standing.rawValue
      waiting.fewest[level] = min(waiting.fewest[level], count)
      if count == 0 { without.append(entry.source) }
    }
    let places = Admission.handshakesMax - Admission.reserved
    waiting.isCrowded = without.count > places && Set(without).count > places
    return waiting.fewest.indices.allSatisfy { waiting.fewest[$0] == .max } ? nil : waiting
  }

  /// Whether a handshake, one of `count` of its source, may end for a stream that waits: the stream is of a source with
  /// fewer, and begins when this handshake has ended.
  private func givesWay(_ handshake: Handshake, _ count: Int, to waiting: Waiting) -> Bool {
    [.stranger, .proven, .pinned].contains { (standing: Standing) in
      waiting.fewest[standing.rawValue] < count && admission.mayBegin(standing, after: handshake.standing)
    }
  }

  /// The youngest pending stream of the source with most, if that has several and the newcomer's source has none; nil as long as
  /// there is room for all. Only a stream whose place the newcomer may take counts.
  private func crowdedIndex(for newcomer: UInt64, _ standing: Standing) -> Int? {
    if admission.pendingStreams <= Admission.dropFrom { return nil }
    var counts: [UInt64: Int] = [:]
    for entry in entries where entry.source == newcomer || admission.mayArrive(standing, after: entry.standing) {
      counts[entry.source, default: 0] += 1
    }
    guard counts[newcomer] == nil, let most = counts.values.max(), most > 1 else { return nil }
    return entries.lastIndex { counts[$0.source] == most }
  }

  private func index(of stream: UInt32) -> Int? { entries.firstIndex { $0.stream == stream } }
}
