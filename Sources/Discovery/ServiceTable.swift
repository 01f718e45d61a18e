import Bearer
import CAvahi
import Primitives

/// Identifies a service instance that was announced on one interface with one IP version.
struct ServiceKey: Equatable {
  var interface: CInt
  /// AVAHI_PROTO_INET or AVAHI_PROTO_INET6.
  var networkProtocol: CInt
  var name: [UInt8]
}

/// A known service, and the state of its look-up.
final class Service {
  enum Phase: Equatable {
    /// The service waits until fewer than `ServiceTable.lookupsMax` look-ups are in progress.
    case waiting
    case lookingUp
    /// The look-up has succeeded and was closed. Avahi would repeat the questions of an open look-up for its three
    /// records. In a hall full of boxes that would be hundreds of questions a second to which every box knows the
    /// answer.
    case known
    /// The look-up failed; it is retried at `until`.
    case resting(until: Instant)
  }

  let key: ServiceKey
  var phase = Phase.waiting
  /// Avahi's object of the open look-up, and the responder that made this object; nil if no look-up is open.
  var lookup: OpaquePointer?
  var responder: (any Responder)?
  var candidate: Candidate?
  /// The number of consecutive failed look-ups.
  var failures = 0
  /// The number of failed dials of the service's address since a node last proved its key there.
  var failedDials = 0
  /// The hint of the node that proved its key at the service's address; nil if no node did. Services with a
  /// proof are evicted last.
  var provenBy: UInt64?
  var isProven: Bool { provenBy != nil }
  /// Whether the last look-up returned an address outside the network of the interface.
  var isOffLink = false
  /// False after a change of responder, until the new responder has found the service.
  var isConfirmed = true

  init(_ key: ServiceKey) { self.key = key }

  /// Whether both services were received on the same interface with the same IP version.
  func isHeard(like other: Service) -> Bool {
    key.interface == other.key.interface && key.networkProtocol == other.key.networkProtocol
  }

  /// The machine that announces a service, identified by an interface and the service's address. All services of one
  /// interface without a known address are charged to one machine.
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
  /// The IP address of the candidate without its port.
  var host: IPEndpoint? {
    guard case .ip(var endpoint) = address else { return nil }
    endpoint.port = 0
    return endpoint
  }
}

extension IPEndpoint {
  /// The number of the address as a source of packets (`cavahi_peek`).
  var source: UInt64 {
    if isIPv4 { return low }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { bytes in
      for index in 0..<8 {
        bytes[index] = UInt8(truncatingIfNeeded: high >> (56 - 8 * index))
        bytes[8 + index] = UInt8(truncatingIfNeeded: low >> (56 - 8 * index))
      }
      return cavahi_source6(bytes.baseAddress!)
    }
  }
}

/// The limits of discovery and the bytes of its records, for the memory ledger (`Ledger` in `Relay`).
public enum DiscoveryMemory {
  public static let servicesMax = ServiceTable.servicesMax
  /// The bytes of one service: its entry, its candidate and Avahi's look-up object (an estimate).
  public static let service = 4_096
  /// The maximum number of records in all caches of the built-in responder. A board has up to four interfaces with two
  /// IP versions each.
  public static let recordsMax = 4 * 2 * Int(EmbeddedResponder.cachedRecordsMax)
  /// The bytes of the entry that charges one cached record to its sender.
  public static let recordShare = RecordShares.entryBytes
  /// The bytes of one cached record with its name and data (an estimate).
  public static let record = 512
}

/// The known services: at most `servicesMax`, regardless of how many services are announced on the network.
final class ServiceTable {
  /// The maximum number of services. Each node needs one entry per interface and IP version, so 256 entries are enough
  /// for 64 nodes on two interfaces.
  static let servicesMax = 256
  /// The maximum number of concurrent look-ups.
  static let lookupsMax = 32
  /// The pause after the first failed look-up. The pause doubles with each further failure.
  static let restShortest = TimeSpan.seconds(10)
  /// The longest pause after a failed look-up.
  static let restLongest = TimeSpan.seconds(640)

  private(set) var services: [Service] = []
  /// The number of services that were announced while the table was full, since the last `clearRefusals`. For each of
  /// these services another service was evicted.
  private(set) var refusals = 0
  /// The position in the rotation of `nextToLookUp`, 0 to 2.
  private var turn = 0

  func find(_ key: ServiceKey) -> Service? { services.first { $0.key == key } }

  /// Adds a service. If the table is full, another service is removed and passed to `evicting`.
  func insert(_ key: ServiceKey, evicting: (Service) -> Void) -> Service {
    if services.count >= Self.servicesMax {
      refusals &+= 1
      evicting(services.remove(at: nextToGiveWay))
    }
    let service = Service(key)
    services.append(service)
    return service
  }

  /// The index of the service to evict from a full table. The first of these services that exists is chosen:
  ///
  /// - a service whose look-up failed and that has no address
  /// - an unproven service whose dials failed
  /// - any other unproven service
  /// - a service with a proof (`Service.provenBy`)
  ///
  /// Among several services of a kind, the oldest service of the machine with the most such services is chosen. An
  /// address on an interface is one machine, because no more is known about the sender of an announcement. Only one
  /// service without a proof at a time takes the place of one with a proof: the next newcomer evicts that service,
  /// unless a node has proved its key there.
  private var nextToGiveWay: Int {
    if let silent = services.firstIndex(where: { $0.failures > 0 && $0.candidate == nil }) { return silent }
    return oldestOfLargestMachine { !$0.isProven && $0.failedDials > 0 }
      ?? oldestOfLargestMachine { !$0.isProven } ?? oldestOfLargestMachine { _ in true } ?? 0
  }

  private func oldestOfLargestMachine(where isChoice: (Service) -> Bool) -> Int? {
    let machines = services.filter(isChoice).map { $0.machine }.sorted { $0.precedes($1) }
    var (largest, most, run) = (machines.first, 0, 0)
    for index in machines.indices {
      run = index > 0 && machines[index] == machines[index - 1] ? run + 1 : 1
      if run > most { (largest, most) = (machines[index], run) }
    }
    return services.firstIndex { isChoice($0) && $0.machine == largest }
  }

  /// Records that the node with this hint has proved its key at `endpoint`. A node can announce any number of names,
  /// with its own hint or with none. So a proof protects only one service for each interface and IP version. A service
  /// with the address and port of `endpoint` comes first, and then the service that the node has already proved.
  func prove(_ hint: UInt64, at endpoint: IPEndpoint) {
    var host = endpoint
    host.port = 0
    let claiming = services.filter {
      guard let candidate = $0.candidate, candidate.host == host else { return false }
      return candidate.hint == hint || candidate.hint == 0 && candidate.address == .ip(endpoint)
    }
    var kept: [Service] = []
    let ranked =
      claiming.filter { $0.candidate?.address == .ip(endpoint) } + claiming.filter { $0.provenBy == hint } + claiming
    for service in ranked where !kept.contains(where: { $0.isHeard(like: service) }) { kept.append(service) }
    for service in services where service.provenBy == hint && kept.contains(where: { $0.isHeard(like: service) }) {
      service.provenBy = nil
    }
    for service in kept {
      service.provenBy = hint
      service.failedDials = 0
    }
  }

  /// Whether a node proved its key at an address with the number `source` (`cavahi_source6`) on `interface`.
  func isProven(_ source: UInt64, on interface: UInt32) -> Bool {
    services.contains {
      $0.isProven && UInt32(bitPattern: $0.key.interface) == interface && $0.candidate?.host?.source == source
    }
  }

  func remove(_ service: Service) { services.removeAll { $0 === service } }

  func clearRefusals() { refusals = 0 }

  /// The number of services that have this candidate. A node that is announced on two interfaces, or with two IP
  /// versions, may have several services with one candidate.
  func count(leadingTo candidate: Candidate) -> Int {
    services.reduce(0) { $1.candidate?.leads(whereLeads: candidate) == true ? $0 + 1 : $0 }
  }

  /// The next service to look up; nil if no service is due or `lookupsMax` look-ups are in progress. The choice rotates
  /// between the oldest waiting service, a service whose pause has ended, and the newest waiting service. The look-up
  /// of an invented name takes 5 s. In a plain queue, a real service behind hundreds of invented names would wait for
  /// all of them.
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

  /// The earliest end of a pause after a failed look-up; `.never` if no service pauses.
  var nextDeadline: Instant {
    var deadline = Instant.never
    for service in services {
      if case .resting(let until) = service.phase, until < deadline { deadline = until }
    }
    return deadline
  }

  /// The pause after this many consecutive failed look-ups.
  static func rest(afterFailures failures: Int) -> TimeSpan {
    Backoff.pause(after: failures - 1, first: restShortest, longest: restLongest)
  }
}
