import Node
import Primitives

/// Inbound streams until their handshake may begin. Sans-IO: `InboundStreams` owns the descriptors and gives each stream a
/// number. `Admission` decides which stream may enter; the gate keeps the first bytes of each.
///
/// The rule: call `arrive` once for a stream, then `receive` for its bytes and `leave` when it has ended, and carry out
/// what they return; `handshakeEnded` once for each stream that opened; `nextExpired` no later than `deadline`.
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
    /// The key is proved, and there is a slot for its link. `isKnown`: it is a known key.
    case link(isKnown: Bool)
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
    let deadline: Instant
    var bytes: [UInt8] = []
    /// It speaks TLS.
    var isReady = false
  }

  private(set) var admission = Admission()
  /// Oldest first; at most `Admission.pendingStreamsMax`.
  private var entries: [Entry] = []

  /// When the next stream expires.
  var deadline: Instant { entries.reduce(.never) { min($0, $1.deadline) } }

  /// Adds a stream; false when it is refused. `random`: 64 random bits.
  mutating func arrive(_ stream: UInt32, _ source: UInt64, over bearer: BearerKind, random: UInt64, now: Instant)
    -> Bool
  {
    if admission.arrive(source, random: random, now: now) != nil { return false }
    entries.append(Entry(stream: stream, source: source, deadline: now + Admission.deadline(bearer)))
    return true
  }

  /// Handles bytes of a stream.
  mutating func receive(_ bytes: UnsafeRawBufferPointer, from stream: UInt32) -> Verdict {
    guard let index = index(of: stream) else { return .refused }
    entries[index].bytes += bytes
    switch Admission.isClientHello(entries[index].bytes) {
    case nil: return .incomplete
    case .some(false):
      leave(at: index, .notTLS)
      return .refused
    case .some(true):
      entries[index].isReady = true
      return begin(at: index).map { .opens($0) } ?? .waits
    }
  }

  /// Removes a stream that has ended.
  mutating func leave(_ stream: UInt32) {
    if let index = index(of: stream) { leave(at: index, .silent) }
  }

  /// A handshake has ended. Returns the stream that takes the free slot: of those that may begin, the one that has waited
  /// longest.
  mutating func handshakeEnded(_ source: UInt64, _ end: HandshakeEnd, now: Instant) -> Opening? {
    admission.leave(source, hadHandshake: true)
    switch end {
    case .link(isKnown: true): admission.met(source)
    case .link(isKnown: false): break
    case .noLink: admission.wasted(source, now: now)
    }
    for index in entries.indices where entries[index].isReady {
      if let opening = begin(at: index) { return opening }
    }
    return nil
  }

  /// A link from this source has ended before it was worth its handshake.
  mutating func wasted(_ source: UInt64, now: Instant) { admission.wasted(source, now: now) }

  /// Removes and returns a stream whose deadline has passed; call it until it returns nil.
  mutating func nextExpired(now: Instant) -> UInt32? {
    guard let index = entries.firstIndex(where: { $0.deadline <= now }) else { return nil }
    let stream = entries[index].stream
    leave(at: index, .silent)
    return stream
  }

  private mutating func begin(at index: Int) -> Opening? {
    guard admission.begin(entries[index].source) else { return nil }
    let entry = entries.remove(at: index)
    return Opening(stream: entry.stream, source: entry.source, bytes: entry.bytes, deadline: entry.deadline)
  }

  private mutating func leave(at index: Int, _ reason: Admission.Refusal) {
    admission.count(reason)
    admission.leave(entries.remove(at: index).source, hadHandshake: false)
  }

  private func index(of stream: UInt32) -> Int? { entries.firstIndex { $0.stream == stream } }
}
