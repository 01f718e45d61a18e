import Bearer
import CAvahi
import CSystem
import Primitives
import Reactor

/// The responder that uses the machine's avahi-daemon, over D-Bus with libavahi-client.
///
/// The library's calls block until the daemon answers. An answer takes a fraction of a millisecond, and in the firmware
/// at most CAVAHI_CALL_MILLISECONDS_MAX. Waiting for an absent daemon needs no calls.
final class DaemonResponder: PublishingResponder {
  private(set) var isReady = false
  /// Whether avahi-daemon runs. A running daemon may have no host name yet, and `isReady` is false until it has one.
  private(set) var isPresent = false

  let owner: any ResponderOwner
  private let poll: AvahiPollAdapter
  private var client: OpaquePointer?
  private var group: OpaquePointer?
  private var browser: OpaquePointer?
  private var settings: DiscoverySettings?
  var name = ClaimedName("", .service)
  /// Fires at `name.deadline`.
  private var retry: Timer?
  private var publishedOn: [AvahiIfIndex] = []
  private var isFailed = false

  /// Returns nil and the reason if there is no D-Bus system bus. An absent daemon is no error: `isReady` is false until
  /// the daemon appears.
  static func open(_ loop: EventLoop, _ owner: any ResponderOwner) -> (responder: DaemonResponder?, reason: String) {
    let responder = DaemonResponder(loop, owner)
    var code: CInt = 0
    // The first state callback runs before avahi_client_new returns.
    responder.client = avahi_client_new(
      responder.poll.api, AVAHI_CLIENT_NO_FAIL, clientChanged, responder.userdata, &code)
    if responder.client != nil, !responder.isFailed {
      responder.retry = Timer(loop) { responder.nameDue() }
      return (responder, "")
    }
    responder.close()
    return (nil, avahiText(code))
  }

  private init(_ loop: EventLoop, _ owner: any ResponderOwner) {
    self.owner = owner
    poll = AvahiPollAdapter(loop, screen: nil)
  }

  var lastError: CInt { client.map { avahi_client_errno($0) } ?? CInt(AVAHI_ERR_BAD_STATE) }

  private var userdata: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  fileprivate func stateChanged(_ client: OpaquePointer?, _ state: AvahiClientState) {
    let wasAwaited = isPresent && !isReady
    isReady = state == AVAHI_CLIENT_S_RUNNING
    isPresent = state != AVAHI_CLIENT_CONNECTING && state != AVAHI_CLIENT_FAILURE
    if isReady {
      owner.responderReady(self)
    } else if state == AVAHI_CLIENT_FAILURE {
      fail()
    } else {
      // While the host name changes, the service is withdrawn, because its record contains the host name.
      if let group { avahi_entry_group_reset(group) }
      // Another machine can claim each host name of the daemon, and so cause this state again and again. The owner's
      // wait (`daemonReturnTime`) must begin only once.
      if !wasAwaited || !isPresent { owner.responderNotReady(self) }
    }
  }

  func setRetry() { retry?.set(name.deadline) }

  private func nameDue() {
    switch name.due(now: monotonicNow(), random: kernelRandom()) {
    case .nothing: break
    case .claim:
      withdraw()
      if isReady { publish() }
    case .settled: owner.responderRecovered(self, NameReport.settled(name.current))
    }
    setRetry()
  }

  private func fail() {
    isReady = false
    isPresent = false
    if isFailed { return }
    isFailed = true
    owner.responderFailed(self)
  }

  func activate(_ settings: DiscoverySettings) {
    if self.settings == nil { name = ClaimedName(settings.instanceName, .service) }
    self.settings = settings
    withdraw()
    publish()
    if browser == nil { browse(settings) }
  }

  /// Publishes again if the settings name interfaces and one of these has appeared or disappeared.
  func interfacesMayHaveChanged() {
    guard let settings, !settings.interfaces.isEmpty, isReady, publishedOn != interfaces(settings) else { return }
    publish()
  }

  private func interfaces(_ settings: DiscoverySettings) -> [AvahiIfIndex] {
    if settings.interfaces.isEmpty { return [AvahiIfIndex(AVAHI_IF_UNSPEC)] }
    return settings.interfaces.compactMap {
      let index = if_nametoindex($0)
      return index == 0 ? nil : AvahiIfIndex(index)
    }
  }

  /// Frees the entry group. A new group claims without delay, while Avahi delays the claims of a group that has already
  /// claimed 15 times.
  private func withdraw() {
    if let group { avahi_entry_group_free(group) }
    group = nil
  }

  func publish() {
    defer { setRetry() }
    guard let settings, let client, !name.isResting else { return }
    publishedOn = interfaces(settings)
    name.claimedAgain(now: monotonicNow())
    if group == nil { group = avahi_entry_group_new(client, groupChanged, userdata) }
    guard let group else { return failed(lastError) }
    guard var code = claim({ add(settings, group) }) else { return }
    if publishedOn.isEmpty { return }
    if code >= 0 { code = avahi_entry_group_commit(group) }
    if code < 0 { failed(code) }
  }

  func failed(_ code: CInt) {
    rest(code)
    checkConnection()
  }

  private func add(_ settings: DiscoverySettings, _ group: OpaquePointer) -> CInt {
    avahi_entry_group_reset(group)
    return withStringList(settings.txt) { txt in
      for interface in publishedOn {
        let code = avahi_entry_group_add_service_strlst(
          group, interface, AvahiProtocol(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(rawValue: 0), name.current,
          settings.serviceType, nil, nil, settings.port, txt)
        if code < 0 { return code }
      }
      return 0
    }
  }

  func updateTXT(_ settings: DiscoverySettings) {
    self.settings = settings
    guard let group, isReady, !name.isResting else { return }
    for interface in publishedOn {
      let code = withStringList(settings.txt) {
        avahi_entry_group_update_service_txt_strlst(
          group, interface, AvahiProtocol(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(rawValue: 0), name.current,
          settings.serviceType, nil, $0)
      }
      if code < 0 { return trouble("cannot change the published TXT record") }
    }
  }

  private func browse(_ settings: DiscoverySettings) {
    browser = avahi_service_browser_new(
      client, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), settings.serviceType, nil,
      AvahiLookupFlags(rawValue: 0), browserEvent, userdata)
    if browser == nil { trouble("cannot browse") }
  }

  func browseAgain(_ settings: DiscoverySettings) {
    if let browser { avahi_service_browser_free(browser) }
    browse(settings)
  }

  func lookUp(_ service: Service, _ settings: DiscoverySettings) -> Bool {
    service.responder = self
    service.lookup = avahi_service_resolver_new(
      client, service.key.interface, service.key.networkProtocol, nameCString(service.key), settings.serviceType, nil,
      service.key.networkProtocol, AvahiLookupFlags(rawValue: 0), resolverEvent, lookupUserdata(service))
    if service.lookup == nil { checkConnection() }
    return service.lookup != nil
  }

  func endLookup(_ service: Service) {
    if let lookup = service.lookup { avahi_service_resolver_free(lookup) }
    service.lookup = nil
    service.responder = nil
  }

  func close() {
    retry?.cancel()
    retry = nil
    if let client { avahi_client_free(client) }
    client = nil
    group = nil
    browser = nil
    poll.close()
  }

  private func trouble(_ what: String) {
    owner.responderTrouble(self, "\(what): \(avahiText(lastError))")
    checkConnection()
  }

  /// Checks the connection after a failed call. A daemon that does not answer is no longer used, because every further
  /// call would block again.
  private func checkConnection() {
    let code = lastError
    let isGone =
      code == AVAHI_ERR_DBUS_ERROR || code == AVAHI_ERR_TIMEOUT || code == AVAHI_ERR_DISCONNECTED
      || code == AVAHI_ERR_NO_DAEMON
    if isGone { fail() }
  }

  fileprivate func browserChanged(_ event: AvahiBrowserEvent, _ key: ServiceKey?) {
    if event == AVAHI_BROWSER_FAILURE {
      trouble("browsing failed")
    } else if let key, isAllowed(key.interface) {
      if event == AVAHI_BROWSER_NEW { owner.responderFound(self, key) }
      if event == AVAHI_BROWSER_REMOVE { owner.responderLost(self, key) }
    }
  }

  private func isAllowed(_ interface: AvahiIfIndex) -> Bool {
    guard let settings, !settings.interfaces.isEmpty else { return true }
    return interfaces(settings).contains(interface)
  }
}

// Callbacks of libavahi-client.

private func responder(_ userdata: UnsafeMutableRawPointer?) -> DaemonResponder? {
  guard let userdata else { return nil }
  return Unmanaged<DaemonResponder>.fromOpaque(userdata).takeUnretainedValue()
}

private func clientChanged(_ client: OpaquePointer?, _ state: AvahiClientState, _ userdata: UnsafeMutableRawPointer?) {
  responder(userdata)?.stateChanged(client, state)
}

private func groupChanged(_ group: OpaquePointer?, _ state: AvahiEntryGroupState, _ userdata: UnsafeMutableRawPointer?)
{
  responder(userdata)?.groupStateChanged(state)
}

private func browserEvent(
  _ browser: OpaquePointer?, _ interface: AvahiIfIndex, _ networkProtocol: AvahiProtocol, _ event: AvahiBrowserEvent,
  _ name: UnsafePointer<CChar>?, _ type: UnsafePointer<CChar>?, _ domain: UnsafePointer<CChar>?,
  _ flags: AvahiLookupResultFlags, _ userdata: UnsafeMutableRawPointer?
) {
  responder(userdata)?.browserChanged(event, serviceKey(interface, networkProtocol, name))
}

private func resolverEvent(
  _ resolver: OpaquePointer?, _ interface: AvahiIfIndex, _ networkProtocol: AvahiProtocol, _ event: AvahiResolverEvent,
  _ name: UnsafePointer<CChar>?, _ type: UnsafePointer<CChar>?, _ domain: UnsafePointer<CChar>?,
  _ host: UnsafePointer<CChar>?, _ address: UnsafePointer<AvahiAddress>?, _ port: UInt16,
  _ txt: UnsafeMutablePointer<AvahiStringList>?, _ flags: AvahiLookupResultFlags, _ userdata: UnsafeMutableRawPointer?
) {
  lookupAnswered(userdata, event, interface, address, port, txt)
}
