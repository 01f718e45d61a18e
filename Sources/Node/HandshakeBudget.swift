import Primitives

/// Limits the processor time of handshakes with peers that have proven no key. Anyone who can connect can begin a
/// handshake, from any number of addresses, so limits for each address do not bound the sum.
///
/// The budget has a pool for each admission class. A peer pays from the pool of its class, and if that pool is used up,
/// from the pools of the classes below. So strangers cannot use up the time of known addresses. A handshake may begin
/// while its pool has time left. The handshake first pays what handshakes usually cost, and then each measured step
/// beyond. The steps of running handshakes are never delayed by the budget, so a pool may get into debt.
///
/// The budget also remembers which sources had a turn lately, so that sources can take turns.
public struct HandshakeBudget {
  /// The processor time that handshakes of one pool may use at once: 7.8 ms for each of 64 peers that arrive together.
  static let burst = TimeSpan.milliseconds(500)
  /// The first estimate of the processor time of a handshake.
  static let estimate = TimeSpan.milliseconds(2)
  /// The number of sources whose turns are remembered. Anyone who can connect fills this table. The source whose turn
  /// was longest ago is forgotten, and then counts as a source that had no turn.
  public static let turnsMax = 512

  /// The payments of one handshake.
  public struct Charge: Sendable {
    /// The number of the source's turn; later turns have higher numbers.
    public let turn: UInt64
    fileprivate let pool: Int
    fileprivate let prepaid: TimeSpan
    fileprivate var spent = TimeSpan(nanoseconds: 0)

    fileprivate var unused: TimeSpan { TimeSpan(nanoseconds: prepaid.nanoseconds - spent.nanoseconds) }
  }

  /// The time of the pools, by admission class. Strangers use a tenth of a processor, and each class of known addresses
  /// a further fortieth.
  private struct Pool {
    let divisor: UInt64
    /// When all time of the pool is available again (the generic cell rate algorithm, ITU-T I.371).
    var wholeAt = Instant.zero

    var readyAt: Instant { Instant.zero + (wholeAt - (Instant.zero + HandshakeBudget.burst * divisor)) }

    mutating func pay(_ time: TimeSpan, now: Instant) { wholeAt = max(wholeAt, now) + time * divisor }
    mutating func giveBack(_ time: TimeSpan) {
      wholeAt = Instant.zero + (wholeAt - (Instant.zero + time * divisor))
    }
  }

  private struct Turn {
    var source: UInt64 = 0
    var number: UInt64 = 0
  }

  private var strangers = Pool(divisor: 10)
  private var proven = Pool(divisor: 40)
  private var pinned = Pool(divisor: 40)
  /// The processor time of a handshake, as a moving average over the handshakes that ended.
  private(set) var usual = estimate
  private var turns = FixedArray<512, Turn>(repeating: Turn())
  private var lastTurn: UInt64 = 0

  public init() {}

  /// When a handshake of this admission class may begin. The time is not in the future if it may begin now.
  public func readyAt(_ standing: Standing) -> Instant {
    switch standing {
    case .stranger: strangers.readyAt
    case .proven: min(proven.readyAt, strangers.readyAt)
    case .pinned: min(pinned.readyAt, proven.readyAt, strangers.readyAt)
    }
  }

  /// Begins a handshake, which pays what handshakes usually cost. The caller has checked `readyAt`.
  public mutating func begin(_ source: UInt64, _ standing: Standing, now: Instant) -> Charge {
    var pool = standing.rawValue
    while pool > 0 && self[pool].readyAt > now { pool -= 1 }
    self[pool].pay(usual, now: now)
    lastTurn += 1
    var slot = 0
    for index in turns.indices {
      if turns[index].number > 0 && turns[index].source == source {
        slot = index
        break
      }
      if turns[index].number < turns[slot].number { slot = index }
    }
    turns[slot] = Turn(source: source, number: lastTurn)
    return Charge(turn: lastTurn, pool: pool, prepaid: usual)
  }

  /// Charges the measured time of a step of a handshake.
  public mutating func spent(_ time: TimeSpan, _ charge: inout Charge, now: Instant) {
    let paid = max(charge.spent, charge.prepaid)
    charge.spent = charge.spent + time
    if charge.spent > paid {
      self[charge.pool].pay(TimeSpan(nanoseconds: charge.spent.nanoseconds - paid.nanoseconds), now: now)
    }
  }

  /// Ends a handshake, which gets back what it paid and did not use.
  public mutating func ended(_ charge: Charge) {
    if charge.spent < charge.prepaid { self[charge.pool].giveBack(charge.unused) }
    usual = max((usual * 3 + charge.spent) / 4, Self.estimate)
  }

  /// The number of the last turn of a source; 0 if the source had none lately.
  public func turn(of source: UInt64) -> UInt64 {
    for index in turns.indices where turns[index].number > 0 && turns[index].source == source {
      return turns[index].number
    }
    return 0
  }

  private subscript(pool: Int) -> Pool {
    get { pool == 0 ? strangers : pool == 1 ? proven : pinned }
    set {
      switch pool {
      case 0: strangers = newValue
      case 1: proven = newValue
      case _: pinned = newValue
      }
    }
  }
}
