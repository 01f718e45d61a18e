import Bearer
import CAvahi
import Primitives

/// One service instance as seen on one interface by one protocol.
struct ServiceKey: Equatable {
  var interface: CInt
  /// AVAHI_PROTO_INET or AVAHI_PROTO_INET6.
  var networkProtocol: CInt
  var name: [UInt8]
}

/// A service that was found, and how far its look-up has come.
final class Service {
  enum Phase: Equatable {
    /// Waits for one of the `ServiceTable.lookupsMax` look-ups.
    case waiting
    case lookingUp
    /// Looked up; the look-up stays open and reports changes.
    case known
    /// The look-up came to nothing; tried again at `until`.
    case resting(until: Instant)
  }

  let key: ServiceKey
  var phase = Phase.waiting
  /// The look-up object while one is open, and whose it is.
  var lookup: OpaquePointer?
  var responder: (any Responder)?
  var candidate: Candidate?
  /// Look-ups that failed in a row.
  var failures = 0
  /// Its last answer led off the network of its interface.
  var isOffLink = false
  /// False from a change of responder until the new one has seen the service.
  var isConfirmed = true

  init(_ key: ServiceKey) { self.key = key }
}

/// What discovery takes at most, in bytes.
public enum DiscoveryMemory {
  public static let servicesMax = ServiceTable.servicesMax
  /// A service: its entry and candidate, and Avahi's object for its look-up (an estimate).
  public static let service = 4_096
  /// Records that the built-in responder remembers. A board has up to four interfaces with two IP versions each.
  public static let recordsMax = 4 * 2 * Int(EmbeddedResponder.cachedRecordsMax)
  /// A record with its name and data (an estimate).
  public static let record = 512
}

/// The services that were found: at most `servicesMax`, whatever is announced on the network.
final class ServiceTable {
  /// Who holds a slot: each Causeway node once per interface and IP version, so 64 nodes on two interfaces.
  static let servicesMax = 256
  /// Look-ups that may wait for an answer at once.
  static let lookupsMax = 32
  /// The rest after a failed look-up doubles from this …
  static let restShortest = TimeSpan.seconds(10)
  /// … to this.
  static let restLongest = TimeSpan.seconds(640)

  private(set) var services: [Service] = []
  /// Services that found no slot since the last `takeRefusals`.
  private(set) var refusals = 0

  func find(_ key: ServiceKey) -> Service? { services.first { $0.key == key } }

  /// A new service, or nil when every slot is held by a service that answers. One that does not gives way.
  func insert(_ key: ServiceKey, evicting: (Service) -> Void) -> Service? {
    if services.count >= Self.servicesMax {
      guard let index = services.firstIndex(where: { $0.failures > 0 && $0.candidate == nil }) else {
        refusals &+= 1
        return nil
      }
      evicting(services.remove(at: index))
    }
    let service = Service(key)
    services.append(service)
    return service
  }

  func remove(_ service: Service) { services.removeAll { $0 === service } }

  func takeRefusals() -> Int {
    defer { refusals = 0 }
    return refusals
  }

  /// How many services lead to the same place: two IP versions or two interfaces may.
  func count(leadingTo candidate: Candidate) -> Int {
    services.reduce(0) { $1.candidate == candidate ? $0 + 1 : $0 }
  }

  /// The next service to look up, as far as `lookupsMax` allows.
  func nextToLookUp(_ now: Instant) -> Service? {
    var busy = 0
    var next: Service?
    for service in services {
      switch service.phase {
      case .waiting: next = next ?? service
      case .lookingUp: busy += 1
      case .known: break
      case .resting(let until): if until <= now { next = next ?? service }
      }
    }
    return busy < Self.lookupsMax ? next : nil
  }

  /// When the next rest ends.
  var nextDeadline: Instant {
    var deadline = Instant.never
    for service in services {
      if case .resting(let until) = service.phase, until < deadline { deadline = until }
    }
    return deadline
  }

  /// How long to rest after this many failures in a row.
  static func rest(afterFailures failures: Int) -> TimeSpan {
    let doublings = min(max(failures - 1, 0), 6)
    return min(restShortest * UInt64(1 << doublings), restLongest)
  }
}
