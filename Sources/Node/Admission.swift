import Primitives

/// Admission control for inbound streams, before a TLS context is created. Pure: it counts, and the owner acts.
///
/// An inbound stream starts as a pending stream: a descriptor and a few bytes, until its first bytes look like TLS.
/// Then it gets a handshake, which costs memory and computing. Both are limited in total and by source, and some places
/// of each are reserved for sources where a known peer was met before. Above half full, a stream of a source without one takes
/// the place of a source with several; without such a source streams are dropped at random (like OpenSSH's MaxStartups), so
/// that honest ones have a chance during a flood.
///
/// A handshake costs computing. One that fails, or whose link ends before it is proven, is charged to its address; an
/// address with too many of them is refused before the next one.
///
/// Order of calls: `arrive`; then `begin` when the stream has sent TLS, and again whenever a handshake has ended;
/// finally `leave`, in every state.
public struct Admission {
  /// Pending streams at once. Anybody who can connect may hold a place, for at most `deadline`.
  public static let pendingStreamsMax = 256
  /// Handshakes at once: about 140 kB each.
  public static let handshakesMax = 32
  /// Pending streams and handshakes at once from one address.
  public static let perSourceMax = 4
  /// Handshakes of one address without a link that lasts.
  public static let wasteRate = TokenRate(interval: .seconds(1), burst: 16)
  /// Places of each kind reserved for known sources.
  public static let reserved = 8
  /// Above this number of pending streams, some new ones are dropped.
  public static let dropFrom = pendingStreamsMax / 2
  /// Known sources that are remembered; the one met longest ago is replaced.
  public static let knownMax = 64
  /// How long a refused peer should wait, in seconds.
  public static let retryAfterSeconds: UInt16 = 5

  /// Why a stream is refused.
  public enum Refusal: UInt8, Sendable, CaseIterable {
    case sourceFull
    /// Too many handshakes from this address led to no link that lasts.
    case wasteful
    case full
    case dropped
    /// The first bytes are not a TLS ClientHello.
    case notTLS
    /// Nothing was sent in time.
    case silent

    /// The text in the journal's summary.
    public var name: StaticString {
      switch self {
      case .sourceFull: "beyond 4 at once from one address"
      case .wasteful: "after handshakes without a lasting link"
      case .full: "beyond all places"
      case .dropped: "dropped early"
      case .notTLS: "without TLS"
      case .silent: "silent"
      }
    }
  }

  /// Number of refusals by reason.
  public private(set) var refusals = FixedArray<6, UInt64>(repeating: 0)
  public private(set) var pendingStreams = 0
  public private(set) var handshakes = 0
  private var sources: [(source: UInt64, count: Int)] = []
  private var known: [UInt64] = []
  private var waste = SourceBuckets(wasteRate)

  public init() {}

  /// When others wait: how long a handshake may receive no bytes, and how long it may take in all, before it gives way. Over
  /// Bluetooth a round trip takes up to 400 ms.
  public static func patience(_ bearer: BearerKind) -> (silence: TimeSpan, total: TimeSpan) {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: (.milliseconds(2500), .seconds(8))
    case .ethernet, .wifi, .wifiDirect, .loopback: (.milliseconds(500), .seconds(2))
    }
  }

  /// Time from admission to the proof of a key. Over Bluetooth a handshake takes three round trips of up to 400 ms,
  /// and some kilobytes at as little as 5 kB/s.
  public static func deadline(_ bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: .seconds(10)
    case .ethernet, .wifi, .wifiDirect, .loopback: .seconds(5)
    }
  }

  /// A stream from `source` arrived. Nil admits it as a pending stream. `random` is 64 random bits. `replaces`: the place of
  /// another pending stream was taken back for it.
  public mutating func arrive(_ source: UInt64, random: UInt64, replaces: Bool = false, now: Instant) -> Refusal? {
    let isKnown = known.contains(source)
    let index = sources.firstIndex { $0.source == source }
    if let index, sources[index].count >= Self.perSourceMax { return refuse(.sourceFull) }
    if waste.next(source) > now { return refuse(.wasteful) }
    if pendingStreams >= Self.pendingStreamsMax - (isKnown ? 0 : Self.reserved) { return refuse(.full) }
    if !isKnown && !replaces && pendingStreams > Self.dropFrom {
      // Drop probability: 0 at half full, 1 at full.
      let share = UInt64(pendingStreams - Self.dropFrom) &* 1000 / UInt64(Self.pendingStreamsMax - Self.dropFrom)
      if random % 1000 < share { return refuse(.dropped) }
    }
    pendingStreams += 1
    if let index { sources[index].count += 1 } else { sources.append((source, 1)) }
    return nil
  }

  /// The handshakes that may take place at once for one of this source to begin.
  public func handshakesMax(for source: UInt64) -> Int {
    known.contains(source) ? Self.handshakesMax : Self.handshakesMax - Self.reserved
  }

  /// The pending stream sends TLS. True when its handshake may begin; otherwise it waits until another handshake ends.
  public mutating func begin(_ source: UInt64) -> Bool {
    guard handshakes < handshakesMax(for: source) else { return false }
    pendingStreams -= 1
    handshakes += 1
    return true
  }

  /// A stream has ended or has proved its key.
  public mutating func leave(_ source: UInt64, hadHandshake: Bool) {
    if hadHandshake { handshakes -= 1 } else { pendingStreams -= 1 }
    guard let index = sources.firstIndex(where: { $0.source == source }) else { return }
    sources[index].count -= 1
    if sources[index].count == 0 {
      sources.swapAt(index, sources.count - 1)
      sources.removeLast()
    }
  }

  /// A handshake from this source led to no link that lasts.
  public mutating func wasted(_ source: UInt64, now: Instant) { _ = waste.take(source, now: now) }

  /// A known peer proved its key from this source.
  public mutating func met(_ source: UInt64) {
    known.removeAll { $0 == source }
    if known.count == Self.knownMax { known.removeFirst() }
    known.append(source)
  }

  public mutating func count(_ refusal: Refusal) { refusals[Int(refusal.rawValue)] &+= 1 }

  private mutating func refuse(_ refusal: Refusal) -> Refusal {
    count(refusal)
    return refusal
  }

  /// Whether the first bytes of a stream begin a TLS ClientHello (RFC 8446, sections 5.1 and 4); nil while there are
  /// too few to tell.
  public static func isClientHello(_ bytes: [UInt8]) -> Bool? {
    // handshake, version 3.x, length, client_hello
    for (index, byte) in bytes.prefix(6).enumerated() {
      switch index {
      case 0: if byte != 22 { return false }
      case 1: if byte != 3 { return false }
      case 2: if byte > 4 { return false }
      case 3: if byte > 0x40 { return false }
      case 5: if byte != 1 { return false }
      default: break
      }
    }
    return bytes.count >= 6 ? true : nil
  }
}
