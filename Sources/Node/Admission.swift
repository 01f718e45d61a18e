import Primitives

/// Admission control for inbound streams, before a TLS context is created. `Admission` only counts and decides. The
/// owner of `Admission` opens and closes streams.
///
/// An inbound stream starts as a pending stream. Until its first bytes look like TLS, a pending stream costs a
/// descriptor and a few bytes. After these bytes, the stream's handshake begins, which costs memory and processor time.
/// Pending streams and handshakes are each limited in total, and together for each source address.
///
/// Some slots of each kind are reserved for known sources, which are addresses at which a known peer proved its key
/// before. Known sources use their reserve first. Beyond the reserve known sources compete with unknown sources, so
/// many known sources do not exclude unknown ones.
///
/// When more than half of the slots for pending streams are taken, a new source replaces a stream of a source with
/// several streams. If no source has several streams, new streams are dropped at random, like MaxStartups of OpenSSH.
/// Honest streams thus have a chance during a flood.
///
/// A handshake is wasted if it fails, or if the link that it opens ends before that link is proven. A wasted handshake
/// is charged to its source address, including the verification of its certificate chain. An address with too many
/// wasted handshakes is refused.
///
/// Order of calls for each stream: `arrive`; then `begin`, when the stream has sent TLS; finally `leave`, in every
/// case. If `begin` returns false, it is called again whenever another handshake has ended.
public struct Admission {
  /// The maximum number of concurrent pending streams. Anyone who can connect can hold one pending stream, for at most
  /// `deadline`.
  public static let pendingStreamsMax = 256
  /// The maximum number of concurrent handshakes. Each handshake needs about 140 kB of memory.
  public static let handshakesMax = 32
  /// Concurrent pending streams and handshakes of one address, counted together.
  public static let perSourceMax = 4
  /// The rate of wasted handshakes from one address.
  public static let wasteRate = TokenRate(interval: .seconds(1), burst: 16)
  /// The verification time of a certificate chain is measured in P-256 signature checks. For each multiple of this
  /// number, one further handshake is charged.
  public static let checksPerHandshake = 16
  /// Slots for pending streams, and slots for handshakes, that are reserved for known sources. Half of each are
  /// reserved for sources of peers that the operator pinned.
  public static let reserved = 8
  /// Above this number of pending streams, some new streams of unknown sources are dropped.
  public static let dropFrom = pendingStreamsMax / 2
  /// The maximum number of known sources that are remembered. The known source that was seen longest ago is replaced.
  /// Sources of peers that the operator pinned are replaced last.
  public static let knownMax = 64
  /// The known sources that are remembered for one key: its addresses over IPv4 and IPv6. A key can have a link from
  /// any number of addresses.
  public static let knownPerPeerMax = 2
  /// The seconds that a refused peer should wait before dialling again.
  public static let retryAfterSeconds: UInt16 = 5

  /// The reason for refusing a stream.
  public enum Refusal: UInt8, Sendable, CaseIterable {
    /// The address has `perSourceMax` streams.
    case sourceFull
    /// Too many handshakes from this address led to no lasting link.
    case wasteful
    /// No slot for a pending stream is left for this source.
    case full
    /// The stream was dropped at random, because many streams are pending.
    case dropped
    /// The first bytes are no TLS ClientHello.
    case notTLS
    /// Nothing was received from the stream in time.
    case silent

    /// The text in the journal's summary.
    public var name: StaticString {
      switch self {
      case .sourceFull: "beyond 4 at once from one address"
      case .wasteful: "after handshakes without a lasting link"
      case .full: "beyond all slots"
      case .dropped: "dropped early"
      case .notTLS: "without TLS"
      case .silent: "silent"
      }
    }
  }

  /// The number of refusals by reason.
  public private(set) var refusals = FixedArray<6, UInt64>(repeating: 0)
  public var pendingStreams: Int { pending.total }
  public var handshakes: Int { running.total }
  private var pending = Holders()
  private var running = Holders()
  /// The sources that have streams. A source keeps the admission class that it had at its first stream until it has no
  /// streams.
  private var sources: [(source: UInt64, standing: Standing, count: Int)] = []
  private var known: [(peer: NodeID, source: UInt64, standing: Standing)] = []
  private var waste = SourceBuckets(wasteRate)

  /// The number of slots of one kind (pending streams or handshakes) that each admission class holds.
  private struct Holders {
    private var counts = FixedArray<3, Int>(repeating: 0)

    var total: Int { counts[0] + counts[1] + counts[2] }

    subscript(standing: Standing) -> Int {
      get { counts[standing.rawValue] }
      set { counts[standing.rawValue] = newValue }
    }

    /// Whether one of `max` slots is left for another stream of this admission class. Each class uses its own reserve
    /// first.
    func hasRoom(_ standing: Standing, max: Int) -> Bool {
      let reserve = Admission.reserved / 2
      // `known` are slots of known sources outside the reserve of the operator's pins. `others` are the slots among
      // `known` that are also outside the reserve of known sources, so they compete with unknown sources.
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

  /// How long a handshake may receive no bytes, and how long the handshake may take in total. After either time, a
  /// handshake must give its slot to a waiting stream. Over Bluetooth a round trip takes up to 400 ms.
  ///
  /// `isCrowded` means that more addresses wait than there are handshake slots. Over IP, received bytes no longer
  /// extend the time if `isCrowded` is true. If bytes extended the time, 24 handshakes of 2 s each would let only 60
  /// waiting streams begin within their deadline of 5 s.
  public static func patience(_ bearer: BearerKind, isCrowded: Bool) -> (silence: TimeSpan, total: TimeSpan) {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: (.milliseconds(2500), .seconds(8))
    case .ethernet, .wifi, .wifiDirect, .loopback:
      (.milliseconds(500), isCrowded ? .milliseconds(500) : .seconds(2))
    }
  }

  /// How long a stream may take from its admission to the proof of its key. Over Bluetooth a handshake takes three
  /// round trips of up to 400 ms, and some kilobytes at as little as 5 kB/s.
  public static func deadline(_ bearer: BearerKind) -> TimeSpan {
    switch bearer {
    case .bluetoothLE, .bluetoothClassic: .seconds(10)
    case .ethernet, .wifi, .wifiDirect, .loopback: .seconds(5)
    }
  }

  /// Requests admission for a stream from `source`. Returns nil if the stream is admitted as a pending stream. `random`
  /// is 64 random bits. `replaces` means that another pending stream was closed to make room for the new stream.
  public mutating func arrive(_ source: UInt64, random: UInt64, replaces: Bool = false, now: Instant) -> Refusal? {
    let index = sources.firstIndex { $0.source == source }
    let standing = index.map { sources[$0].standing } ?? standing(met: source)
    if let index, sources[index].count >= Self.perSourceMax { return refuse(.sourceFull) }
    if waste.next(source) > now { return refuse(.wasteful) }
    if !pending.hasRoom(standing, max: Self.pendingStreamsMax) { return refuse(.full) }
    if standing == .stranger && !replaces && pendingStreams > Self.dropFrom {
      // The drop probability rises from 0, when half of the slots are taken, to 1, when all are taken.
      let share = UInt64(pendingStreams - Self.dropFrom) &* 1000 / UInt64(Self.pendingStreamsMax - Self.dropFrom)
      if random % 1000 < share { return refuse(.dropped) }
    }
    pending[standing] += 1
    if let index { sources[index].count += 1 } else { sources.append((source, standing, 1)) }
    return nil
  }

  /// The admission class of a source. The source's admission class stays the same while the source has streams.
  public func standing(of source: UInt64) -> Standing {
    sources.first { $0.source == source }?.standing ?? standing(met: source)
  }

  /// Whether a stream of the class `standing` would be admitted if one pending stream of the class `other` were
  /// removed.
  public func mayArrive(_ standing: Standing, after other: Standing) -> Bool {
    var rest = pending
    rest[other] -= 1
    return rest.hasRoom(standing, max: Self.pendingStreamsMax)
  }

  /// Whether a handshake of the class `standing` may begin now or, with `other`, after a handshake of that class has
  /// ended.
  public func mayBegin(_ standing: Standing, after other: Standing? = nil) -> Bool {
    var rest = running
    if let other { rest[other] -= 1 }
    return rest.hasRoom(standing, max: Self.handshakesMax)
  }

  /// Records that a pending stream from `source` has sent TLS. Returns true if the stream's handshake may begin. If
  /// false, the stream waits until another handshake ends.
  public mutating func begin(_ source: UInt64) -> Bool {
    let standing = standing(of: source)
    guard mayBegin(standing) else { return false }
    pending[standing] -= 1
    running[standing] += 1
    return true
  }

  /// Records that a stream has ended or has proved its key.
  public mutating func leave(_ source: UInt64, hadHandshake: Bool) {
    guard let index = sources.firstIndex(where: { $0.source == source }) else { return }
    if hadHandshake { running[sources[index].standing] -= 1 } else { pending[sources[index].standing] -= 1 }
    sources[index].count -= 1
    if sources[index].count == 0 {
      sources.swapAt(index, sources.count - 1)
      sources.removeLast()
    }
  }

  /// Records that a handshake from this source was wasted, which means that it led to no lasting link. `checks` is the
  /// verification time of the peer's certificate chain, in P-256 signature checks.
  public mutating func wasted(_ source: UInt64, checks: Int = 0, now: Instant) {
    waste.charge(source, 1 + UInt64(checks / Self.checksPerHandshake), now: now)
  }

  /// Records that a peer of this admission class proved its key from this source. A source has the highest class of its
  /// peers.
  public mutating func met(_ source: UInt64, _ peer: NodeID, _ standing: Standing) {
    known.removeAll { $0.peer == peer && $0.source == source }
    if standing == .stranger { return }
    if known.count(where: { $0.peer == peer }) == Self.knownPerPeerMax,
      let oldest = known.firstIndex(where: { $0.peer == peer })
    {
      known.remove(at: oldest)
    }
    if known.count == Self.knownMax {
      guard let oldest = known.firstIndex(where: { $0.standing < .pinned }) ?? (standing == .pinned ? 0 : nil) else {
        return
      }
      known.remove(at: oldest)
    }
    known.append((peer, source, standing))
  }

  private func standing(met source: UInt64) -> Standing {
    known.reduce(.stranger) { $1.source == source ? max($0, $1.standing) : $0 }
  }

  public mutating func count(_ refusal: Refusal) { refusals[Int(refusal.rawValue)] &+= 1 }

  private mutating func refuse(_ refusal: Refusal) -> Refusal {
    count(refusal)
    return refusal
  }

  /// Whether the first bytes of a stream begin a TLS ClientHello (RFC 8446, sections 5.1 and 4). nil if there are too
  /// few bytes to decide.
  public static func isClientHello(_ bytes: [UInt8]) -> Bool? {
    // In order: record type handshake, version 3.x, record length, message type client_hello.
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
