import Primitives
import Session

/// Shares by user, and the text for a request that exceeds a share. Users are identified by the kernel. The units of a
/// user (connections, services, sessions) are counted from the clients at each check. There is no separate counter that
/// could become wrong.
extension ClientRecords {
  /// A resource that the users share.
  enum Shared {
    case services
    /// The bytes of a new service, or of a service with new discovery info.
    case serviceBytes(of: UInt32, Int)
    case sessions
  }

  /// Throws if a request would exceed the share of the client's user.
  func share(_ shared: Shared, _ client: ClientRecord) throws(LocalError) {
    switch shared {
    case .services:
      try share(LocalLimits.services, client, "services", "withdraw one of these services first") { $0.services.count }
    case .sessions:
      try share(LocalLimits.sessions, client, "sessions", "leave one of these sessions first") { $0.openSessions }
    case .serviceBytes(let endpoint, let byteCount):
      // A service may always become smaller.
      if client.services.contains(where: { $0.endpoint == endpoint && $0.byteCount >= byteCount }) { return }
      func count(_ client: ClientRecord) -> Int { client.serviceBytes(except: endpoint) }
      let (taken, held) = sum(of: client.user, count)
      if byteCount <= LocalLimits.serviceBytes.bytesMax(held: held, taken: taken, isFavoured: client.isOperator) {
        return
      }
      throw full(
        LocalLimits.serviceBytes, client.user, "bytes for services", "use shorter discovery info", counting: count)
    }
  }

  private func share(
    _ rule: ShareRule, _ client: ClientRecord, _ what: StaticString, _ remedy: StaticString,
    counting count: (ClientRecord) -> Int
  ) throws(LocalError) {
    if mayTake(1, of: rule, client.user, client.isOperator, counting: count) { return }
    throw full(rule, client.user, what, remedy, counting: count)
  }

  /// Whether a user may have `units` more. `count` returns the units that a client has.
  func mayTake(
    _ units: Int, of rule: ShareRule, _ user: UInt32, _ isOperator: Bool, counting count: (ClientRecord) -> Int
  ) -> Bool {
    let (taken, held) = sum(of: user, count)
    return rule.mayTake(units, held: held, taken: taken, isFavoured: isOperator)
  }

  /// The units of all clients, and those of one user's clients.
  func sum(of user: UInt32, _ count: (ClientRecord) -> Int) -> (all: Int, ofUser: Int) {
    var all = 0, ofUser = 0
    for case let client? in clients {
      let units = count(client)
      all += units
      if client.user == user { ofUser += units }
    }
    return (all, ofUser)
  }

  /// The text for a user whose connection is refused.
  public func connectionRefusal(_ user: UInt32) -> [UInt8] {
    full(LocalLimits.clients, user, "connections", "end one of these applications first") { _ in 1 }.text
  }

  /// An error that names the user's units, the user with the most units, and what to do.
  private func full(
    _ rule: ShareRule, _ user: UInt32, _ what: StaticString, _ remedy: StaticString,
    counting count: (ClientRecord) -> Int
  ) -> LocalError {
    var most = (user: user, units: sum(of: user, count).ofUser)
    var text: [UInt8] = []
    text.append(decimal: rule.capacity)
    text.append(" ")
    text.append(what)
    text.append(" are shared: user ")
    text.append(decimal: Int(user))
    text.append(" has ")
    text.append(decimal: most.units)
    for case let client? in clients {
      let units = sum(of: client.user, count).ofUser
      if units > most.units { most = (client.user, units) }
    }
    if most.user != user {
      text.append(", user ")
      text.append(decimal: Int(most.user))
      text.append(" has ")
      text.append(decimal: most.units)
    }
    text.append("; ")
    text.append(remedy)
    return LocalError(.full, text: text)
  }
}

extension ClientRecord {
  /// The number of the client's sessions that have not ended, or whose departures are not signed yet.
  fileprivate var openSessions: Int { sessions.count { !$0.hasEnded } + departing.count }

  fileprivate func serviceBytes(except endpoint: UInt32) -> Int {
    services.reduce(0) { $0 + ($1.endpoint == endpoint ? 0 : $1.byteCount) }
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ text: StaticString) { text.withUTF8Buffer { append(contentsOf: $0) } }

  fileprivate mutating func append(decimal number: Int) {
    if number >= 10 { append(decimal: number / 10) }
    append(UInt8(ascii: "0") + UInt8(number % 10))
  }
}
