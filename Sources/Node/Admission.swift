import Primitives

/// Admission control for inbound streams, before a TLS context is made. Pure: it counts, and the owner acts.
///
/// A stream that somebody opened to us is first a pending stream: a descriptor and a few bytes, until its first bytes look like
/// the beginning of TLS. Then it has a handshake, which costs memory and computing. Both have limits, all together and by
/// source; some of each are kept for sources where somebody known was met before. Between half full and full pending streams are
/// dropped at random (as OpenSSH's MaxStartups does), so that in a flood an honest one still has a chance.
///
/// The rule: `arrive`; then `begin` when it has shown that it speaks, again when a handshake has ended; and at its end
/// `leave`, whatever it had come to.
public struct Admission {
  /// Pending streams at once. Who can hold a place: anybody who can connect, for `deadline` at most.
  public static let pendingStreamsMax = 256
  /// Handshakes at once: about 100 KiB each.
  public static let handshakesMax = 32
  /// Pending streams and handshakes at once from one address.
  public static let perSourceMax = 4
  /// Of each, how many are kept for known sources.
  public static let reserved = 8
  /// From this many pending streams on some are dropped.
  public static let dropFrom = pendingStreamsMax / 2
  /// Sources where somebody known was met, the latest.
  public static let knownMax = 64
  /// What a refused peer is to wait, in seconds.
  public static let retryAfterSeconds: UInt16 = 5

  /// Why somebody is not let in.
  public enum Refusal: UInt8, Sendable, CaseIterable {
    case sourceFull
    case full
    case dropped
    /// Its first bytes are not the beginning of TLS.
    case notTLS
    /// It did not speak in time.
    case silent

    /// As the journal sums them up.
    public var name: StaticString {
      switch self {
      case .sourceFull: "beyond 4 at once from one address"
      case .full: "beyond all places"
      case .dropped: "dropped early"
      case .notTLS: "without TLS"
      case .silent: "silent"
      }
    }
  }

  /// How often each refusal happened.
  public private(set) var refusals = FixedArray<5, UInt64>(repeating: 0)
  public private(set) var pendingStreams = 0
  public private(set) var handshakes = 0
  private var sources: [(source: UInt64, count: Int)] = []
  private var known: [UInt64] = []

  public init() {}

  /// How long from being let in to having proved a key. Over LE a handshake has three round trips of up to 400 ms, and some
  /// kilobytes at as little as 5 kB/s.
  public static func deadline(_ bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .bluetoothLE: .seconds(10)
    case .ethernet, .wifi, .wifiDirect, .loopback: .seconds(5)
    }
  }

  /// A stream from `source`. Nil lets it in as a pending stream. `random` is 64 random bits.
  public mutating func arrive(_ source: UInt64, random: UInt64) -> Refusal? {
    let isKnown = known.contains(source)
    let index = sources.firstIndex { $0.source == source }
    if let index, sources[index].count >= Self.perSourceMax { return refuse(.sourceFull) }
    if pendingStreams >= Self.pendingStreamsMax - (isKnown ? 0 : Self.reserved) { return refuse(.full) }
    if !isKnown && pendingStreams > Self.dropFrom {
      // From 0 at half full to 1 at full.
      let share = UInt64(pendingStreams - Self.dropFrom) &* 1000 / UInt64(Self.pendingStreamsMax - Self.dropFrom)
      if random % 1000 < share { return refuse(.dropped) }
    }
    pendingStreams += 1
    if let index { sources[index].count += 1 } else { sources.append((source, 1)) }
    return nil
  }

  /// The pending stream speaks TLS: whether its handshake may begin. If not it waits for another one's end.
  public mutating func begin(_ source: UInt64) -> Bool {
    let limit = known.contains(source) ? Self.handshakesMax : Self.handshakesMax - Self.reserved
    guard handshakes < limit else { return false }
    pendingStreams -= 1
    handshakes += 1
    return true
  }

  /// A stream has come to its end, or has proved its key.
  public mutating func leave(_ source: UInt64, hadHandshake: Bool) {
    if hadHandshake { handshakes -= 1 } else { pendingStreams -= 1 }
    guard let index = sources.firstIndex(where: { $0.source == source }) else { return }
    sources[index].count -= 1
    if sources[index].count == 0 {
      sources.swapAt(index, sources.count - 1)
      sources.removeLast()
    }
  }

  /// Somebody who is known proved its key from there.
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

  /// Whether the first bytes of a stream are those of a TLS ClientHello (RFC 8446, 5.1 and 4); nil while there are too few
  /// to tell.
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
