import Primitives

/// Admission control for inbound streams, before a TLS context is created. Pure: it counts, and the owner acts.
///
/// An inbound stream starts as a pending stream: a descriptor and a few bytes, until its first bytes look like TLS.
/// Then it gets a handshake, which costs memory and computing. Both are limited in total and by source, and some places
/// of each are reserved for sources where a known peer was met before. Known sources take the reserved places first: beyond
/// these they compete with strangers, so that many known addresses exclude nobody. Above half full, a stream of a source
/// without one takes the place of a source with several; without such a source streams are dropped at random (like OpenSSH's
/// MaxStartups), so that honest ones have a chance during a flood.
///
/// A handshake costs computing. One that fails, or whose link ends before it is proven, is charged to its address, and with it the
/// verification of its chain; an address with too many of them is refused before the next one.
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
  /// A chain that takes the time of so many checks of a signature over P-256 counts as a further handshake.
  public static let checksPerHandshake = 16
  /// Places of each kind reserved for known sources: half of them for sources of peers that the operator pinned.
  public static let reserved = 8
  /// Above this number of pending streams, some new ones are dropped.
  public static let dropFrom = pendingStreamsMax / 2
  /// Known sources that are remembered. The one met longest ago is replaced, those of the operator's pins last.
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
  public var pendingStreams: Int { pending.total }
  public var handshakes: Int { running.total }
  private var pending = Holders()
  private var running = Holders()
  /// The standing of a source is that at its first stream, as long as it has any.
  private var sources: [(source: UInt64, standing: Standing, count: Int)] = []
  private var known: [(source: UInt64, standing: Standing)] = []
  private var waste = SourceBuckets(wasteRate)

  /// How many places of one kind each standing holds.
  private struct Holders {
    private var counts = FixedArray<3, Int>(repeating: 0)

    var total: Int { counts[0] + counts[1] + counts[2] }

    subscript(standing: Standing) -> Int {
      get { counts[standing.rawValue] }
      set { counts[standing.rawValue] = newValue }
    }

    /// Whether one more of this standing finds a place among `max`. Each standing takes its own reserve first.
    func hasRoom(_ standing: Standing, max: Int) -> Bool {
      let reserve = Admission.reserved / 2
      // Known sources, without those in the operator's reserve; and of these the ones that compete with strangers.
      let known = self[.proven] + Swift.max(self[.pinned] - reserve, 0)
      let others = Swift.max(known - reserve, 0)
      return switch standing {
      case .pinned: total < max
      case .proven: self[.stranger] + known < max - reserve
      case .stranger: self[.stranger] + others < max - 2 * reserve
      }
    }
  }

  public init() {}

  /// When others wait: how long a handshake may receive no bytes, and how long it may take in all, before it gives way. Over
  /// Bluetooth a round trip takes up to 400 ms. `isCrowded`: more addresses wait than there are places. Then bytes alone
  /// keep no place over IP, because 24 handshakes of 2 s each would let only 60 of the waiting begin within their 5 s.
  public static func patience(_ bearer: BearerKind, isCrowded: Bool) -> (silence: TimeSpan, total: TimeSpan) {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: (.milliseconds(2500), .seconds(8))
    case .ethernet, .wifi, .wifiDirect, .loopback:
      (.milliseconds(500), isCrowded ? .milliseconds(500) : .seconds(2))
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
    let index = sources.firstIndex { $0.source == source }
    let standing = index.map { sources[$0].standing } ?? standing(met: source)
    if let index, sources[index].count >= Self.perSourceMax { return refuse(.sourceFull) }
    if waste.next(source) > now { return refuse(.wasteful) }
    if !pending.hasRoom(standing, max: Self.pendingStreamsMax) { return refuse(.full) }
    if standing == .stranger && !replaces && pendingStreams > Self.dropFrom {
      // Drop probability: 0 at half full, 1 at full.
      let share = UInt64(pendingStreams - Self.dropFrom) &* 1000 / UInt64(Self.pendingStreamsMax - Self.dropFrom)
      if random % 1000 < share { return refuse(.dropped) }
    }
    pending[standing] += 1
    if let index { sources[index].count += 1 } else { sources.append((source, standing, 1)) }
    return nil
  }

  /// The standing of a source, which stays the same as long as it has streams.
  public func standing(of source: UInt64) -> Standing {
    sources.first { $0.source == source }?.standing ?? standing(met: source)
  }

  /// Whether a stream of a standing would find a pending place when one of the other standing has left.
  public func mayArrive(_ standing: Standing, after other: Standing) -> Bool {
    var rest = pending
    rest[other] -= 1
    return rest.hasRoom(standing, max: Self.pendingStreamsMax)
  }

  /// Whether a handshake of a standing may begin; `other`: when one of this standing has ended.
  public func mayBegin(_ standing: Standing, after other: Standing? = nil) -> Bool {
    var rest = running
    if let other { rest[other] -= 1 }
    return rest.hasRoom(standing, max: Self.handshakesMax)
  }

  /// The pending stream sends TLS. True when its handshake may begin; otherwise it waits until another handshake ends.
  public mutating func begin(_ source: UInt64) -> Bool {
    let standing = standing(of: source)
    guard mayBegin(standing) else { return false }
    pending[standing] -= 1
    running[standing] += 1
    return true
  }

  /// A stream has ended or has proved its key.
  public mutating func leave(_ source: UInt64, hadHandshake: Bool) {
    guard let index = sources.firstIndex(where: { $0.source == source }) else { return }
    if hadHandshake { running[sources[index].standing] -= 1 } else { pending[sources[index].standing] -= 1 }
    sources[index].count -= 1
    if sources[index].count == 0 {
      sources.swapAt(index, sources.count - 1)
      sources.removeLast()
    }
  }

  /// A handshake from this source led to no link that lasts. `checks`: the time that its chain has taken, in checks of a signature over
  /// P-256.
  public mutating func wasted(_ source: UInt64, checks: Int = 0, now: Instant) {
    waste.charge(source, 1 + UInt64(checks / Self.checksPerHandshake), now: now)
  }

  /// A peer of this standing proved its key from this source. A source keeps the highest standing of its peers.
  public mutating func met(_ source: UInt64, _ standing: Standing) {
    let standing = max(standing, self.standing(met: source))
    if standing == .stranger { return }
    known.removeAll { $0.source == source }
    if known.count == Self.knownMax {
      guard let oldest = known.firstIndex(where: { $0.standing < .pinned }) ?? (standing == .pinned ? 0 : nil) else {
        return
      }
      known.remove(at: oldest)
    }
    known.append((source, standing))
  }

  private func standing(met source: UInt64) -> Standing { known.first { $0.source == source }?.standing ?? .stranger }

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
