import Bearer
import Primitives

/// Limits how often announcements make this box dial new endpoints. Multicast DNS is not authenticated: any host on a
/// network can announce any address of that network, with another port every second. So there is a budget for each
/// address and a budget for each interface. A budget allows a burst of new endpoints, and then one per interval.
struct DialBudget {
  /// The burst for one address. This burst is enough for a machine with several nodes that restart at the same time.
  static let hostBurst: UInt64 = 8
  static let hostInterval = TimeSpan.seconds(10)
  /// The burst for one interface: as many endpoints as the table has services, for a hall in which all nodes start
  /// together. With a smaller burst, the remaining nodes would be dialled a minute later, long after the first nodes
  /// have linked.
  static let interfaceBurst = UInt64(ServiceTable.servicesMax)
  static let interfaceInterval = TimeSpan.seconds(1)

  /// The state of one budget. `address` is nil for the budget of an interface.
  private struct Account {
    let interface: UInt32
    let address: (high: UInt64, low: UInt64)?
    /// When the complete burst is available again (the theoretical arrival time of the generic cell rate algorithm).
    /// The account is deleted at that time.
    var wholeAt: Instant
  }

  /// At most 256 + 80 addresses per interface. An account exists for at most 80 s, and in that time the interface's
  /// budget allows 256 endpoints at once and 80 more.
  private var accounts: [Account] = []

  /// Returns whether the box may dial a new endpoint that was announced on `interface`. If so, both budgets are
  /// charged.
  mutating func take(_ endpoint: IPEndpoint, heardOn interface: UInt32, now: Instant) -> Bool {
    accounts.removeAll { $0.wholeAt <= now }
    let host = index(interface, (endpoint.high, endpoint.low)), whole = index(interface, nil)
    guard let hostEnd = Self.charged(host.map { accounts[$0].wholeAt }, Self.hostBurst, Self.hostInterval, now),
      let wholeEnd = Self.charged(
        whole.map { accounts[$0].wholeAt }, Self.interfaceBurst, Self.interfaceInterval, now)
    else { return false }
    set(host, interface, (endpoint.high, endpoint.low), hostEnd)
    set(whole, interface, nil, wholeEnd)
    return true
  }

  /// The time when the complete burst of a budget is available again after one more charge. nil if the budget has
  /// nothing left.
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
