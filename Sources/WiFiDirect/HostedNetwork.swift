import BearerIP
import CSystem
import Primitives
import Reactor

/// A Wi-Fi network that this radio operates: an access point, or this node's part of a mesh. `NetworkPlan` contains its
/// settings.
///
/// The network gets an interface of its own, so that the radio can be a station of another network at the same time. If
/// the driver supports only one interface, the network uses the radio's own interface. Sharing that interface fails if
/// wpa_supplicant is configured with another network for this interface.
final class HostedNetwork: RadioActivity {
  /// The time limit for starting the network.
  static let creationTime = TimeSpan.seconds(15)
  /// The interval of the checks whether the network is up.
  static let lookTime = TimeSpan.milliseconds(300)
  /// A 2.4 GHz channel that all phones support, in MHz.
  static let frequencyDefault: UInt16 = 2437

  private let radio: WiFiDirectRadio
  private let plan: NetworkPlan
  private var timer: Timer?
  private var giveUpAt = Instant.never
  /// The created interface, or the radio's own interface; empty until an interface is chosen.
  private var interface = ""
  private var isMade = false
  private var isThere = false
  private var network: String?

  init(_ radio: WiFiDirectRadio, _ plan: NetworkPlan) {
    self.radio = radio
    self.plan = plan
  }

  func begin() {
    timer = Timer(radio.loop) { [self] in timedOut() }
    radio.snapshot.state = plan.stateBefore
    giveUpAt = radio.loop.now + Self.creationTime
    timer?.set(giveUpAt)
    guard let supplicant = radio.supplicant, supplicant.isGlobal else { return defineOnOwnInterface() }
    let name = interfaceName
    // An earlier run may have left the interface.
    supplicant.send("INTERFACE_REMOVE \(name)")
    let made: (SupplicantReply) -> Void = { [self] reply in
      if hasEnded { return }
      isMade = !reply.isFailure
      if isMade { define(name) } else { defineOnOwnInterface() }
    }
    switch plan.kind {
    case .accessPoint:
      // The arguments: name, configuration file, driver, control directory, parameters, bridge, the request to create
      // the interface, and its type.
      supplicant.send("INTERFACE_ADD \(name)\t\tnl80211\t\t\t\tcreate\tap", made)
    case .mesh:
      // A successful reply is the interface's name, not OK.
      supplicant.send(to: radio.options.interface, "MESH_INTERFACE_ADD ifname=\(name)", made)
    }
  }

  func received(_ message: SupplicantMessage) {
    guard !interface.utf8.isEmpty, sameText(message.interface, interface) else { return }
    switch message.event {
    case .stationConnected(let address):
      radio.stationJoined(address)
      reportMeshPeers()
    case .stationDisconnected(let address):
      radio.stationLeft(address)
      reportMeshPeers()
    case .pushButtonEnded, .pushButtonOverlap: radio.snapshot.isPushButtonPressed = false
    case .meshPeerRefused(let address):
      radio.report(fault: "\(address.text) does not join “\(plan.ssid)”: does it have the same passphrase?")
    case .meshRefused:
      failed(
        "the driver cannot start a mesh on \(plan.frequency) MHz: is the channel allowed, and free for this radio?")
    case .deviceFound, .findStopped, .groupStarted, .groupRemoved, .formationFailed, .full, .pushButtonRequested,
      .connected, .disconnected, .terminating, .other:
      break
    }
  }

  /// Lets a device join by WPS push button, as at any ordinary access point.
  func pushButton() {
    guard isThere else { return }
    radio.supplicant?.send(to: interface, "WPS_PBC") { [self] reply in
      radio.snapshot.isPushButtonPressed = reply.isOK && !hasEnded
    }
  }

  func checkLiveness() {
    guard isThere else { return }
    look { [self] reply in
      if isThere, !isPlanned(reply) { failed("the \(plan.noun) was removed") }
    }
  }

  func leave() {
    radio.leaveBridge(interface)
    if isMade {
      radio.supplicant?.sendLast("INTERFACE_REMOVE \(interface)")
    } else if let network {
      radio.supplicant?.sendLast(to: interface, "REMOVE_NETWORK \(network)")
    }
  }

  func end() {
    timer?.cancel()
    timer = nil
    isThere = false
    interface = ""
    radio.groupWent()
  }

  // MARK: - Creating the network

  private var hasEnded: Bool { timer == nil }

  /// The name of the created interface, truncated to the kernel's limit of 15 bytes.
  private var interfaceName: String {
    String(decoding: "\(plan.prefix)\(radio.options.interface)".utf8.prefix(15), as: UTF8.self)
  }

  private func defineOnOwnInterface() {
    let own = radio.options.interface
    if plan.isRadioShared { return refused("beside the group: its driver has no second interface") }
    radio.supplicant?.removeNetworks(named: Array(plan.ssid.utf8), of: own) { [self] hasOthers in
      if hasEnded { return }
      if !hasOthers { return define(own) }
      refused("beside the network that it is configured for")
    }
  }

  private func refused(_ reason: String) {
    failed("\(radio.options.interface) supports no \(plan.noun) \(reason)", isRefused: true)
  }

  private func define(_ interface: String) {
    self.interface = interface
    for setting in plan.interfaceSettings { radio.supplicant?.send(to: interface, "SET \(setting)") }
    let settings =
      [
        "ssid \(hexadecimal(Array(plan.ssid.utf8)))", "frequency \(plan.frequency)",
        // Limits the scan to this frequency, because a scan of all channels takes ten seconds.
        "scan_freq \(plan.frequency)",
      ] + plan.settings
    radio.supplicant?.addNetwork(to: interface, settings) { [self] network, reason in
      if hasEnded { return }
      guard let network else { return failed(reason) }
      self.network = network
      radio.supplicant?.send(to: interface, "SELECT_NETWORK \(network)")
      timer?.set(after: Self.lookTime)
    }
  }

  private func look(_ answered: @escaping (SupplicantReply) -> Void) {
    radio.supplicant?.send(to: interface, "STATUS") { [self] reply in
      if !hasEnded { answered(reply) }
    }
  }

  private func isPlanned(_ reply: SupplicantReply) -> Bool {
    func has(_ key: StaticString, _ value: String) -> Bool { reply.value(key).map { sameText($0, value) } ?? false }
    return has("mode", "\(plan.mode)") && has("wpa_state", "COMPLETED")
  }

  private func timedOut() {
    if interface.utf8.isEmpty || radio.loop.now >= giveUpAt {
      return failed("wpa_supplicant did not start the \(plan.noun) within \(Self.creationTime.milliseconds / 1000) s")
    }
    look { [self] reply in
      if isPlanned(reply) { started() } else { timer?.set(after: Self.lookTime) }
    }
  }

  private func started() {
    timer?.cancel()
    isThere = true
    let location = "on \(interface), \(plan.frequency) MHz"
    switch plan.kind {
    case .accessPoint:
      radio.becameOwner(
        of: plan.ssid, passphrase: plan.passphrase, frequency: UInt32(plan.frequency), on: interface)
      radio.report("no Wi-Fi Direct here: access point \(plan.ssid) \(location)")
    case .mesh:
      radio.snapshot.state = .member
      radio.snapshot.ssid = plan.ssid
      radio.snapshot.frequency = UInt32(plan.frequency)
      radio.groupCame(interface)
      radio.report("mesh “\(plan.ssid)” \(location)")
    }
  }

  private func reportMeshPeers() {
    switch plan.kind {
    case .accessPoint: break
    case .mesh: radio.report("mesh “\(plan.ssid)”: \(radio.snapshot.stations.count) mesh peers")
    }
  }

  /// Ends the network. `WiFiDirectRadio` schedules the next attempt.
  private func failed(_ reason: String, isRefused: Bool = false) {
    if hasEnded { return }
    leave()
    radio.failed(reason, plan.stateBefore, isRefused: isRefused)
  }
}
