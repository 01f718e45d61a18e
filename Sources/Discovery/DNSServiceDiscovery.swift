import Bearer
import CAvahi
import CSystem
import Primitives
import Reactor

/// Publishes this node by DNS-SD over multicast DNS (RFC 6762, RFC 6763) and reports other nodes as candidates.
///
/// Uses avahi-daemon while the daemon answers, and otherwise a responder inside this process. The table of services has
/// at most `ServiceTable.servicesMax` entries, which limits the memory that announcements can use.
public final class DNSServiceDiscovery {
  /// The responder in use.
  public enum Source: Sendable {
    case none
    case daemon
    case embedded
  }

  /// The interval at which the responder, the interfaces and the wall clock are checked.
  public static let checkInterval = TimeSpan.seconds(30)
  /// How long discovery waits for a running avahi-daemon to establish its host name. After this time, discovery uses
  /// the built-in responder.
  public static let daemonReturnTime = TimeSpan.seconds(60)
  /// The time after a change of responder at which services that the new responder has not found are removed.
  public static let confirmationSpan = TimeSpan.seconds(15)
  /// If the wall clock is set by more than this step, the built-in responder restarts, because its timers are
  /// wall-clock instants.
  public static let clockStepMax = TimeSpan.seconds(5)

  /// The responder in use.
  public private(set) var source = Source.none
  /// The number of services known now, at most `ServiceTable.servicesMax`.
  public var serviceCount: Int { table.services.count }
  /// The number of packets that were dropped before the built-in responder read them. A packet is dropped if it is
  /// malformed, has a CNAME record, or exceeds its sender's share of the cache or of the processor's time.
  public var refusedPackets: Int { refusedPacketsBefore &+ (embedded?.refusedPackets ?? 0) }

  private let loop: EventLoop
  private var settings: DiscoverySettings
  private let hint: UInt64
  private let bearerKind: (UInt32) -> BearerKind
  private let isOnLink: (IPEndpoint, UInt32) -> Bool
  private var budget = DialBudget()
  private let delegate: any BearerDelegate

  private var daemon: DaemonResponder?
  private var embedded: EmbeddedResponder?
  private(set) var active: (any Responder)?
  /// Responders that are no longer used. Unused responders are closed later, because a responder must not be closed
  /// inside its own callback.
  private var retired: [any Responder] = []
  private var retiredServices: [Service] = []
  private(set) var table = ServiceTable()
  private var chores: Timer?
  private var check: Timer?
  private var confirmation: Timer?
  private var isStarted = false
  private var lastReport = ""
  private var isOffLinkTold = false
  private var refusedPacketsBefore = 0
  /// Searches for the D-Bus system bus while `daemon` is nil.
  private var bus: SystemBus?
  private var daemonAwaitedUntil = Instant.zero
  private var wallOffset: Int64 = 0

  /// `hint` is the first 8 bytes of this node's id; services with this hint are not reported. `bearerKind` returns the
  /// kind of an interface. `isOnLink` returns whether an address belongs to the network of the interface on which it
  /// was announced.
  public init(
    _ loop: EventLoop, _ settings: DiscoverySettings, hint: UInt64,
    bearerKind: @escaping (_ interfaceIndex: UInt32) -> BearerKind,
    isOnLink: @escaping (_ endpoint: IPEndpoint, _ interfaceIndex: UInt32) -> Bool, _ delegate: any BearerDelegate
  ) {
    self.loop = loop
    self.settings = settings
    self.hint = hint
    self.bearerKind = bearerKind
    self.isOnLink = isOnLink
    self.delegate = delegate
  }

  /// Publishes and browses until `stop`. Problems are reported to the delegate and retried.
  public func start() {
    if isStarted { return }
    isStarted = true
    chores = Timer(loop) { [self] in doChores() }
    check = Timer(loop) { [self] in lookAround() }
    confirmation = Timer(loop) { [self] in dropUnconfirmed() }
    if settings.responder != .embedded {
      let address = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) }
      bus = SystemBus(loop, address: address) { [self] in openDaemon() }
      bus?.seek()
    }
    lookAround()
  }

  /// Sends goodbye packets and stops. Known candidates are not reported as lost.
  public func stop() {
    if !isStarted { return }
    isStarted = false
    for timer in [chores, check, confirmation] { timer?.cancel() }
    chores = nil
    check = nil
    confirmation = nil
    bus?.stop()
    bus = nil
    closeEmbedded()
    if let daemon { retire(daemon) }
    daemon = nil
    closeRetired()
    table = ServiceTable()
  }

  /// Replaces the strings of the published TXT record.
  public func updateTXT(_ txt: [(key: String, value: String)]) {
    settings.txt = txt
    active?.updateTXT(settings)
  }

  /// Records that a dial of this candidate failed. The service of this candidate is looked up again. A changed address
  /// is reported as a new candidate; without an answer the candidate is lost.
  public func dialFailed(_ candidate: Candidate) {
    for service in table.services where service.candidate?.leads(whereLeads: candidate) == true {
      service.failedDials = min(service.failedDials + 1, 100)
      if service.phase != .known { continue }
      service.phase = .waiting
      wake(at: monotonicNow())
    }
  }

  /// Records that the node with this hint has proved its key. `remote` is the address at which the node was dialled, or
  /// from which it dialled. The service at this address is protected from eviction.
  public func proved(_ remote: RemoteAddress, hint: UInt64) {
    guard case .ip(let endpoint) = remote else { return }
    table.prove(hint, at: endpoint)
  }

  /// Records that interfaces or addresses of this machine have changed. Services whose address was outside the network
  /// of its interface are looked up again.
  public func interfacesChanged() {
    for service in table.services where service.isOffLink {
      service.isOffLink = false
      service.phase = .waiting
    }
    wake(at: monotonicNow())
  }

  // Responders.

  private func lookAround() {
    check?.set(after: Self.checkInterval, slack: Timer.choreSlack)
    daemon?.interfacesMayHaveChanged()
    chooseResponder()
    restartEmbeddedAfterClockStep()
    if table.refusals > 0, table.services.count < ServiceTable.servicesMax / 4 * 3 {
      table.clearRefusals()
      active?.browseAgain(settings)
    }
  }

  private func openDaemon() {
    daemon = DaemonResponder.open(loop, self).responder
    guard let daemon else {
      bus?.refused()
      return
    }
    bus?.connected()
    if daemon.isPresent { daemonAwaitedUntil = monotonicNow() + Self.daemonReturnTime }
    wake(at: monotonicNow())
  }

  private func chooseResponder() {
    if let daemon, daemon.isReady {
      if active === daemon { return }
      closeEmbedded()
      report("avahi-daemon answers: publishing and browsing through it", isFault: false)
      take(daemon, .daemon)
    } else if let daemon, daemon.isPresent, daemonAwaitedUntil > monotonicNow() {
      // The daemon will be ready soon. A machine should have only one responder, so the built-in responder is closed.
      closeEmbedded()
    } else if embedded == nil {
      openEmbedded()
    }
  }

  private func openEmbedded() {
    let isNameless = daemon?.isPresent ?? false
    if settings.responder == .daemon {
      let text =
        isNameless
        ? "avahi-daemon gets no host name, because another machine claims every one: disconnect that machine"
        : "no avahi-daemon: start it"
      return report(text + ", or use the built-in responder (dns-sd = auto)", isFault: true)
    }
    wallOffset = currentWallOffset()
    let (responder, reason) = EmbeddedResponder.open(loop, settings, hostName: hostName(), self)
    guard let responder else {
      let text = "no avahi-daemon, and the built-in responder cannot start: \(reason). "
      report(text + "Is UDP port 5353 used by another program? Trying again every 30 s", isFault: true)
      return
    }
    embedded = responder
    let absence = isNameless ? "avahi-daemon has no host name" : "no avahi-daemon"
    report(absence + ": publishing and browsing by the built-in responder", isFault: false)
    // The responder browses at once, before it has a host name. A host name takes about a second to establish (RFC
    // 6762, section 8.1).
    take(responder, .embedded)
  }

  func take(_ responder: any Responder, _ source: Source) {
    if active !== responder {
      for service in table.services {
        service.phase = .waiting
        service.isConfirmed = false
      }
      active = responder
      confirmation?.set(monotonicNow() + Self.confirmationSpan)
    }
    self.source = source
    responder.activate(settings)
  }

  private func closeEmbedded() {
    guard let embedded else { return }
    refusedPacketsBefore &+= embedded.refusedPackets
    self.embedded = nil
    retire(embedded)
  }

  /// Stops using a responder. The responder is closed later, outside its callbacks. The look-ups of a retired responder
  /// are not ended one by one, because each call could block on a daemon that does not answer.
  private func retire(_ responder: any Responder) {
    retired.append(responder)
    for service in table.services where service.responder === responder {
      service.lookup = nil
      service.responder = nil
      service.phase = .waiting
      // Until the responder is closed, the look-up may call back with a pointer to the service.
      retiredServices.append(service)
    }
    if active === responder {
      active = nil
      source = .none
    }
    wake(at: monotonicNow())
  }

  private func closeRetired() {
    let responders = retired
    retired = []
    for responder in responders { responder.close() }
    retiredServices = []
  }

  private func restartEmbeddedAfterClockStep() {
    guard embedded != nil else { return }
    let step = currentWallOffset() &- wallOffset
    if step.magnitude <= Self.clockStepMax.nanoseconds { return }
    closeEmbedded()
    closeRetired()
    openEmbedded()
  }

  /// The wall clock minus the monotonic clock, in nanoseconds.
  private func currentWallOffset() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    let wall = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    return wall &- Int64(truncatingIfNeeded: monotonicNow().nanoseconds)
  }

  private func hostName() -> String {
    "causeway-" + String(decoding: hexadecimal(NodeID(high: hint, low: 0)).utf8.prefix(16), as: UTF8.self)
  }

  private func report(_ text: String, isFault: Bool) {
    if text.utf8.elementsEqual(lastReport.utf8) { return }
    lastReport = text
    delegate.bearerReport("dns-sd", text, isFault: isFault)
  }

  // Services.

  private func doChores() {
    closeRetired()
    if daemon == nil { bus?.seek() }
    chooseResponder()
    startLookups()
  }

  private func startLookups() {
    let now = monotonicNow()
    // `active` is read again in each round, because the start of a look-up may detect that the daemon is gone.
    while let active, let service = table.nextToLookUp(now) {
      service.phase = .lookingUp
      if !active.lookUp(service, settings), self.active === active { lookupFailed(service) }
    }
    let deadline = table.nextDeadline
    if deadline != .never { wake(at: deadline) }
  }

  /// Schedules `doChores` for this instant, unless it is already scheduled earlier.
  private func wake(at instant: Instant) {
    if let chores, instant < chores.deadline { chores.set(instant) }
  }

  private func lookupFailed(_ service: Service) {
    service.responder?.endLookup(service)
    withdraw(service)
    service.failures = min(service.failures + 1, 100)
    service.phase = .resting(until: monotonicNow() + ServiceTable.rest(afterFailures: service.failures))
  }

  private func remove(_ service: Service) {
    service.responder?.endLookup(service)
    table.remove(service)
    withdraw(service)
  }

  /// Ends the look-up and the candidate of a service that the table has evicted.
  private func evict(_ service: Service) {
    service.responder?.endLookup(service)
    withdraw(service)
  }

  /// Removes the service's candidate. The candidate is reported as lost if no other service has the same one.
  private func withdraw(_ service: Service) {
    guard let candidate = service.candidate else { return }
    service.candidate = nil
    if table.count(leadingTo: candidate) == 0 { delegate.bearerLost(candidate) }
  }

  private func mayDial(_ endpoint: IPEndpoint, for service: Service) -> Bool {
    let interface = UInt32(service.key.interface)
    service.isOffLink = !isOnLink(endpoint, interface)
    if !service.isOffLink { return budget.take(endpoint, heardOn: interface, now: monotonicNow()) }
    if !isOffLinkTold {
      isOffLinkTold = true
      delegate.bearerReport(
        "dns-sd",
        "ignored a service whose address is not on the network that announced it; further ones are not reported",
        isFault: false)
    }
    return false
  }

  private func dropUnconfirmed() {
    for service in table.services where !service.isConfirmed { remove(service) }
  }
}

extension DNSServiceDiscovery: ResponderOwner {
  func responderReady(_ responder: any Responder) {
    if responder === daemon {
      if active === responder { responder.activate(settings) } else { wake(at: monotonicNow()) }
    } else if responder === embedded {
      take(responder, .embedded)
    }
  }

  func responderNotReady(_ responder: any Responder) {
    if responder !== daemon { return }
    daemonAwaitedUntil = monotonicNow() + Self.daemonReturnTime
    wake(at: monotonicNow())
  }

  func responderFailed(_ responder: any Responder) {
    if responder === daemon {
      daemon = nil
      retire(responder)
    } else if responder === embedded {
      closeEmbedded()
    }
  }

  func responderFound(_ responder: any Responder, _ key: ServiceKey) {
    guard responder === active, NodeHint.ofInstanceName(key.name) != hint else { return }
    if let service = table.find(key) {
      service.isConfirmed = true
    } else {
      _ = table.insert(key, evicting: { evict($0) })
      if table.refusals == 1 {
        report(
          "more than \(ServiceTable.servicesMax) services are announced here: those where no node has answered are evicted first",
          isFault: true)
      }
    }
    wake(at: monotonicNow())
  }

  func responderLost(_ responder: any Responder, _ key: ServiceKey) {
    guard responder === active, let service = table.find(key) else { return }
    remove(service)
    wake(at: monotonicNow())
  }

  func responderLookedUp(_ responder: any Responder, _ service: Service, _ endpoint: IPEndpoint?, _ record: NodeRecord)
  {
    guard responder === active else { return }
    service.responder?.endLookup(service)
    wake(at: monotonicNow())
    let kind = bearerKind(UInt32(service.key.interface))
    // A loopback address in another machine's announcement would make this machine dial itself.
    guard let endpoint, !endpoint.isLoopback || kind == .loopback else { return lookupFailed(service) }
    let claimed = NodeHint.ofInstanceName(service.key.name) ?? record.hint ?? 0
    let candidate = Candidate(
      bearer: kind, address: .ip(endpoint), hint: claimed, domain: UInt32(service.key.interface), relays: record.relays)
    let isNew = claimed != hint && table.count(leadingTo: candidate) == 0
    // Announcements are not authenticated. Without this check a single packet could make the box dial any address on
    // the Internet.
    if isNew && !mayDial(endpoint, for: service) { return lookupFailed(service) }
    // After a change of address, the earlier proof and the earlier failures do not apply to the service.
    if candidate != service.candidate { (service.provenBy, service.failedDials) = (nil, 0) }
    service.phase = .known
    service.failures = 0
    service.isOffLink = false
    if claimed == hint { return withdraw(service) }
    if candidate == service.candidate { return }
    withdraw(service)
    service.candidate = candidate
    if isNew { delegate.bearerFound(candidate) }
  }

  func isProven(_ source: UInt64, on interface: UInt32) -> Bool { table.isProven(source, on: interface) }

  func responderTrouble(_ responder: any Responder, _ text: String) {
    if responder === active { report(text, isFault: true) }
  }

  func responderRecovered(_ responder: any Responder, _ text: String) {
    if responder === active { report(text, isFault: false) }
  }
}
