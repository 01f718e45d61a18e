import Bearer
import Primitives

/// How often announcements may make this box dial. Multicast DNS is unauthenticated: whoever is on a network can announce
/// any address on it, with another port every second. So each address, and each interface all together, has a budget of
/// new places: some at once, then one an interval.
struct DialBudget {
  /// New places at one address at once: a machine with some nodes, each of which has restarted.
  static let hostBurst: UInt64 = 8
  static let hostInterval = TimeSpan.seconds(10)
  /// New places on one interface at once: 64 nodes with both IP versions.
  static let interfaceBurst: UInt64 = 128
  static let interfaceInterval = TimeSpan.seconds(1)

  /// What a budget is kept for; `address` is nil for an interface as a whole.
  private struct Account {
    let interface: UInt32
    let address: (high: UInt64, low: UInt64)?
    /// When it will be whole again (the generic cell rate algorithm's theoretical arrival time). Until then it is kept.
    var wholeAt: Instant
  }

  /// At most 128 + 80 addresses an interface: no more become known than its own budget lets through while they are kept.
  private var accounts: [Account] = []

  /// Whether a new place, heard on `interface`, may be dialled; if so it is charged.
  mutating func take(_ place: IPEndpoint, heardOn interface: UInt32, now: Instant) -> Bool {
    accounts.removeAll { $0.wholeAt <= now }
    let host = index(interface, (place.high, place.low)), whole = index(interface, nil)
    guard let hostEnd = Self.charged(host.map { accounts[$0].wholeAt }, Self.hostBurst, Self.hostInterval, now),
      let wholeEnd = Self.charged(
        whole.map { accounts[$0].wholeAt }, Self.interfaceBurst, Self.interfaceInterval, now)
    else { return false }
    set(host, interface, (place.high, place.low), hostEnd)
    set(whole, interface, nil, wholeEnd)
    return true
  }

  /// When an account is whole again after one more charge; nil when it does not bear one.
  private static func charged(_ wholeAt: Instant?, _ burst: UInt64, _ interval: TimeSpan, _ now: Instant) -> Instant? {
    let before = max(wholeAt ?? now, now)
    return before - now > interval * (burst - 1) ? nil : before + interval
  }

  private mutating func set(
    _ index: Int?, _ interface: UInt32, _ address: (high: UInt64, low: UInt64)?, _ wholeAt: Instant
  ) {
    if let index {
      accounts[index].wholeAt = wholeAt
    } else {
      accounts.append(Account(interface: interface, address: address, wholeAt: wholeAt))
    }
  }

  private func index(_ interface: UInt32, _ address: (high: UInt64, low: UInt64)?) -> Int? {
    accounts.firstIndex {
      $0.interface == interface && $0.address?.high == address?.high && $0.address?.low == address?.low
    }
  }
}
