import Bearer
import BearerBluetooth
import BearerIP
import CSystem
import Configuration
import Discovery
import Identity
import Journal
import Log
import Node
import Primitives
import Reactor
import Status
import Trust
import WiFiDirect

/// Starts the configured bearers and discovery sources, and handles their events.
extension Relay: BearerDelegate {
  func startBearers() {
    let hint = node.settings.id.high
    if configuration.ip.isEnabled { startIP(hint) }
    if configuration.bluetooth.isEnabled { startBluetooth(hint) }
    if configuration.wifiDirect.isEnabled { startWiFiDirect(hint) }
    if configuration.mesh.isEnabled { startMesh(hint) }
  }

  // MARK: BearerDelegate

  func bearerOpened(_ stream: StreamHandoff) { begin(stream) }

  func bearerDialFailed(token: UInt32, reason: String) {
    let candidate = candidates[token]
    let bearer = candidate?.bearer.rawValue ?? 0
    journal.record(.info, .dialFailed, at: loop.now, UInt64(bearer), UInt64(token), text: JournalText(reason))
    if let candidate {
      dnsSD?.dialFailed(candidate)
      noteDialFailure(token, candidate, reason)
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
    resolve(source)
    if isFault { problems.append((source, text)) }
    journal.report(isFault ? .warning : .notice, at: loop.now, source, text)
    say(source, text)
  }

  /// Removes the recorded fault of a part of the daemon.
  func resolve(_ source: StaticString) { problems.removeAll { $0.source == source } }

  func problem(_ source: StaticString) -> String? { problems.first { $0.source == source }?.text }

  // MARK: Status

  func bearerStatus() -> [BearerStatus] {
    var all: [BearerStatus] = []
    if let ip {
      for interface in ip.interfaces {
        all.append(
          BearerStatus(
            name: String(interface.kind.name), state: "up", detail: "\(interface.name) port \(ip.port)", problem: ""))
      }
      if let problem = problem("ip") {
        all.append(BearerStatus(name: "ip", state: "fault", detail: "", problem: problem))
      }
    }
    all += bluetoothStatus
    if let wifiDirect { all.append(wifiStatus(wifiDirect)) }
    if let mesh { all.append(wifiStatus(mesh)) }
    if let dhcpStatus { all.append(dhcpStatus) }
    if let pageStatus { all.append(pageStatus) }
    if let dnsSD {
      let state =
        switch dnsSD.source {
        case .none: "waiting"
        case .daemon: "avahi-daemon"
        case .embedded: "built-in"
        }
      all.append(
        BearerStatus(
          name: "dns-sd", state: state, detail: "\(dnsSD.serviceCount) services", problem: problem("dns-sd") ?? ""))
    }
    for source in Self.silentSources {
      guard let problem = problem(source) else { continue }
      all.append(BearerStatus(name: String(source), state: "fault", detail: "", problem: problem))
    }
    return all
  }

  /// Parts of the daemon that are not bearers. The status shows such a part only while it has a fault.
  private static let silentSources: [StaticString] = [
    "identity", "trust", "trust-state", "pins", "state", "journal", "control", "configuration", "led", "gpio", "button",
  ]

  /// The status of each Bluetooth adapter: an entry for LE, for classic and for IP over Bluetooth, as far as each is
  /// used.
  var bluetoothStatus: [BearerStatus] {
    var all: [BearerStatus] = []
    for snapshot in bluetooth?.snapshots ?? [] {
      if snapshot.isLowEnergy { all.append(lowEnergyStatus(snapshot)) }
      if let classic = snapshot.classic { all.append(classicStatus(classic, snapshot)) }
    }
    bluetooth?.tellNetworks { network in
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
      places: snapshot.links, placesMax: snapshot.linksMax, scanning: snapshot.scanningTime,
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
      places: snapshot.links, placesMax: snapshot.linksMax, scanning: snapshot.inquiringTime,
      dialling: snapshot.diallingTime)
    return status
  }

  /// The status of a Wi-Fi Direct group or a mesh.
  func wifiStatus(_ radio: WiFiDirectRadio) -> BearerStatus {
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
      problem: problem(radio.source) ?? "")
    status.use = RadioUse(places: snapshot.stations.count)
    return status
  }

  // MARK: Starting

  private func startIP(_ hint: UInt64) {
    var settings = IPBearerSettings()
    settings.interfaces = configuration.ip.interfaces
    settings.allowsLoopback = configuration.ip.usesLoopback
    settings.port = configuration.ip.port
    settings.peers = configuration.ip.peers
    let bearer = IPBearer(loop, settings, self)
    ip = bearer
    bearer.interfacesChanged = { [self] in
      endLinksWithoutInterface(bearer)
      dnsSD?.interfacesChanged()
    }
    bearer.start()
    if let responder = configuration.discovery.dnsSD { startDNSSD(bearer, hint, responder) }
  }

  /// Ends links whose interface no longer exists, for example after a cable was pulled. The kernel reports the change
  /// at once, while the timeout of a link takes seconds.
  private func endLinksWithoutInterface(_ ip: IPBearer) {
    for driver in drivers where driver.handoff.interfaceIndex != 0 {
      if !ip.interfaces.contains(where: { $0.index == driver.handoff.interfaceIndex }) { driver.interfaceWent() }
    }
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
    radios.placesChanged = { [self] places in node.handle(.bluetoothPlaces(places), now: loop.now) }
    radios.hasStream = { [self] peer in
      drivers.contains { $0.handoff.remote == peer } || inbound?.contains(peer) ?? false
    }
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
      serveGroup(on: interface)
    }
    serveGroup(on: nil)
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

private func == (a: StaticString, b: StaticString) -> Bool {
  a.utf8CodeUnitCount == b.utf8CodeUnitCount && memcmp(a.utf8Start, b.utf8Start, a.utf8CodeUnitCount) == 0
}
