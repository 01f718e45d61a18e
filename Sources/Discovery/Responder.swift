import Bearer
import CAvahi
import CSystem
import Primitives
import Reactor

/// A multicast DNS responder: the machine's avahi-daemon (`DaemonResponder`), or libavahi-core inside this process
/// (`EmbeddedResponder`).
protocol Responder: AnyObject {
  /// Whether the responder has a host name. Without a host name no service is published.
  var isReady: Bool { get }
  var owner: any ResponderOwner { get }
  /// Publishes the service and browses for other services. An earlier publication or browser is replaced.
  func activate(_ settings: DiscoverySettings)
  func updateTXT(_ settings: DiscoverySettings)
  /// Browses again from the start, so that all services in the cache and on the network are reported again.
  func browseAgain(_ settings: DiscoverySettings)
  /// Starts the look-up of a service. Returns false if the look-up could not start.
  func lookUp(_ service: Service, _ settings: DiscoverySettings) -> Bool
  func endLookup(_ service: Service)
  /// Sends goodbye packets and frees everything, including look-ups. Must not be called inside a callback of the
  /// responder.
  func close()
}

/// The common part of the responders: how a responder claims the service's name, and what it does when another machine
/// has that name.
protocol PublishingResponder: Responder {
  var name: ClaimedName { get set }
  /// The error code of the last Avahi call.
  var lastError: CInt { get }
  /// Publishes the service as `name.current`, unless there is a pause after conflicts (`name.isResting`).
  func publish()
  /// Handles a call of Avahi, or a claim of the name, that failed for a reason other than a conflict.
  func failed(_ code: CInt)
  /// Sets the timer again, because `name.deadline` may have changed.
  func setRetry()
}

extension PublishingResponder {
  /// Handles a new state of Avahi's entry group, which contains the service's records.
  func groupStateChanged(_ state: AvahiEntryGroupState) {
    if state == AVAHI_ENTRY_GROUP_ESTABLISHED {
      name.held(now: monotonicNow())
    } else if state == AVAHI_ENTRY_GROUP_COLLISION {
      if takeNextName() { publish() }
    } else if state == AVAHI_ENTRY_GROUP_FAILURE {
      failed(lastError)
    }
    setRetry()
  }

  /// Calls `add` with further names until a name is not used by another service of this machine. Returns the last
  /// result of `add`; nil if a pause has begun.
  func claim(_ add: () -> CInt) -> CInt? {
    var code = add()
    while code == AVAHI_ERR_COLLISION {
      guard takeNextName() else { return nil }
      code = add()
    }
    return code
  }

  /// Changes `name` to the next alternative. Returns false, and reports the pause, if all alternatives had a conflict
  /// and a pause has begun.
  private func takeNextName() -> Bool {
    if name.lost(now: monotonicNow()) { return true }
    owner.responderTrouble(self, NameReport.taken(.service))
    return false
  }

  /// Begins a pause after an error of Avahi, and reports the error.
  func rest(_ code: CInt) {
    name.failed(now: monotonicNow())
    owner.responderTrouble(self, NameReport.failed(avahiText(code)))
  }
}

/// The callbacks of a responder. The callbacks are always made on the reactor's thread. The owner must ignore callbacks
/// of a responder that is no longer used.
protocol ResponderOwner: AnyObject {
  /// The responder has a host name. Activate the responder to use it; if the responder was active, its host name has
  /// changed, and it must be activated again.
  func responderReady(_ responder: any Responder)
  /// The responder is not ready: its host name is not established, or the daemon is absent.
  func responderNotReady(_ responder: any Responder)
  /// The responder has stopped. The owner must close the responder after this callback has returned.
  func responderFailed(_ responder: any Responder)
  func responderFound(_ responder: any Responder, _ key: ServiceKey)
  func responderLost(_ responder: any Responder, _ key: ServiceKey)
  /// A look-up has ended. `endpoint` is nil if the look-up failed or returned an address that cannot be dialled.
  /// `record` contains the facts that the service's TXT record claims.
  func responderLookedUp(_ responder: any Responder, _ service: Service, _ endpoint: IPEndpoint?, _ record: NodeRecord)
  /// Publishing or browsing failed, but the responder remains usable.
  func responderTrouble(_ responder: any Responder, _ text: String)
  /// The service is published again after a failure.
  func responderRecovered(_ responder: any Responder, _ text: String)
  /// Whether a node proved its key at an address that was announced on `interface`. `source` is the number of the
  /// address (`cavahi_source6`).
  func isProven(_ source: UInt64, on interface: UInt32) -> Bool
}

func avahiText(_ code: CInt) -> String {
  guard let text = avahi_strerror(code) else { return "unknown error" }
  return String(cString: text)
}

/// A random number from the kernel; 0 while its generator is not initialised.
func kernelRandom() -> UInt64 {
  var random: UInt64 = 0
  _ = withUnsafeMutableBytes(of: &random) { getrandom($0.baseAddress, $0.count, UInt32(GRND_NONBLOCK)) }
  return random
}

/// The pointer that is passed to a look-up's callback. This pointer stays valid, because a service exists longer than
/// its look-up.
func lookupUserdata(_ service: Service) -> UnsafeMutableRawPointer { Unmanaged.passUnretained(service).toOpaque() }

/// Handles the result of a look-up of libavahi-client or libavahi-core, whose callbacks have the same arguments.
func lookupAnswered(
  _ userdata: UnsafeMutableRawPointer?, _ event: AvahiResolverEvent, _ interface: AvahiIfIndex,
  _ address: UnsafePointer<AvahiAddress>?, _ port: UInt16, _ txt: UnsafeMutablePointer<AvahiStringList>?
) {
  guard let userdata else { return }
  let service = Unmanaged<Service>.fromOpaque(userdata).takeUnretainedValue()
  guard let responder = service.responder else { return }
  let found = event == AVAHI_RESOLVER_FOUND ? endpoint(address, port, on: interface) : nil
  responder.owner.responderLookedUp(responder, service, found, NodeRecord(txt))
}

/// The key of the service in a browser event; nil if the service's name is missing or too long.
func serviceKey(_ interface: AvahiIfIndex, _ networkProtocol: AvahiProtocol, _ name: UnsafePointer<CChar>?)
  -> ServiceKey?
{
  guard let name, interface > 0 else { return nil }
  let count = strlen(name)
  guard count > 0, count <= DiscoverySettings.nameBytesMax else { return nil }
  let bytes = UnsafeRawBufferPointer(start: name, count: count)
  return ServiceKey(interface: interface, networkProtocol: networkProtocol, name: Array(bytes))
}

/// The service name in a key, as a C string.
func nameCString(_ key: ServiceKey) -> [CChar] { key.name.map { CChar(bitPattern: $0) } + [0] }

/// The endpoint of a resolved service; nil for an address or port that cannot be dialled.
func endpoint(_ address: UnsafePointer<AvahiAddress>?, _ port: UInt16, on interface: AvahiIfIndex) -> IPEndpoint? {
  guard let address, port != 0, interface > 0 else { return nil }
  var high: UInt64 = 0
  var low: UInt64 = 0
  if address.pointee.proto == CInt(AVAHI_PROTO_INET) {
    low = 0xFFFF << 32 | UInt64(UInt32(bigEndian: address.pointee.data.ipv4.address))
  } else if address.pointee.proto == CInt(AVAHI_PROTO_INET6) {
    withUnsafeBytes(of: address.pointee.data.ipv6.address) { bytes in
      for index in 0..<8 { high = high << 8 | UInt64(bytes[index]) }
      for index in 8..<16 { low = low << 8 | UInt64(bytes[index]) }
    }
  } else {
    return nil
  }
  var endpoint = IPEndpoint(high: high, low: low, port: port, scope: 0)
  if !endpoint.isUnicast { return nil }
  if endpoint.isLinkLocal { endpoint.scope = UInt32(interface) }
  return endpoint
}

extension IPEndpoint {
  private var ipv4: UInt32 { UInt32(truncatingIfNeeded: low) }

  /// fe80::/10 (RFC 4291, section 2.5.6) and 169.254/16 (RFC 3927): valid on one interface only.
  var isLinkLocal: Bool { isIPv4 ? ipv4 >> 16 == 0xA9FE : high >> 54 == 0x3FA }

  /// 127/8 and ::1.
  var isLoopback: Bool { isIPv4 ? ipv4 >> 24 == 127 : high == 0 && low == 1 }

  /// Whether the address is a unicast address. These addresses are no unicast addresses: 0/8 ("this network"), 224/4
  /// (multicast), 240/4 (reserved), :: (unspecified) and ff00::/8 (multicast).
  var isUnicast: Bool {
    isIPv4 ? ipv4 >> 24 != 0 && ipv4 >> 24 < 224 : (high != 0 || low > 1 || isLoopback) && high >> 56 != 0xFF
  }
}
