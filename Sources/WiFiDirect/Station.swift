import Bearer
import BearerIP
import Primitives
import Reactor

/// Joins a group as an ordinary Wi-Fi station, by the group's name and passphrase. Radios without Wi-Fi Direct need
/// this way to join, and so do groups whose push button nobody can reach. wpa_supplicant reconnects by itself, and
/// discovery on the IP network finds the owner.
final class Station: RadioActivity {
  /// The delay before the network is configured again, after wpa_supplicant refused its settings.
  static let retryTime = TimeSpan.seconds(10)

  private let radio: WiFiDirectRadio
  private var options: WiFiDirectOptions { radio.options }
  private var network: String?
  private var timer: Timer?

  init(_ radio: WiFiDirectRadio) { self.radio = radio }

  func begin() {
    timer = Timer(radio.loop) { [self] in define() }
    define()
  }

  func received(_ message: SupplicantMessage) {
    guard sameText(message.interface, options.interface) else { return }
    switch message.event {
    case .connected: joined()
    case .disconnected: left()
    case .full: radio.report(fault: "\(options.ssid) is full: it accepts no more stations")
    case .deviceFound, .findStopped, .groupStarted, .groupRemoved, .formationFailed, .pushButtonRequested,
      .pushButtonEnded, .pushButtonOverlap, .stationConnected, .stationDisconnected, .terminating, .meshPeerRefused,
      .meshRefused, .other:
      break
    }
  }

  func pushButton() {}

  func checkLiveness() {}

  func leave() {
    if let network { radio.supplicant?.sendLast(to: options.interface, "REMOVE_NETWORK \(network)") }
  }

  func end() {
    timer?.cancel()
    timer = nil
    radio.groupWent()
  }

  private func define() {
    radio.snapshot.state = .joining
    var settings = ["ssid \(hexadecimal(Array(options.ssid.utf8)))", "scan_ssid 1"]
    if options.passphrase.utf8.isEmpty {
      settings.append("key_mgmt NONE")
    } else {
      settings += ["psk \"\(options.passphrase)\"", "key_mgmt WPA-PSK"]
    }
    if options.frequency != 0 { settings.append("scan_freq \(options.frequency)") }
    radio.supplicant?.addNetwork(to: options.interface, settings) { [self] network, reason in
      if timer == nil { return }
      self.network = network
      guard let network else { return failed(reason) }
      radio.supplicant?.send(to: options.interface, "ENABLE_NETWORK \(network)")
    }
  }

  private func failed(_ reason: String) {
    radio.report(fault: reason)
    timer?.set(after: Self.retryTime)
  }

  private func joined() {
    radio.snapshot.state = .member
    radio.snapshot.ssid = options.ssid
    radio.snapshot.passphrase = options.passphrase
    radio.snapshot.frequency = UInt32(options.frequency)
    radio.groupCame(options.interface)
    radio.report("station of \(options.ssid) on \(options.interface)")
  }

  private func left() {
    if radio.snapshot.state != .member { return }
    radio.groupWent()
    radio.snapshot.state = .joining
    radio.report("\(options.ssid) is out of reach; wpa_supplicant searches for it")
  }
}
