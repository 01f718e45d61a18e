import Bearer
import Primitives

/// Limits how often announcements may make this box dial. Multicast DNS is not authenticated: any host on a network can
/// announce any address on it, with another port every second. So each address, and each interface as a whole, has a
/// budget of new endpoints: a burst, then one per interval.
struct DialBudget {
  /// New endpoints that are dialled at once at one address: a machine with several nodes, each of which has restarted.
  static let hostBurst: UInt64 = 8
  static let hostInterval = TimeSpan.seconds(10)
  /// New endpoints that are dialled at once on one interface: all services of the table, for a hall that starts
  /// together. With a smaller burst the rest would be found a minute later, long after the hall has made its links.
  static let interfaceBurst = UInt64(ServiceTable.servicesMax)
  static let interfaceInterval = TimeSpan.seconds(1)

  /// The subject of a budget; `address` is nil for an interface as a whole.
  private struct Account {
    let interface: UInt32
    let address: (high: UInt64, low: UInt64)?
    /// When the budget is full again (the theoretical arrival time of the generic cell rate algorithm). The account is
    /// kept until then.
    var wholeAt: Instant
  }

  /// At most 256 + 80 addresses per interface: the interface's budget admits no more in the lifetime of an account.
  private var accounts: [Account] = []

  /// Whether a new endpoint, received on `interface`, may be dialled; if so, the budgets are charged.
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

  /// When an account is full again after another charge; nil when its budget is used up.
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
