import Primitives

/// Limits the processor time that received multicast DNS packets may use, in all and for each source.
///
/// A source is an address on an interface. The time of a packet is known only afterwards, so a packet is charged when
/// it has been handled, and the packets that follow wait for less. Nothing proves a source address: a machine can send
/// under many, and under those of others. So the budget also has shares by interface, and a reserve for sources with a
/// service where a node proved its key. A machine that writes the address of such a source can use up the reserve, but
/// not the time of the other packets.
///
/// Time that was used becomes available again at a constant rate, in equal parts for all holders that used time (the
/// rule of `FairRate`). A holder may use time while it has used less than is still available.
struct PacketBudget {
  /// All packets together get a tenth of a processor.
  static let divisor: UInt64 = 10
  /// The time that packets may use at once: 7.8 ms for the packets of each of 64 boxes that start together.
  static let burst = TimeSpan.milliseconds(500)
  /// The time that packets of one interface may use at once. One source may use half of it, so a quiet source finds
  /// time left.
  static let interfaceBurst = TimeSpan.milliseconds(250)
  /// The reserve of proven sources: another fortieth of a processor.
  static let reserveDivisor: UInt64 = 40
  static let reserveBurst = TimeSpan.milliseconds(120)
  /// The sources of one interface that the budget tells apart. The time of further sources is one holder's.
  static let sourcesMax = 64
  /// A board has up to four interfaces. The interface that used least is forgotten for a further one.
  static let interfacesMax = 8

  /// The holder of the time that a packet uses.
  enum Payer: Equatable {
    case everybody
    case reserve
  }

  private var interfaces = Pool(burst, divisor, holdersMax: interfacesMax)
  private var sources: [(interface: UInt32, pool: Pool)] = []
  private var reserve = Pool(reserveBurst, reserveDivisor, holdersMax: sourcesMax)

  /// The payer of the next packet of `source`; nil if the packet must be dropped. `isProven` is called only if the
  /// source has used its share.
  mutating func payer(
    _ source: UInt64, on interface: UInt32, now: Instant, isProven: () -> Bool
  ) -> Payer? {
    let pool = pool(of: interface)
    if interfaces.mayUse(UInt64(interface), now: now) && sources[pool].pool.mayUse(source, now: now) {
      return .everybody
    }
    return reserve.mayUse(source, now: now) && isProven() ? .reserve : nil
  }

  /// Charges the time that a packet took.
  mutating func charge(_ time: TimeSpan, to payer: Payer, _ source: UInt64, on interface: UInt32) {
    switch payer {
    case .everybody:
      interfaces.charge(time, to: UInt64(interface))
      sources[pool(of: interface)].pool.charge(time, to: source)
    case .reserve: reserve.charge(time, to: source)
    }
  }

  private mutating func pool(of interface: UInt32) -> Int {
    if let known = sources.firstIndex(where: { $0.interface == interface }) { return known }
    if sources.count == Self.interfacesMax {
      var least = 0
      for index in sources.indices where sources[index].pool.used < sources[least].pool.used { least = index }
      sources.remove(at: least)
    }
    sources.append((interface, Pool(Self.interfaceBurst, Self.divisor, holdersMax: Self.sourcesMax)))
    return sources.count - 1
  }

  /// Time that holders share.
  private struct Pool {
    private let capacity: UInt64
    private let divisor: UInt64
    private let holdersMax: Int
    /// The time that each holder used and that is not available again yet, in nanoseconds.
    private var holders: [(holder: UInt64, used: UInt64)] = []
    /// The time of holders that were replaced.
    private var others: UInt64 = 0
    private(set) var used: UInt64 = 0
    private var returnedAt = Instant.zero
    /// Time is returned in pieces of at least this length, because each return visits every holder.
    private static let grain: UInt64 = 10_000

    init(_ burst: TimeSpan, _ divisor: UInt64, holdersMax: Int) {
      capacity = burst.nanoseconds
      self.divisor = divisor
      self.holdersMax = holdersMax
    }

    mutating func mayUse(_ holder: UInt64, now: Instant) -> Bool {
      giveBack(now)
      let held = holders.first { $0.holder == holder }?.used ?? 0
      return used < capacity && held < capacity - used
    }

    mutating func charge(_ time: TimeSpan, to holder: UInt64) {
      let time = min(time.nanoseconds, capacity)
      used += time
      if let index = holders.firstIndex(where: { $0.holder == holder }) {
        holders[index].used += time
        return
      }
      if holders.count == holdersMax {
        var least = 0
        for index in holders.indices where holders[index].used < holders[least].used { least = index }
        others += holders[least].used
        holders.remove(at: least)
      }
      holders.append((holder, time))
    }

    private mutating func giveBack(_ now: Instant) {
      var due = (now - returnedAt).nanoseconds / divisor
      if due < Self.grain { return }
      returnedAt = now
      if due >= used {
        holders = []
        (used, others) = (0, 0)
      }
      while due > 0 && used > 0 {
        let each = max(due / UInt64(holders.count + (others > 0 ? 1 : 0)), 1)
        for index in holders.indices {
          let taken = take(holders[index].used, each, &due)
          holders[index].used -= taken
        }
        let taken = take(others, each, &due)
        others -= taken
        holders.removeAll { $0.used == 0 }
      }
    }

    /// Takes back up to `each` of the time `held`. Returns the time that was taken back.
    private mutating func take(_ held: UInt64, _ each: UInt64, _ due: inout UInt64) -> UInt64 {
      let taken = min(held, each, due)
      due -= taken
      used -= taken
      return taken
    }
  }
}
