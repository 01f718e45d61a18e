import Bearer
import CSystem
import Netlink
import Primitives
import Reactor

/// Links over TCP on any IP interface: Ethernet, Wi-Fi, a Wi-Fi Direct group.
///
/// The bearer listens on one port for both IP versions, dials on request, and tracks the interfaces. All calls and
/// callbacks are on the event loop's thread; `dial` never calls back before it returns.
public final class IPBearer {
  /// The interfaces that links are allowed to use now, at most `NetworkInterface.countMax`.
  public private(set) var interfaces: [NetworkInterface] = []
  /// Called after `interfaces` changed.
  public var interfacesChanged: (() -> Void)?
  /// The port of the listening socket; 0 while nothing listens.
  public var port: UInt16 { listener?.port ?? 0 }
  /// The interface of a Wi-Fi Direct group, if the interface's name does not begin with `p2p-`. Drivers that support
  /// only one interface use the radio's own interface, such as `wlan0`.
  public var wifiDirectInterface: String? {
    get { rules.wifiDirectInterface }
    set {
      rules.wifiDirectInterface = newValue
      if watch != nil { refresh() }
    }
  }
  /// The number of inbound connections that were closed because the settings do not allow their interface.
  public private(set) var refusedCount: UInt64 = 0

  /// The minimum interval between enumerations of the interfaces that are caused by a connection to an unknown local
  /// address. Any host can cause enumerations by connecting, and each enumeration queries the kernel for all
  /// interfaces.
  public static let unknownAddressInterval = TimeSpan.seconds(1)
  /// The delay before the next attempt to listen, after listening failed, for example because the port is in use.
  public static let listenRetryTime = TimeSpan.seconds(5)

  private let loop: EventLoop
  private let settings: IPBearerSettings
  private let delegate: any BearerDelegate
  private let enumerate: (InterfaceRules) -> [NetworkInterface]?
  private var rules: InterfaceRules
  private var unknownAddressAt = Instant.zero
  private var watch: KernelWatch?
  private var listener: StreamListener?
  private var dialer: StreamDialer?
  private var listenTimer: Timer?
  private var isListenFaultReported = false
  /// Configured peers, each with the candidate that was last reported for it.
  private var staticPeers: [(peer: StaticPeer, reported: Candidate?)]

  public convenience init(_ loop: EventLoop, _ settings: IPBearerSettings, _ delegate: any BearerDelegate) {
    self.init(loop, settings, delegate, enumerate: enumerateInterfaces)
  }

  init(
    _ loop: EventLoop, _ settings: IPBearerSettings, _ delegate: any BearerDelegate,
    enumerate: @escaping (InterfaceRules) -> [NetworkInterface]?
  ) {
    self.loop = loop
    self.enumerate = enumerate
    self.settings = settings
    self.delegate = delegate
    rules = InterfaceRules(
      patterns: Array(settings.interfaces.prefix(IPBearerSettings.entriesMax)), allowsLoopback: settings.allowsLoopback)
    staticPeers = settings.peers.prefix(IPBearerSettings.entriesMax).map { ($0, nil) }
  }

  /// Starts the bearer. A problem while starting, such as a port in use, is reported as a fault. The bearer tries to
  /// listen again every `listenRetryTime`.
  public func start() {
    guard dialer == nil else { return }
    dialer = StreamDialer(
      loop, connected: { [self] in dialled($0, $1, $2) },
      failed: { [self] in delegate.bearerDialFailed(token: $0, reason: $1) })
    listenTimer = Timer(loop) { [self] in listen() }
    do {
      watch = try KernelWatch(loop, .addresses) { [self] in refresh() }
    } catch {
      delegate.bearerReport(
        "ip", "cannot watch the interfaces: \(error.text). New ones are not detected.", isFault: true)
    }
    listen()
    refresh()
  }

  /// Stops the bearer. No callback follows. Streams that were handed over stay open.
  public func stop() {
    watch?.stop()
    listener?.close()
    dialer?.close()
    listenTimer?.cancel()
    watch = nil
    listener = nil
    dialer = nil
    listenTimer = nil
    interfaces = []
  }

  /// Connects to an IP candidate. `bearerOpened` or `bearerDialFailed` follows within 5 s, unless `stop` is
  /// called before.
  public func dial(_ candidate: Candidate, token: UInt32) {
    switch candidate.address {
    case .ip(let endpoint): dialer?.dial(endpoint, token: token)
    case .bluetooth, .bluetoothClassic: preconditionFailure("a Bluetooth candidate is for the Bluetooth bearer")
    }
  }

  /// The interface that has this local address; nil if there is none.
  public func interface(having endpoint: IPEndpoint) -> NetworkInterface? {
    for interface in interfaces {
      if endpoint.scope != 0 {
        if interface.index == endpoint.scope { return interface }
      } else if interface.addresses.contains(where: { $0.isSame(endpoint) }) {
        return interface
      } else if interface.kind == .loopback, interface.addresses.contains(where: { $0.reaches(endpoint) }) {
        return interface  // all of 127.0.0.0/8 is local
      }
    }
    return nil
  }

  /// The kind of bearer that reaches an address, according to the networks of the interfaces; Ethernet if none matches.
  public func kind(reaching endpoint: IPEndpoint) -> BearerKind {
    for interface in interfaces {
      let leadsThere =
        endpoint.scope != 0
        ? interface.index == endpoint.scope : interface.addresses.contains { $0.reaches(endpoint) }
      if leadsThere { return interface.kind }
    }
    return .ethernet
  }

  /// Whether a datagram from this address can have arrived on the interface: the address is link-local, or on a network
  /// of the interface.
  public func isOnLink(_ endpoint: IPEndpoint, interfaceIndex: UInt32) -> Bool {
    guard let interface = interfaces.first(where: { $0.index == interfaceIndex }) else { return false }
    if endpoint.isLinkLocalIPv6 { return endpoint.scope == interfaceIndex }
    return interface.addresses.contains { $0.reaches(endpoint) }
  }

  // MARK: - Interfaces

  private func refresh() {
    let current = enumerate(rules) ?? interfaces
    let isChanged = current != interfaces
    interfaces = current
    reportStaticPeers()
    if isChanged { interfacesChanged?() }
  }

  /// Reports static peers whose candidate has changed. A peer's interface can appear later, or return with another
  /// index.
  private func reportStaticPeers() {
    for index in staticPeers.indices {
      let candidate = candidate(of: staticPeers[index].peer)
      let before = staticPeers[index].reported
      if before == candidate { continue }
      staticPeers[index].reported = candidate
      if let before { delegate.bearerLost(before) }
      if let candidate { delegate.bearerFound(candidate) }
    }
  }

  /// Nil while the interface of the peer does not exist.
  private func candidate(of peer: StaticPeer) -> Candidate? {
    var endpoint = peer.endpoint
    if !peer.interface.utf8.isEmpty {
      endpoint.scope = peer.interface.withCString { if_nametoindex($0) }
      if endpoint.scope == 0 { return nil }
    }
    return Candidate(bearer: kind(reaching: endpoint), address: .ip(endpoint), hint: 0)
  }

  // MARK: - Streams

  private func listen() {
    do {
      listener = try StreamListener(
        loop, port: settings.port, accepted: { [self] in accepted($0, $1) },
        shortage: { [self] error in
          let text = error.map { "cannot accept connections: \($0.text). Trying every second." }
          delegate.bearerReport("ip", text ?? "accepting connections again", isFault: error != nil)
        })
      if isListenFaultReported {
        delegate.bearerReport("ip", "listening on port \(port)", isFault: false)
        isListenFaultReported = false
      }
    } catch {
      listenTimer?.set(after: Self.listenRetryTime)
      if isListenFaultReported { return }
      isListenFaultReported = true
      delegate.bearerReport(
        "ip",
        "cannot listen on port \(settings.port): \(error.text). Stop the program that uses it, or set another port.",
        isFault: true)
    }
  }

  private func accepted(_ descriptor: CInt, _ remote: IPEndpoint) {
    guard let interface = allowedInterface(of: descriptor) else {
      close(descriptor)
      refusedCount &+= 1
      if refusedCount == 1 {
        delegate.bearerReport(
          "ip", "refused \(remote.text): it came over an interface that the settings do not allow", isFault: false)
      }
      return
    }
    tuneStream(descriptor)
    hand(over: descriptor, remote, interface, isInbound: true, token: 0)
  }

  private func dialled(_ descriptor: CInt, _ remote: IPEndpoint, _ token: UInt32) {
    guard let interface = allowedInterface(of: descriptor) else {
      close(descriptor)
      delegate.bearerDialFailed(
        token: token, reason: "\(remote.text) is reached over an interface that the settings do not allow")
      return
    }
    hand(over: descriptor, remote, interface, isInbound: false, token: token)
  }

  private func hand(
    over descriptor: CInt, _ remote: IPEndpoint, _ interface: NetworkInterface, isInbound: Bool, token: UInt32
  ) {
    delegate.bearerOpened(
      StreamHandoff(
        descriptor: descriptor, bearer: interface.kind, isInbound: isInbound, token: token, unitBytesMax: .max,
        interfaceIndex: interface.index, remote: .ip(remote)))
  }

  private func allowedInterface(of descriptor: CInt) -> NetworkInterface? {
    guard let local = localEndpoint(descriptor) else { return nil }
    if let interface = interface(having: local) { return interface }
    // A connection can arrive before the kernel's event that announces the connection's local address.
    let now = monotonicNow()
    if unknownAddressAt != .zero && now - unknownAddressAt < Self.unknownAddressInterval { return nil }
    unknownAddressAt = now
    refresh()
    return interface(having: local)
  }
}
