import Bearer
import CAvahi
import Primitives

/// One service instance, as received on one interface with one IP version.
struct ServiceKey: Equatable {
  var interface: CInt
  /// AVAHI_PROTO_INET or AVAHI_PROTO_INET6.
  var networkProtocol: CInt
  var name: [UInt8]
}

/// A known service, and the state of its look-up.
final class Service {
  enum Phase: Equatable {
    /// Waits for one of the `ServiceTable.lookupsMax` look-ups.
    case waiting
    case lookingUp
    /// Looked up. The look-up has ended: an open one asks for its three records again and again, which makes hundreds of
    /// questions a second of a hall full of boxes that know all answers.
    case known
    /// The look-up failed; it is retried at `until`.
    case resting(until: Instant)
  }

  let key: ServiceKey
  var phase = Phase.waiting
  /// The look-up object while one is open, and the responder that owns it.
  var lookup: OpaquePointer?
  var responder: (any Responder)?
  var candidate: Candidate?
  /// Consecutive failed look-ups.
  var failures = 0
  /// Failed dials of its address since a node proved its key there.
  var failedDials = 0
  /// The hint of the node that proved its key at its address and keeps this place by it.
  var provenBy: UInt64?
  var isProven: Bool { provenBy != nil }
  /// The last result was an address outside the interface's network.
  var isOffLink = false
  /// False after a change of responder, until the new one has found the service.
  var isConfirmed = true

  init(_ key: ServiceKey) { self.key = key }

  func isHeard(like other: Service) -> Bool {
    key.interface == other.key.interface && key.networkProtocol == other.key.networkProtocol
  }

  /// The machine that announces it, as far as it is known; all of one interface of which no address is known are one machine.
  struct Machine: Equatable {
    var interface: CInt
    var high: UInt64 = 0
    var low: UInt64 = 0

    func precedes(_ other: Machine) -> Bool {
      if low != other.low { return low < other.low }
      return high != other.high ? high < other.high : interface < other.interface
    }
  }

  var machine: Machine {
    guard let host = candidate?.host else { return Machine(interface: key.interface) }
    return Machine(interface: key.interface, high: host.high, low: host.low)
  }
}

extension Candidate {
  /// The IP address without its port.
  var host: IPEndpoint? {
    guard case .ip(var endpoint) = address else { return nil }
    endpoint.port = 0
    return endpoint
  }
}

/// The greatest memory of discovery, in bytes.
public enum DiscoveryMemory {
  public static let servicesMax = ServiceTable.servicesMax
  /// A service: its entry and candidate, and Avahi's object for its look-up (an estimate).
  public static let service = 4_096
  /// Records that the built-in responder caches. A board has up to four interfaces with two IP versions each.
  public static let recordsMax = 4 * 2 * Int(EmbeddedResponder.cachedRecordsMax)
  /// To whom a record is charged.
  public static let recordShare = RecordShares.entryBytes
  /// A record with its name and data (an estimate).
  public static let record = 512
}

/// The known services: at most `servicesMax`, whatever is announced on the network.
final class ServiceTable {
  /// Each Causeway node takes a place per interface and IP version: 64 nodes on two interfaces.
  static let servicesMax = 256
  /// Look-ups in progress at once.
  static let lookupsMax = 32
  /// The pause after a failed look-up doubles from this …
  static let restShortest = TimeSpan.seconds(10)
  /// … to this.
  static let restLongest = TimeSpan.seconds(640)

  private(set) var services: [Service] = []
  /// Services that found the table full since the last `takeRefusals`: others, or they themselves, are unknown.
  private(set) var refusals = 0
  /// Whose turn the last look-up was.
  private var turn = 0

  func find(_ key: ServiceKey) -> Service? { services.first { $0.key == key } }

  /// Adds a service. In a full table another one gives way, unless all are proven: then the result is nil. `evicting` gets it
  /// after it was removed.
  func insert(_ key: ServiceKey, evicting: (Service) -> Void) -> Service? {
    if services.count >= Self.servicesMax {
      refusals &+= 1
      guard let index = nextToGiveWay() else { return nil }
      evicting(services.remove(at: index))
    }
    let service = Service(key)
    services.append(service)
    return service
  }

  /// One that cannot be resolved; then one where nobody answers, then any other one that is not proven: of the machine that has
  /// most of them the oldest. A machine is an address on an interface, as far as anything is known of who announces.
  private func nextToGiveWay() -> Int? {
    if let silent = services.firstIndex(where: { $0.failures > 0 && $0.candidate == nil }) { return silent }
    let isAnyUnanswered = services.contains { !$0.isProven && $0.failedDials > 0 }
    let choice = services.filter { !$0.isProven && (!isAnyUnanswered || $0.failedDials > 0) }
    let machines = choice.map { $0.machine }.sorted { $0.precedes($1) }
    var (largest, most, run) = (machines.first, 0, 0)
    for index in machines.indices {
      run = index > 0 && machines[index] == machines[index - 1] ? run + 1 : 1
      if run > most { (largest, most) = (machines[index], run) }
    }
    return services.firstIndex {
      !$0.isProven && (!isAnyUnanswered || $0.failedDials > 0) && $0.machine == largest
    }
  }

  /// A node has proved its key at this place, and keeps one service by it on each interface and with each IP version: it can
  /// announce any number of names with its own hint, or with none. The one at the very place is kept, else the one that has been.
  func prove(_ hint: UInt64, at place: IPEndpoint) {
    var host = place
    host.port = 0
    let claiming = services.filter {
      guard let candidate = $0.candidate, candidate.host == host else { return false }
      return candidate.hint == hint || candidate.hint == 0 && candidate.address == .ip(place)
    }
    var kept: [Service] = []
    let ranked =
      claiming.filter { $0.candidate?.address == .ip(place) } + claiming.filter { $0.provenBy == hint } + claiming
    for service in ranked where !kept.contains(where: { $0.isHeard(like: service) }) { kept.append(service) }
    for service in services where service.provenBy == hint && kept.contains(where: { $0.isHeard(like: service) }) {
      service.provenBy = nil
    }
    for service in kept {
      service.provenBy = hint
      service.failedDials = 0
    }
  }

  func remove(_ service: Service) { services.removeAll { $0 === service } }

  func takeRefusals() -> Int {
    defer { refusals = 0 }
    return refusals
  }

  /// How many services lead to the same endpoint: two IP versions or two interfaces may.
  func count(leadingTo candidate: Candidate) -> Int {
    services.reduce(0) { $1.candidate?.leads(whereLeads: candidate) == true ? $0 + 1 : $0 }
  }

  /// The next service to look up, within `lookupsMax`: in turn the oldest that waits, one whose rest is over, and the newest that
  /// waits. A name that is only announced holds a look-up for 5 s: a real one behind hundreds of them would wait for all.
  func nextToLookUp(_ now: Instant) -> Service? {
    var busy = 0
    var oldest: Service?
    var newest: Service?
    var rested: (service: Service, since: Instant)?
    for service in services {
      switch service.phase {
      case .waiting: (oldest, newest) = (oldest ?? service, service)
      case .lookingUp: busy += 1
      case .known: break
      case .resting(let until): if until <= now && until < rested?.since ?? .never { rested = (service, until) }
      }
    }
    if busy >= Self.lookupsMax { return nil }
    turn = (turn + 1) % 3
    switch turn {
    case 0: return newest ?? rested?.service
    case 1: return oldest ?? rested?.service
    case _: return rested?.service ?? oldest
    }
  }

  /// The earliest end of a pause.
  var nextDeadline: Instant {
    var deadline = Instant.never
    for service in services {
      if case .resting(let until) = service.phase, until < deadline { deadline = until }
    }
    return deadline
  }

  /// The pause after this many consecutive failures.
  static func rest(afterFailures failures: Int) -> TimeSpan {
    let doublings = min(max(failures - 1, 0), 6)
    return min(restShortest * UInt64(1 << doublings), restLongest)
  }
}
