import BearerIP
import CSystem
import Primitives
import Reactor

/// An ordinary WPA2 network in the place of a group, where the radio or its wpa_supplicant has no Wi-Fi Direct: phones join it by
/// name and passphrase. It is on an interface of its own, so that the radio may be a station elsewhere; where the driver has only
/// one, on that one, unless wpa_supplicant has a network for it.
final class AccessPoint: RadioActivity {
  /// The longest time until it is there.
  static let creationTime = TimeSpan.seconds(15)
  /// Between two questions whether it is there.
  static let lookTime = TimeSpan.milliseconds(300)
  /// A channel of 2.4 GHz that all phones know, in MHz.
  static let frequencyDefault: UInt16 = 2437

  private let radio: WiFiDirectRadio
  private var options: WiFiDirectOptions { radio.options }
  private var timer: Timer?
  private var giveUpAt = Instant.never
  /// Made by this, or the radio's own; empty while there is neither.
  private var interface = ""
  private var isMade = false
  private var isThere = false
  private var network: String?

  init(_ radio: WiFiDirectRadio) { self.radio = radio }

  func begin() {
    timer = Timer(radio.loop) { [self] in timedOut() }
    radio.snapshot.state = .creatingGroup
    giveUpAt = radio.loop.now + Self.creationTime
    timer?.set(giveUpAt)
    // One of an earlier run of ours.
    radio.supplicant?.send("INTERFACE_REMOVE \(interfaceName)")
    // Name, configuration file, driver, control directory, parameters, bridge, and that it is to be made.
    radio.supplicant?.send("INTERFACE_ADD \(interfaceName)\t\tnl80211\t\t\t\tcreate\tap") { [self] reply in
      if hasEnded { return }
      isMade = reply.isOK
      if reply.isOK { define(interfaceName) } else { defineOnOwnInterface() }
    }
  }

  func received(_ message: SupplicantMessage) {
    guard !interface.utf8.isEmpty, sameText(message.interface, interface) else { return }
    switch message.event {
    case .stationConnected(let address): radio.stationJoined(address)
    case .stationDisconnected(let address): radio.stationLeft(address)
    case .pushButtonEnded, .pushButtonOverlap: radio.snapshot.isPushButtonPressed = false
    case .deviceFound, .findStopped, .groupStarted, .groupRemoved, .formationFailed, .full, .pushButtonRequested,
      .connected, .disconnected, .terminating, .other:
      break
    }
  }

  /// Devices that know WPS join as an ordinary network's do.
  func pushButton() {
    guard isThere else { return }
    radio.supplicant?.send(to: interface, "WPS_PBC") { [self] reply in
      radio.snapshot.isPushButtonPressed = reply.isOK && !hasEnded
    }
  }

  func checkLiveness() {
    guard isThere else { return }
    look { [self] reply in
      if isThere, !isAccessPoint(reply) { failed("the access point was removed") }
    }
  }

  func leave() {
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

  // MARK: - Making it

  private var hasEnded: Bool { timer == nil }

  /// The kernel's names have at most 15 bytes.
  private var interfaceName: String { String(decoding: "ap-\(options.interface)".utf8.prefix(15), as: UTF8.self) }

  private var ssid: String {
    options.ssid.utf8.isEmpty ? DeviceName.make(prefix: options.deviceNamePrefix, hint: radio.hint) : options.ssid
  }

  private var frequency: UInt16 { options.frequency == 0 ? Self.frequencyDefault : options.frequency }

  private func defineOnOwnInterface() {
    radio.supplicant?.removeNetworks(named: Array(ssid.utf8), of: options.interface) { [self] hasOthers in
      if hasEnded { return }
      if !hasOthers { return define(options.interface) }
      failed("\(options.interface) takes no access point beside the network that it is configured for", isRefused: true)
    }
  }

  private func define(_ interface: String) {
    self.interface = interface
    radio.supplicant?.send(to: interface, "SET max_num_sta \(options.stationsMax)")
    let settings = [
      "ssid \(hexadecimal(Array(ssid.utf8)))", "psk \"\(options.usedPassphrase)\"", "mode 2", "key_mgmt WPA-PSK",
      "proto RSN", "pairwise CCMP", "group CCMP", "frequency \(frequency)",
      // Spares a scan of all channels, which takes ten seconds.
      "scan_freq \(frequency)",
    ]
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

  private func isAccessPoint(_ reply: SupplicantReply) -> Bool {
    func has(_ key: StaticString, _ value: String) -> Bool { reply.value(key).map { sameText($0, value) } ?? false }
    return has("mode", "AP") && has("wpa_state", "COMPLETED")
  }

  private func timedOut() {
    if interface.utf8.isEmpty || radio.loop.now >= giveUpAt {
      return failed("wpa_supplicant did not start the access point within \(Self.creationTime.milliseconds / 1000) s")
    }
    look { [self] reply in
      if isAccessPoint(reply) { started() } else { timer?.set(after: Self.lookTime) }
    }
  }

  private func started() {
    timer?.cancel()
    isThere = true
    radio.becameOwner(
      of: ssid, passphrase: options.usedPassphrase, frequency: UInt32(frequency), on: interface)
    radio.report("no Wi-Fi Direct here: access point \(ssid) on \(interface), \(frequency) MHz")
  }

  /// The radio ends this, and makes another one when it is time.
  private func failed(_ reason: String, isRefused: Bool = false) {
    if hasEnded { return }
    leave()
    radio.failed(reason, .creatingGroup, isRefused: isRefused)
  }
}
