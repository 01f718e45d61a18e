import Bearer
import BearerIP

/// Prepares wpa_supplicant for one attempt, with one command after the other. This object makes sure that
/// wpa_supplicant controls the radio's interface, and applies the settings for Wi-Fi Direct.
///
/// The closures that receive the replies retain this object. The preparation ends with a call of the radio's `prepared`
/// or `failed`, unless the radio has abandoned it.
final class Preparation {
  private let radio: WiFiDirectRadio
  private var options: WiFiDirectOptions { radio.options }
  private var isAdded = false

  init(_ radio: WiFiDirectRadio) { self.radio = radio }

  func run() {
    radio.supplicant?.send("INTERFACES") { [self] reply in
      guard radio.isCurrent(self) else { return }
      let interfaces = reply.lines
      if contains(interfaces, options.interface) {
        // A mesh needs no settings for Wi-Fi Direct. A group on the same radio belongs to another `WiFiDirectRadio`.
        if options.mesh != nil { return radio.prepared(deviceInterface: options.interface) }
        removeLeftGroups(interfaces)
        let device = p2pDeviceInterface(options.interface)
        checkDevice(contains(interfaces, device) ? device : options.interface)
      } else {
        addInterface()
      }
    }
  }

  private func addInterface() {
    guard let supplicant = radio.supplicant else { return }
    guard supplicant.isGlobal, !isAdded else {
      return unavailable(
        "wpa_supplicant does not manage \(options.interface): start it with -i \(options.interface)")
    }
    isAdded = true
    // The arguments: name, configuration file, driver, control directory. The group's interface inherits the control
    // directory.
    supplicant.send("INTERFACE_ADD \(options.interface)\t\tnl80211\t\t") { [self] reply in
      if reply.isOK {
        run()
      } else {
        unavailable(
          "wpa_supplicant cannot use \(options.interface): is the radio present, unblocked and unmanaged?")
      }
    }
  }

  /// Removes groups that an earlier run left, because they would conflict with a new group.
  private func removeLeftGroups(_ interfaces: [String]) {
    let prefix = "p2p-\(options.interface)-"
    for name in interfaces where name.utf8.starts(with: prefix.utf8) {
      radio.supplicant?.send("P2P_GROUP_REMOVE \(name)")
    }
  }

  private func checkDevice(_ device: String) {
    if options.role == .client, !options.ssid.utf8.isEmpty { return radio.prepared(deviceInterface: device) }
    radio.supplicant?.send(to: device, "STATUS") { [self] reply in
      if reply.value("p2p_device_address") == nil, options.role == .groupOwner, radio.supplicant?.isGlobal ?? false {
        if radio.isCurrent(self) { radio.prepared(deviceInterface: options.interface, hasWiFiDirect: false) }
      } else if reply.value("p2p_device_address") == nil {
        unavailable(
          "\(options.interface) or its wpa_supplicant does not support Wi-Fi Direct (p2p_disabled, or the driver)")
      } else {
        set(device)
      }
    }
  }

  private func set(_ device: String) {
    var settings = [
      "SET device_name \(DeviceName.make(prefix: options.deviceNamePrefix, hint: radio.hint))",
      // The device type is network infrastructure, access point (Wi-Fi Simple Configuration 2.0.8, table 41).
      "SET device_type 6-0050F204-1",
      "SET config_methods virtual_push_button",
      "SET persistent_reconnect 0",
    ]
    if options.role == .groupOwner {
      settings += [
        "SET max_num_sta \(options.stationsMax)",
        "SET ip_addr_go \(WiFiDirectOptions.ownerAddressText)",
        "SET ip_addr_mask \(WiFiDirectOptions.maskText)",
        "SET ip_addr_start \(WiFiDirectOptions.firstAddressText)",
        "SET ip_addr_end \(WiFiDirectOptions.lastAddressText)",
      ]
    } else {
      // The seconds after which a client leaves a group whose owner is gone. An owner that was absent briefly returns
      // before this time. The default of wpa_supplicant is 10.
      settings.append("SET p2p_group_idle 4")
    }
    for setting in settings {
      radio.supplicant?.send(to: device, setting) { [self] reply in
        if !reply.isOK { radio.report("wpa_supplicant does not accept \"\(setting)\": \(reply.text)") }
      }
    }
    // wpa_supplicant answers commands in order, so this reply follows all others.
    let band = options.frequency > 0 && options.frequency < 3000 ? "5000-6000" : ""
    radio.supplicant?.send("P2P_SET disallow_freq \(band)") { [self] _ in
      if radio.isCurrent(self) { radio.prepared(deviceInterface: device) }
    }
  }

  private func unavailable(_ reason: String) {
    if radio.isCurrent(self) { radio.failed(reason, .unavailable, isRefused: true) }
  }

  private func contains(_ names: [String], _ name: String) -> Bool { names.contains { sameText($0, name) } }
}
