import Bearer
import BearerIP
import CSystem
import Primitives
import Reactor

/// The use of the radio as the owner of a Wi-Fi group. The owner creates the group, gives the group's interface an IP
/// address, and keeps WPS push button active if the options require this. This use ends when the group is removed.
///
/// The group is persistent, because only a persistent group has a configurable name and passphrase. Name and passphrase
/// stay the same after a restart, and with another radio.
final class GroupOwner: RadioActivity {
  /// The time limit for creating a group, including a scan for a free channel.
  static let creationTime = TimeSpan.seconds(15)
  /// The interval at which push button is activated again: its walk time of two minutes, less a margin (Wi-Fi Simple
  /// Configuration 2.0.8, 12.1).
  static let pushButtonTime = TimeSpan.seconds(110)
  /// The delay before push button is activated again after its end, for example because a device used it. `overlapTime`
  /// is the delay after two devices pushed at the same time.
  static let pushButtonAgainTime = TimeSpan.milliseconds(300)
  static let overlapTime = TimeSpan.seconds(5)

  private let radio: WiFiDirectRadio
  private var options: WiFiDirectOptions { radio.options }
  private var timer: Timer?
  private var pushButtonTimer: Timer?
  private var turns = PushButtonTurns()
  private var interface = ""
  private var network: String?

  init(_ radio: WiFiDirectRadio) { self.radio = radio }

  func begin() {
    timer = Timer(radio.loop) { [self] in
      failed("wpa_supplicant did not start the group within \(Self.creationTime.milliseconds / 1000) s")
    }
    pushButtonTimer = Timer(radio.loop) { [self] in
      if !turns.isTaken(at: radio.loop.now) { openPushButton() }
    }
    radio.snapshot.state = .creatingGroup
    timer?.set(after: Self.creationTime)
    define()
  }

  func received(_ message: SupplicantMessage) {
    switch message.event {
    case .groupStarted(let group):
      if group.isOwner, interface.utf8.isEmpty { started(group) }
    case .groupRemoved(let name, let reason):
      if !interface.utf8.isEmpty, sameText(name, interface) { removed(reason) }
    case .stationConnected(let address):
      if isOurs(message) { radio.stationJoined(address) }
    case .stationDisconnected(let address):
      if isOurs(message) { radio.stationLeft(address) }
    case .pushButtonRequested(let device):
      if options.pushButton == .always { admit(device) }
    case .pushButtonEnded:
      if isOurs(message) {
        turns.end()
        pushButtonEnded(again: Self.pushButtonAgainTime)
      }
    case .pushButtonOverlap:
      // During a turn, WPS reports an overlap for each other device that it refuses.
      if isOurs(message), !turns.isTaken(at: radio.loop.now) { pushButtonEnded(again: Self.overlapTime) }
    case .deviceFound, .findStopped, .formationFailed, .full, .connected, .disconnected, .terminating, .meshPeerRefused,
      .meshRefused, .other:
      break
    }
  }

  func pushButton() {
    turns.end()
    openPushButton(isPressed: true)
  }

  /// Activates push button. `isPressed`: whether a person requested the activation; if false, the call renews the
  /// permanent activation.
  private func openPushButton(isPressed: Bool = false) {
    guard !interface.utf8.isEmpty, options.pushButton != .never else { return }
    radio.supplicant?.send(to: interface, "WPS_PBC") { [self] reply in
      // The reply FAIL-PBC-OVERLAP means that two devices pushed within the last two minutes.
      radio.snapshot.isPushButtonPressed = isPressed && reply.isOK && !hasEnded
      if isPressed && !reply.isOK { radio.report("WPS is unavailable now: " + reply.text) }
      guard options.pushButton == .always else { return }
      pushButtonTimer?.set(after: reply.isOK ? Self.pushButtonTime : Self.overlapTime)
    }
  }

  /// Begins a turn of `device`: activates push button for this device alone. If the turn ends and no device has joined,
  /// push button is activated for all devices again as soon as WPS permits that. Until then only devices that send a
  /// provision discovery request can join.
  private func admit(_ device: MACAddress) {
    guard !interface.utf8.isEmpty, turns.request(by: device, at: radio.loop.now) else { return }
    pushButtonTimer?.set(after: PushButtonTurns.turnTime)
    radio.supplicant?.send(to: interface, "WPS_PBC p2p_dev_addr=\(device.text)") { [self] reply in
      if reply.isOK { return }
      turns.end()
      pushButtonTimer?.set(after: Self.overlapTime)
    }
  }

  private func pushButtonEnded(again pause: TimeSpan) {
    radio.snapshot.isPushButtonPressed = false
    if options.pushButton == .always { pushButtonTimer?.set(after: pause) }
  }

  func checkLiveness() {
    guard !interface.utf8.isEmpty else { return }
    let asked = interface
    radio.supplicant?.send(to: asked, "STATUS") { [self] reply in
      guard sameText(asked, interface) else { return }
      if reply.value("mode") == nil { removed("it no longer exists") }
    }
  }

  func leave() {
    if !interface.utf8.isEmpty { radio.supplicant?.sendLast("P2P_GROUP_REMOVE \(interface)") }
    if let network { radio.supplicant?.sendLast(to: radio.deviceInterface, "REMOVE_NETWORK \(network)") }
  }

  func end() {
    timer?.cancel()
    pushButtonTimer?.cancel()
    timer = nil
    pushButtonTimer = nil
    interface = ""
    radio.groupWent()
  }

  // MARK: - Creating the group

  private func define() {
    let device = radio.deviceInterface
    let name = groupName()
    radio.supplicant?.removeNetworks(named: name, of: device) { [self] _ in
      if hasEnded { return }
      let settings = [
        "ssid \(hexadecimal(name))", "psk \"\(options.usedPassphrase)\"", "mode 3", "disabled 2", "key_mgmt WPA-PSK",
        "proto RSN", "pairwise CCMP", "auth_alg OPEN",
      ]
      radio.supplicant?.addNetwork(to: device, settings) { [self] network, reason in
        if hasEnded { return }
        if network == nil { return failed(reason) }
        self.network = network
        add()
      }
    }
  }

  /// The group's name: the configured one, or one derived from the node's hint (the first 8 bytes of its id). The name
  /// must begin with "DIRECT-" and two characters (Wi-Fi P2P 1.7, 3.2.1).
  private func groupName() -> [UInt8] {
    if options.ssid.utf8.isEmpty {
      let digits = Array("abcdefghijkmnpqrstuvwxyz23456789".utf8)
      let pair = [5, 0].map { digits[Int(radio.hint >> $0 & 31)] }
      return Array("DIRECT-".utf8) + pair + Array("-\(options.deviceNamePrefix)".utf8)
    }
    if options.ssid.utf8.starts(with: "DIRECT-".utf8) { return Array(options.ssid.utf8) }
    return Array("DIRECT-cw-\(options.ssid)".utf8.prefix(32))
  }

  /// Starts the group. Without a configured frequency, the band is 2.4 GHz, where clients search first and find the
  /// group within a second. If starting on this band fails, because a station connection keeps the radio on another
  /// band, wpa_supplicant chooses the frequency.
  private func add() {
    if options.frequency != 0 { return add(" freq=\(options.frequency)") { [self] in refused($0) } }
    add(" freq=2") { [self] _ in add("") { [self] in refused($0) } }
  }

  private func add(_ frequency: String, refused: @escaping (SupplicantReply) -> Void) {
    guard let network else { return }
    radio.supplicant?.send(to: radio.deviceInterface, "P2P_GROUP_ADD persistent=\(network)\(frequency)") {
      [self] reply in
      if !reply.isOK, !hasEnded { refused(reply) }
    }
  }

  private func refused(_ reply: SupplicantReply) {
    failed("wpa_supplicant cannot create a group on \(options.interface): \(reply.text)")
  }

  private func started(_ group: StartedGroup) {
    interface = group.interface
    timer?.cancel()
    let passphrase = group.passphrase.utf8.isEmpty ? options.usedPassphrase : group.passphrase
    radio.becameOwner(of: group.ssid, passphrase: passphrase, frequency: group.frequency, on: interface)
    radio.report("group \(group.ssid) on \(interface), \(group.frequency) MHz")
    if options.pushButton == .always { openPushButton() }
  }

  private func removed(_ reason: String) { failed("the group was removed: \(reason)") }

  private var hasEnded: Bool { timer == nil }

  private func failed(_ reason: String) {
    if !hasEnded { radio.failed(reason, .creatingGroup) }
  }

  private func isOurs(_ message: SupplicantMessage) -> Bool {
    // Without a global socket, the p2p-dev socket reports the stations of the group.
    sameText(message.interface, interface) || sameText(message.interface, radio.deviceInterface)
  }
}
