import Bearer
import Primitives

/// The `ConnectionPace` of each LE connection that an adapter has made. There are at most
/// `BluetoothSettings.linksMaxRange.upperBound`.
struct ConnectionPaces {
  private var paces: [ConnectionPace] = []

  /// The numbers of connections with short intervals (`fast`) and with long intervals (`slow`).
  var fast: Int { paces.count { $0.parameters == .fast } }
  var slow: Int { paces.count { $0.parameters == .slow } }

  mutating func linked(_ endpoint: BluetoothEndpoint, _ now: Instant) {
    unlinked(endpoint)
    if paces.count < BluetoothSettings.linksMaxRange.upperBound { paces.append(ConnectionPace(endpoint, now)) }
  }

  mutating func unlinked(_ endpoint: BluetoothEndpoint) { paces.removeAll { $0.endpoint == endpoint } }

  mutating func removeAll() { paces = [] }

  /// Notes traffic, as `ConnectionPace.passed`. Returns false for a connection that the peer has made.
  mutating func passed(_ endpoint: BluetoothEndpoint, _ count: UInt64, _ now: Instant) -> Bool {
    guard let index = paces.firstIndex(where: { $0.endpoint == endpoint }) else { return false }
    return paces[index].passed(count, now)
  }

  /// The next connection whose parameters must be set. Call this method until it returns nil, and again at `deadline`.
  mutating func next(_ now: Instant) -> (endpoint: BluetoothEndpoint, parameters: ConnectionParameters)? {
    for index in paces.indices {
      if let parameters = paces[index].next(now) { return (paces[index].endpoint, parameters) }
    }
    return nil
  }

  var deadline: Instant {
    var deadline = Instant.never
    for pace in paces { deadline = min(deadline, pace.deadline) }
    return deadline
  }
}
