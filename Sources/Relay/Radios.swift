import Bearer
import BearerBluetooth
import BearerIP
import CSystem
import Configuration
import Discovery
import Explain
import Identity
import Journal
import Log
import Node
import Primitives
import Reactor
import Status
import Trust
import WiFiDirect

/// The part of the daemon that `Radios` calls.
protocol RadiosDelegate: AnyObject {
  /// Called when a bearer has opened a stream, dialled or inbound.
  func streamOpened(_ stream: StreamHandoff)
  /// Whether a stream with this address exists, whether or not its handshake has begun.
  func hasStream(with remote: RemoteAddress) -> Bool
  /// Ends the links on all interfaces other than `interfaces`.
  func endLinks(exceptOn interfaces: [UInt32])
}

/// The bearers and discovery sources of the configuration, and the candidates (addresses of nodes) that they find.
final class Radios: BearerDelegate, GroupServicesDelegate {
  private let loop: EventLoop
  private let configuration: Configuration
  private let node: Node
  private let trust: TrustKeeper
  private let journal: Journal
  private let faults: FaultReports
  private let contacts: ContactRecorder
  var delegate: (any RadiosDelegate)?

  private(set) var candidates = CandidateHandles()
  private var ip: IPBearer?
  private var bluetooth: BluetoothRadios?
  private var wifiDirect: WiFiDirectRadio?
  private var mesh: WiFiDirectRadio?
  private var dnsSD: DNSServiceDiscovery?
  private var groupServices: GroupServices?

  init(
    _ loop: EventLoop, _ configuration: Configuration, _ node: Node, _ trust: TrustKeeper, _ journal: Journal,
    _ faults: FaultReports, _ contacts: ContactRecorder
  ) {
    self.loop = loop
    self.configuration = configuration
    self.node = node
    self.trust = trust
    self.journal = journal
    self.faults = faults
    self.contacts = contacts
  }

  func start() {
    let hint = node.settings.id.high
    if configuration.ip.isEnabled { startIP(hint) }
    if configuration.bluetooth.isEnabled { startBluetooth(hint) }
    if configuration.wifiDirect.isEnabled { startWiFiDirect(hint) }
    if configuration.mesh.isEnabled { startMesh(hint) }
  }

  func stop() {
    groupServices?.close()
    dnsSD?.stop()
    bluetooth?.stop()
    wifiDirect?.stop()
    if configuration.bluetooth.joinsGroup { GroupBridge.remove() }
    mesh?.stop()
    ip?.stop()
  }

  /// Dials a candidate. The bearer reports the result. The node is notified at once if the candidate or its bearer does
  /// not exist.
  func dial(_ handle: UInt32, _ now: Instant) {
    guard let candidate = candidates[handle] else { return node.handle(.dialFailed(handle), now: now) }
    journal.record(.info, .dialStarted, at: now, UInt64(candidate.bearer.rawValue), UInt64(handle))
    switch candidate.address {
    case .ip:
      guard let ip else { return node.handle(.dialFailed(handle), now: now) }
      ip.dial(candidate, token: handle)
    case .bluetooth, .bluetoothClassic:
      guard let bluetooth else { return node.handle(.dialFailed(handle), now: now) }
      bluetooth.dial(candidate, token: handle)
    }
  }

  // MARK: The Wi-Fi group

  /// The state of the Wi-Fi Direct group; nil if Wi-Fi Direct is off.
  var group: WiFiDirectSnapshot? { wifiDirect?.snapshot }

  /// Opens the group for one device (WPS). Returns false if there is no group, or the configuration disables WPS.
  func openGroup() -> Bool { wifiDirect?.pushButton() == true }

  // MARK: Links

  /// Notes that the peer of a stream has proved its key.
  func proved(_ stream: StreamHandoff, by peer: NodeID) {
    if !stream.isInbound { bluetooth?.proved(stream.remote) }
    dnsSD?.proved(stream.remote, hint: peer.high)
  }

  /// Notes that the stream of a link over Wi-Fi has ended.
  func wifiLinkEnded() { bluetooth?.wifiEnded() }

  /// Notes that a link that was up has ended. The radio then answers the peer as soon as possible.
  func linkLost(_ stream: StreamHandoff) {
    if case .bluetooth(let endpoint) = stream.remote {
      bluetooth?.answerAgain(endpoint, wasDialled: !stream.isInbound)
    }
  }

  /// Closes the connection with a Bluetooth peer.
  func hangUp(_ endpoint: BluetoothEndpoint) { bluetooth?.hangUp(endpoint) }

  /// Reports the bytes that links over Bluetooth and Wi-Fi have sent and received to the Bluetooth radios, which adapt
  /// scans and connections to the traffic. Called at the end of each pass of the event loop.
  func reportTraffic(of drivers: [LinkDriver]) {
    guard let bluetooth else { return }
    var overWiFi: UInt64 = 0
    for driver in drivers where driver.handoff.bearer != .ethernet {
      let passed = driver.takePassed()
      if passed == 0 { continue }
      if driver.handoff.bearer.isWiFi {
        overWiFi &+= passed
      } else {
        bluetooth.passed(driver.handoff.remote, passed)
      }
    }
    if overWiFi > 0 { bluetooth.passedOverWiFi(overWiFi) }
  }

  // MARK: BearerDelegate

  func bearerOpened(_ stream: StreamHandoff) { delegate?.streamOpened(stream) }

  func bearerDialFailed(token: UInt32, reason: String) {
    let candidate = candidates[token]
    let bearer = candidate?.bearer.rawValue ?? 0
    journal.record(.info, .dialFailed, at: loop.now, UInt64(bearer), UInt64(token), text: JournalText(reason))
    if let candidate {
      dnsSD?.dialFailed(candidate)
      contacts.noteDialFailure(token, candidate, reason)
    }
    node.handle(.dialFailed(token), now: loop.now)
  }

  func bearerFound(_ candidate: Candidate) {
    guard let handle = candidates.enter(candidate, now: loop.now) else { return }
    journal.record(.info, .candidateFound, at: loop.now, UInt64(candidate.bearer.rawValue), candidate.hint)
    let found = FoundCandidate(
      handle, candidate.bearer, domain: candidate.domain, hint: candidate.hint, relays: candidate.relays)
    node.handle(.candidateFound(found), now: loop.now)
  }

  func bearerLost(_ candidate: Candidate) {
    guard let handle = candidates.strike(candidate) else { return }
    journal.record(.info, .candidateLost, at: loop.now, UInt64(candidate.bearer.rawValue), candidate.hint)
    node.handle(.candidateLost(handle), now: loop.now)
  }

  func bearerReport(_ source: StaticString, _ text: String, isFault: Bool) {
    faults.report(source, text, isFault: isFault)
  }

  // MARK: Status

  var status: [BearerStatus] {
    var all: [BearerStatus] = []
    if let ip {
      for interface in ip.interfaces {
        all.append(
          BearerStatus(
            name: String(interface.kind.name), state: "up", detail: "\(interface.name) port \(ip.port)", problem: ""))
      }
      if let problem = faults["ip"] {
        all.append(BearerStatus(name: "ip", state: "fault", detail: "", problem: problem))
      }
    }
    all += bluetoothStatus
    if let wifiDirect { all.append(wifiStatus(wifiDirect)) }
    if let mesh { all.append(wifiStatus(mesh)) }
    all += groupServices?.status ?? []
    if let dnsSD {
      let state =
        switch dnsSD.source {
        case .none: "waiting"
        case .daemon: "avahi-daemon"
        case .embedded: "built-in"
        }
      all.append(
        BearerStatus(
          name: "dns-sd", state: state, detail: "\(dnsSD.serviceCount) services", problem: faults["dns-sd"] ?? ""))
    }
    for source in Self.silentSources {
      guard let problem = faults[source] else { continue }
      all.append(BearerStatus(name: String(source), state: "fault", detail: "", problem: problem))
    }
    return all
  }

  /// Parts of the daemon that are not bearers. The status shows a part in this list only while that part has a fault.
  private static let silentSources: [StaticString] = [
    "identity", "trust", "trust-state", "pins", "state", "journal", "control", "configuration", "led", "gpio", "button",
  ]

  /// The status of each Bluetooth adapter: an entry for LE, for classic and for IP over Bluetooth, as far as each is
  /// used.
  private var bluetoothStatus: [BearerStatus] {
    var all: [BearerStatus] = []
    for snapshot in bluetooth?.snapshots ?? [] {
      if snapshot.isLowEnergy { all.append(lowEnergyStatus(snapshot)) }
      if let classic = snapshot.classic { all.append(classicStatus(classic, snapshot)) }
    }
    bluetooth?.forEachNetwork { network in
      let state = network.problem == nil ? "up" : "fault"
      all.append(
        BearerStatus(name: "bluetooth-nap", state: state, detail: network.detail, problem: network.problem ?? ""))
    }
    return all
  }

  private func lowEnergyStatus(_ snapshot: BluetoothSnapshot) -> BearerStatus {
    let state: StaticString = snapshot.problem == nil ? "up" : "fault"
    var detail = ""
    if let index = snapshot.adapterIndex {
      detail = "hci\(index) \(BluetoothEndpoint(address: snapshot.adapterAddress ?? 0, isRandom: false).text)"
      detail += ", psm \(snapshot.psm), \(snapshot.links) of \(snapshot.linksMax) links"
      if snapshot.fastLinks > 0 { detail += ", \(snapshot.fastLinks) fast" }
      if snapshot.slowLinks > 0 { detail += ", \(snapshot.slowLinks) at rest" }
      if snapshot.has2M { detail += ", 2M" }
      if snapshot.isAdvertising { detail += ", advertising" }
      if snapshot.isScanning { detail += ", scanning" }
      if snapshot.isDialling { detail += ", dialling" }
      if snapshot.isAirShared { detail += ", few scans beside Wi-Fi" }
    }
    var status = BearerStatus(
      name: String(BearerKind.bluetoothLE.name), state: String(state), detail: detail, problem: snapshot.problem ?? "")
    status.use = RadioUse(
      slotsUsed: snapshot.links, slotsMax: snapshot.linksMax, scanning: snapshot.scanningTime,
      dialling: snapshot.diallingTime)
    return status
  }

  private func classicStatus(_ snapshot: ClassicSnapshot, _ adapter: BluetoothSnapshot) -> BearerStatus {
    // If LE is not used, no other entry shows the fault of the adapter.
    let problem = snapshot.problem ?? (adapter.isLowEnergy ? nil : adapter.problem)
    let state: StaticString = problem != nil ? "fault" : snapshot.channel == nil ? "waiting" : "up"
    var detail = ""
    if let adapter = adapter.adapterIndex, let channel = snapshot.channel {
      detail = "hci\(adapter), rfcomm channel \(channel), \(snapshot.links) of \(snapshot.linksMax) links"
      if snapshot.isDiscoverable { detail += ", discoverable" }
      if snapshot.isInquiring { detail += ", inquiring" }
      if snapshot.isDialling { detail += ", dialling" }
    }
    var status = BearerStatus(
      name: String(BearerKind.bluetoothClassic.name), state: String(state), detail: detail,
      problem: problem ?? "")
    status.use = RadioUse(
      slotsUsed: snapshot.links, slotsMax: snapshot.linksMax, scanning: snapshot.inquiringTime,
      dialling: snapshot.diallingTime)
    return status
  }

  /// The status of a Wi-Fi Direct group or a mesh.
  private func wifiStatus(_ radio: WiFiDirectRadio) -> BearerStatus {
    let snapshot = radio.snapshot
    var detail = "", secret = ""
    if !snapshot.groupInterface.isEmpty {
      let name = radio.isMesh ? "“\(snapshot.ssid)”" : snapshot.ssid
      detail = "\(snapshot.groupInterface) \(name), \(snapshot.frequency) MHz"
      switch snapshot.state {
      case .groupOwner:
        detail += ", \(snapshot.stations.count) stations"
        if snapshot.isPushButtonPressed { detail += ", open for WPS" }
        secret = "passphrase \(snapshot.passphrase)"
      case .member: if radio.isMesh { detail += ", \(snapshot.stations.count) mesh peers" }
      case .off, .waitingForSupplicant, .preparing, .unavailable, .creatingGroup, .searching, .joining: break
      }
    }
    var status = BearerStatus(
      name: String(radio.source), state: String(snapshot.state.name), detail: detail, secret: secret,
      problem: faults[radio.source] ?? "")
    status.use = RadioUse(slotsUsed: snapshot.stations.count)
    return status
  }

  /// The state of the bearers, for `causeway explain`.
  var facts: [BearerFacts] {
    var interfaces = ""
    for interface in ip?.interfaces ?? [] where interface.kind != .wifiDirect {
      interfaces += "\(interfaces.utf8.isEmpty ? "" : ", ")\(interface.name)"
    }
    let discovery = dnsSD == nil ? "; [discovery] dns-sd is off, so only [ip] peers are dialled" : ""
    var meshFact = ""
    if let mesh = mesh.map({ wifiStatus($0) }) {
      meshFact = "; mesh: \(mesh.detail.utf8.isEmpty ? mesh.state : mesh.detail)"
      if !mesh.problem.utf8.isEmpty { meshFact += ", \(mesh.problem)" }
    }
    let wifi = wifiDirect.map { wifiStatus($0) }
    let adapters = bluetoothStatus
    let bluetooth = adapters.first { !$0.detail.utf8.isEmpty } ?? adapters.first
    return [
      BearerFacts(
        .ip, isEnabled: configuration.ip.isEnabled, isUp: !interfaces.utf8.isEmpty,
        detail: (interfaces.utf8.isEmpty ? "no interface is up" : "\(interfaces)\(discovery)") + meshFact,
        problem: faults["ip"] ?? ""),
      BearerFacts(
        .wifiDirect, isEnabled: configuration.wifiDirect.isEnabled,
        isUp: wifi.map { !$0.detail.utf8.isEmpty } ?? false,
        detail: wifi.map { $0.detail.utf8.isEmpty ? $0.state : $0.detail } ?? "", problem: wifi?.problem ?? ""),
      BearerFacts(
        .bluetoothLE, isEnabled: configuration.bluetooth.isEnabled,
        isUp: bluetooth.map { !$0.detail.utf8.isEmpty } ?? false, detail: bluetooth?.detail ?? "",
        problem: bluetooth?.problem ?? ""),
    ]
  }

  // MARK: Services for the group

  func isStation(_ hardware: UInt64) -> Bool {
    (wifiDirect?.snapshot.stations.contains(MACAddress(hardware)) ?? false)
      || bluetooth?.hasJoinedNetwork(hardware) ?? false
  }

  var groupName: String { wifiDirect?.snapshot.ssid ?? "" }

  // MARK: Starting

  private func startIP(_ hint: UInt64) {
    var settings = IPBearerSettings()
    settings.interfaces = configuration.ip.interfaces
    settings.allowsLoopback = configuration.ip.usesLoopback
    settings.port = configuration.ip.port
    settings.peers = configuration.ip.peers
    let bearer = IPBearer(loop, settings, self)
    ip = bearer
    // Without this callback, a link whose cable was pulled would end only by its timeout.
    bearer.interfacesChanged = { [self] in
      delegate?.endLinks(exceptOn: bearer.interfaces.map { $0.index })
      dnsSD?.interfacesChanged()
    }
    bearer.start()
    if let responder = configuration.discovery.dnsSD { startDNSSD(bearer, hint, responder) }
  }

  private func startBluetooth(_ hint: UInt64) {
    var settings = BearerBluetooth.BluetoothSettings()
    settings.psm = configuration.bluetooth.psm
    settings.relays = node.settings.relays
    settings.isClassic = configuration.bluetooth.isClassic
    settings.isLowEnergy = configuration.bluetooth.isLowEnergy
    settings.networkBridge =
      configuration.bluetooth.joinsGroup ? GroupBridge.name : configuration.bluetooth.networkBridge
    let radios = BluetoothRadios(loop, settings, adapters: configuration.bluetooth.adapters, hint: hint, self)
    radios.slotsChanged = { [self] slots in node.handle(.bluetoothSlots(slots), now: loop.now) }
    radios.hasStream = { [self] peer in delegate?.hasStream(with: peer) ?? false }
    bluetooth = radios
    radios.start()
  }

  private func startWiFiDirect(_ hint: UInt64) {
    let chosen = configuration.wifiDirect
    var options = wifiOptions(chosen.interface)
    // A radio may support only one channel at a time, so the group uses the channel of the mesh.
    options.frequency = chosen.frequency == 0 && isMeshBesideGroup ? configuration.mesh.frequency : chosen.frequency
    options.ssid = chosen.ssid
    options.passphrase = chosen.passphrase
    options.passphraseOfNode = trust.identity.passphrase(for: "causeway wifi-direct group")
    options.deviceNamePrefix = chosen.deviceNamePrefix
    options.port = configuration.ip.port
    options.role = chosen.mode
    options.pushButton = chosen.wps
    options.isBridged = configuration.bluetooth.joinsGroup
    if !options.isBridged { GroupBridge.remove() }  // A daemon that was killed leaves its bridge.
    let radio = WiFiDirectRadio(loop, options, hint: hint, self)
    wifiDirect = radio
    radio.groupInterfaceChanged = { [self] interface in
      ip?.wifiDirectInterface = interface
      groupServices?.serve(on: interface)
    }
    groupServices = GroupServices(loop, configuration, node, self)
    groupServices?.serve(on: nil)
    radio.start()
  }

  private func startMesh(_ hint: UInt64) {
    let chosen = configuration.mesh
    var options = wifiOptions(chosen.interface)
    options.frequency = chosen.frequency
    options.ssid = chosen.ssid
    options.passphrase = chosen.passphrase
    options.mesh = MeshOptions(isForwarding: chosen.isForwarding, isBesideGroup: isMeshBesideGroup)
    let radio = WiFiDirectRadio(loop, options, hint: hint, self)
    mesh = radio
    radio.start()
  }

  private var isMeshBesideGroup: Bool {
    configuration.mesh.isEnabled && configuration.wifiDirect.isEnabled
      && sameText(configuration.mesh.interface, configuration.wifiDirect.interface)
  }

  private func wifiOptions(_ interface: String) -> WiFiDirectOptions {
    var options = WiFiDirectOptions()
    options.interface = interface
    options.controlSocket = configuration.wifiDirect.controlSocket
    options.clientDirectory = configuration.node.runtimeDirectory
    return options
  }

  private func startDNSSD(_ ip: IPBearer, _ hint: UInt64, _ responder: ResponderChoice) {
    var settings = Discovery.DiscoverySettings(
      node: node.settings.id, port: ip.port, displayName: configuration.node.displayName, relays: node.settings.relays)
    // Avahi compares interface names and supports no patterns. With a pattern, discovery runs on all interfaces. The IP
    // bearer refuses to dial addresses on interfaces that do not match.
    let hasPatterns = configuration.ip.interfaces.contains { $0.utf8.contains(UInt8(ascii: "*")) }
    settings.interfaces = hasPatterns ? [] : configuration.ip.interfaces
    settings.responder = responder
    let discovery = DNSServiceDiscovery(
      loop, settings, hint: hint, bearerKind: { index in ip.interfaces.first { $0.index == index }?.kind ?? .ethernet },
      isOnLink: { endpoint, index in ip.isOnLink(endpoint, interfaceIndex: index) }, self)
    dnsSD = discovery
    discovery.start()
  }
}

extension String {
  public init(_ text: StaticString) { self = text.description }
}

extension BearerKind {
  /// Whether the bearer's radio may share an antenna with Bluetooth.
  var isWiFi: Bool {
    switch self {
    case .wifi, .wifiDirect: true
    case .ethernet, .bluetoothLE, .bluetoothClassic, .loopback: false
    }
  }
}
