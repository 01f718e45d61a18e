import Bearer
import CAvahi
import CSystem
import Primitives
import Reactor

/// The responder of libavahi-core inside this process, for machines without avahi-daemon. The library itself watches
/// the kernel's interfaces and addresses.
final class EmbeddedResponder: PublishingResponder {
  /// The maximum number of cached records per interface and IP version. A service has 4 records, so the cache has room
  /// for nearly `ServiceTable.servicesMax` services. One machine can fill at most half of the cached records
  /// (`RecordShares`).
  static let cachedRecordsMax: UInt32 = 960

  private(set) var isReady = false
  /// The number of packets that `PacketScreen` dropped before libavahi-core could read these packets.
  var refusedPackets: Int { screen.refusedCount }

  let owner: any ResponderOwner
  private let poll: AvahiPollAdapter
  private let screen = PacketScreen()
  private var server: OpaquePointer?
  private var group: OpaquePointer?
  private var browser: OpaquePointer?
  private var settings: DiscoverySettings?
  var name = ClaimedName("", .service)
  private var hostName: ClaimedName
  /// Fires at `name.deadline` or `hostName.deadline`, whichever is earlier.
  private var retry: Timer?

  /// Returns nil and the reason if no multicast DNS socket can be opened: another program uses port 5353 exclusively,
  /// or the machine has no IP.
  static func open(
    _ loop: EventLoop, _ settings: DiscoverySettings, hostName: String, _ owner: any ResponderOwner
  ) -> (responder: EmbeddedResponder?, reason: String) {
    let responder = EmbeddedResponder(loop, owner, hostName)
    let code = responder.startServer(settings)
    if responder.server != nil {
      responder.retry = Timer(loop) { responder.namesDue() }
      return (responder, "")
    }
    responder.poll.close()
    return (nil, avahiText(code))
  }

  private init(_ loop: EventLoop, _ owner: any ResponderOwner, _ hostName: String) {
    self.owner = owner
    self.hostName = ClaimedName(hostName, .host)
    poll = AvahiPollAdapter(loop, screen: screen)
    screen.owner = owner
  }

  var lastError: CInt { avahi_server_errno(server) }

  private var userdata: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  private func startServer(_ settings: DiscoverySettings) -> CInt {
    cavahi_silence_log()
    var config = AvahiServerConfig()
    avahi_server_config_init(&config)
    defer { avahi_server_config_free(&config) }
    avahi_free(config.host_name)
    config.host_name = avahi_strdup(hostName.current)
    config.publish_hinfo = 0
    config.publish_workstation = 0
    config.publish_domain = 0
    config.add_service_cookie = 0
    config.enable_wide_area = 0
    config.enable_reflector = 0
    config.allow_point_to_point = 1
    // With this setting, Avahi announces and browses again on an interface whose cable was connected, because that may
    // be a new network.
    config.use_iff_running = 1
    config.n_cache_entries_max = CUnsignedInt(Self.cachedRecordsMax)
    for interface in settings.interfaces {
      config.allow_interfaces = avahi_string_list_add(config.allow_interfaces, interface)
    }
    var code: CInt = 0
    // The first state callback runs before avahi_server_new returns.
    server = avahi_server_new(poll.api, &config, serverChanged, userdata, &code)
    return code
  }

  fileprivate func stateChanged(_ server: OpaquePointer?, _ state: AvahiServerState) {
    isReady = state == AVAHI_SERVER_RUNNING
    if isReady {
      hostName.held(now: monotonicNow())
      owner.responderReady(self)
    } else if state == AVAHI_SERVER_FAILURE {
      owner.responderFailed(self)
    } else {
      // The service is withdrawn, because its record contains the host name. The service is published again when a host
      // name is established.
      if let group { avahi_s_entry_group_reset(group) }
      if state == AVAHI_SERVER_COLLISION {
        if hostName.lost(now: monotonicNow()) {
          avahi_server_set_host_name(server, hostName.current)
        } else {
          owner.responderTrouble(self, NameReport.taken(.host))
        }
      }
    }
    setRetry()
  }

  func setRetry() { retry?.set(min(name.deadline, hostName.deadline)) }

  private func namesDue() {
    let now = monotonicNow()
    var isSettled = false
    switch hostName.due(now: now, random: kernelRandom()) {
    case .nothing: break
    case .claim: avahi_server_set_host_name(server, hostName.current)
    case .settled: isSettled = true
    }
    switch name.due(now: now, random: kernelRandom()) {
    case .nothing: break
    case .claim:
      withdraw()
      if isReady { publish() }
    case .settled: isSettled = true
    }
    if isSettled && !name.isContested && !hostName.isContested {
      owner.responderRecovered(self, NameReport.settled(name.current))
    }
    setRetry()
  }

  func activate(_ settings: DiscoverySettings) {
    if self.settings == nil { name = ClaimedName(settings.instanceName, .service) }
    self.settings = settings
    withdraw()
    if isReady {
      publish()
    } else {
      cavahi_set_own_service(name.current, settings.serviceType)
    }
    if browser == nil { browse(settings) }
  }

  /// Frees the entry group. A new group claims without delay, while Avahi delays the claims of a group that has already
  /// claimed 15 times.
  private func withdraw() {
    if let group { avahi_s_entry_group_free(group) }
    group = nil
  }

  func publish() {
    poll.stir()
    defer { setRetry() }
    guard let settings, !name.isResting else { return }
    name.claimedAgain(now: monotonicNow())
    if group == nil { group = avahi_s_entry_group_new(server, groupChanged, userdata) }
    guard let group else { return failed(lastError) }
    avahi_s_entry_group_reset(group)
    guard var code = claim({ add(settings) }) else { return }
    cavahi_set_own_service(name.current, settings.serviceType)
    if code >= 0 { code = avahi_s_entry_group_commit(group) }
    if code < 0 { failed(code) }
  }

  func failed(_ code: CInt) { rest(code) }

  private func add(_ settings: DiscoverySettings) -> CInt {
    withStringList(settings.txt) {
      avahi_server_add_service_strlst(
        server, group, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(rawValue: 0),
        name.current, settings.serviceType, nil, nil, settings.port, $0)
    }
  }

  func updateTXT(_ settings: DiscoverySettings) {
    poll.stir()
    self.settings = settings
    guard let group, !name.isResting, avahi_s_entry_group_is_empty(group) == 0 else { return }
    let code = withStringList(settings.txt) {
      avahi_server_update_service_txt_strlst(
        server, group, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(rawValue: 0),
        name.current, settings.serviceType, nil, $0)
    }
    if code < 0 { trouble("cannot change the published TXT record") }
  }

  private func browse(_ settings: DiscoverySettings) {
    poll.stir()
    browser = avahi_s_service_browser_new(
      server, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), settings.serviceType, nil,
      AvahiLookupFlags(rawValue: 0), browserEvent, userdata)
    if browser == nil { trouble("cannot browse") }
  }

  func browseAgain(_ settings: DiscoverySettings) {
    if let browser { avahi_s_service_browser_free(browser) }
    browse(settings)
  }

  func lookUp(_ service: Service, _ settings: DiscoverySettings) -> Bool {
    poll.stir()
    service.responder = self
    service.lookup = avahi_s_service_resolver_new(
      server, service.key.interface, service.key.networkProtocol, nameCString(service.key), settings.serviceType, nil,
      service.key.networkProtocol, AvahiLookupFlags(rawValue: 0), resolverEvent, lookupUserdata(service))
    return service.lookup != nil
  }

  func endLookup(_ service: Service) {
    if let lookup = service.lookup { avahi_s_service_resolver_free(lookup) }
    service.lookup = nil
    service.responder = nil
  }

  func close() {
    retry?.cancel()
    retry = nil
    // The group is freed before the server, because freeing the group sends the goodbye packets.
    if let group { avahi_s_entry_group_free(group) }
    if let server { avahi_server_free(server) }
    server = nil
    group = nil
    browser = nil
    poll.close()
  }

  private func trouble(_ what: String) {
    owner.responderTrouble(self, "\(what): \(avahiText(lastError))")
  }

  fileprivate func browserChanged(_ event: AvahiBrowserEvent, _ key: ServiceKey?) {
    if event == AVAHI_BROWSER_FAILURE {
      trouble("browsing failed")
    } else if let key {
      if event == AVAHI_BROWSER_NEW { owner.responderFound(self, key) }
      if event == AVAHI_BROWSER_REMOVE { owner.responderLost(self, key) }
    }
  }
}

// Callbacks of libavahi-core.

private func responder(_ userdata: UnsafeMutableRawPointer?) -> EmbeddedResponder? {
  guard let userdata else { return nil }
  return Unmanaged<EmbeddedResponder>.fromOpaque(userdata).takeUnretainedValue()
}

private func serverChanged(_ server: OpaquePointer?, _ state: AvahiServerState, _ userdata: UnsafeMutableRawPointer?) {
  responder(userdata)?.stateChanged(server, state)
}

private func groupChanged(
  _ server: OpaquePointer?, _ group: OpaquePointer?, _ state: AvahiEntryGroupState, _ userdata: UnsafeMutableRawPointer?
) {
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
