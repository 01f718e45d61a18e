import Node
import Primitives

/// Streams that others opened, until their handshake may begin. Sans-IO: `InboundStreams` owns the descriptors, and tells
/// it of each stream under a number of its own. `Admission` decides who may come in; here is what has been read of each.
///
/// The rule: `arrive`; then `receive` as bytes come, `leave` when the stream has ended, and what they say is carried out;
/// `handshakeEnded` for each stream that began; `expire` no later than `deadline`.
struct AdmissionGate {
  /// The bytes by which TLS is recognised. No more are read of a byte stream before its handshake begins.
  static let bytesNeeded = 6

  /// A stream whose handshake may begin, and is to be over by `deadline`.
  struct Opening: Equatable {
    let stream: UInt32
    let source: UInt64
    /// What it has sent so far.
    let bytes: [UInt8]
    let deadline: Instant
  }

  /// What follows from bytes that came.
  enum Verdict: Equatable {
    /// They are too few to tell.
    case incomplete
    /// It speaks TLS and waits for a place. It has said what it can: only its end matters from here on.
    case waits
    case opens(Opening)
    /// It does not speak TLS, and has left the gate.
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

  /// When the next stream will have been silent for too long.
  var deadline: Instant { entries.reduce(.never) { min($0, $1.deadline) } }

  /// Whether a new stream may stay. `random` is 64 random bits.
  mutating func arrive(_ stream: UInt32, _ source: UInt64, over bearer: BearerKind, random: UInt64, now: Instant)
    -> Bool
  {
    if admission.arrive(source, random: random) != nil { return false }
    entries.append(Entry(stream: stream, source: source, deadline: now + Admission.deadline(bearer)))
    return true
  }

  /// Bytes that a stream of the gate has sent.
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

  /// A stream of the gate has ended.
  mutating func leave(_ stream: UInt32) {
    if let index = index(of: stream) { leave(at: index, .silent) }
  }

  /// A handshake that came in here is over, one way or the other; `isKnown`: it proved a key that is known. Gives the
  /// stream whose turn that makes it: of those that may begin the one that waits longest.
  mutating func handshakeEnded(_ source: UInt64, isKnown: Bool) -> Opening? {
    admission.leave(source, hadHandshake: true)
    if isKnown { admission.met(source) }
    for index in entries.indices where entries[index].isReady {
      if let opening = begin(at: index) { return opening }
    }
    return nil
  }

  /// A stream that has come to nothing in its time, and has left the gate; call it until it gives nil.
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
