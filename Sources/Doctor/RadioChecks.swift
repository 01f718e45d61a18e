import BearerBluetooth
import CSystem
import Configuration
import Netlink

extension Doctor {
  func bluetooth() -> [Finding] {
    var findings: [Finding] = []
    let adapters = machine.names("/sys/class/bluetooth").filter { !$0.utf8.contains(UInt8(ascii: ":")) }
    if adapters.isEmpty {
      findings.append(
        Finding(
          "bluetooth", .wrong, "there is no adapter",
          remedy: "plug one in, see “dmesg | grep -i bluetooth” for its firmware, or set [bluetooth] enabled = no"))
    }
    let blocked = rfkill("bluetooth", "Bluetooth")
    findings += blocked
    if let process = machine.process(named: "bluetoothd") {
      findings.append(
        Finding(
          "bluetoothd", .wrong, "bluetoothd runs (process \(process)): it and Causeway cannot share an adapter",
          remedy: "systemctl disable --now bluetooth"))
    }
    let answers = radios.adapters ?? []
    let used = configuration.bluetooth
    if used.isLowEnergy && !answers.isEmpty && !answers.contains(where: { $0.hasLowEnergy }) {
      findings.append(
        Finding(
          "bluetooth", .wrong, "\(joined(answers.map { $0.name })): no Bluetooth Low Energy",
          remedy: "use an adapter of Bluetooth 4.0 or later, or set [bluetooth] classic = only"))
    }
    if used.isClassic { findings += bluetoothClassic(answers) + network() }
    if findings.isEmpty {
      let kinds: StaticString =
        !used.isClassic ? "Low Energy" : used.isLowEnergy ? "Low Energy and classic" : "classic only"
      let capacity = "\(kinds), at most \(BluetoothSettings().linksMax) links"
      findings.append(Finding("bluetooth", .good, joined(adapters) + (answers.isEmpty ? "" : ": \(capacity)")))
    }
    return findings
  }

  private func bluetoothClassic(_ answers: [AdapterAbilities]) -> [Finding] {
    if !answers.isEmpty && !answers.contains(where: { $0.hasClassic }) {
      return [
        Finding(
          "bluetooth", .wrong, "\(joined(answers.map { $0.name })): no Bluetooth classic",
          remedy: "use an adapter that supports both, or set [bluetooth] classic = no")
      ]
    }
    if radios.hasRFCOMM { return [] }
    return [
      Finding(
        "bluetooth", .wrong, "the kernel has no RFCOMM, which [bluetooth] classic needs",
        remedy: "run “modprobe rfcomm”, or set [bluetooth] classic = no")
    ]
  }

  /// Checks the bridge of IP over Bluetooth ([bluetooth] nap), and that the kernel supports BNEP.
  private func network() -> [Finding] {
    let bridge = configuration.bluetooth.networkBridge
    let isThere = configuration.bluetooth.joinsGroup || machine.exists("/sys/class/net/" + bridge + "/bridge")
    if bridge.utf8.isEmpty || radios.hasBNEP && isThere { return [] }
    return [
      Finding(
        "bluetooth", .wrong,
        radios.hasBNEP
          ? "[bluetooth] nap does not name a bridge" : "the kernel has no BNEP, which [bluetooth] nap needs",
        remedy: radios.hasBNEP
          ? "run “ip link add NAME type bridge”; docs/operations/radios.md, “IP over Bluetooth”"
          : "run “modprobe bnep”, or remove nap")
    ]
  }

  func wifiDirect() -> [Finding] {
    let interfaces = machine.names("/sys/class/net").filter { machine.exists("/sys/class/net/\($0)/phy80211") }
    if interfaces.isEmpty {
      return [
        Finding(
          "wifi-direct", .wrong, "there is no Wi-Fi interface",
          remedy: "see “dmesg | grep -i firmware”, or set [wifi-direct] enabled = no")
      ]
    }
    var findings = rfkill("wlan", "Wi-Fi")
    let chosen = configuration.wifiDirect.interface
    if !machine.exists("/sys/class/net/\(chosen)") {
      findings.append(
        Finding(
          "wifi-direct", .wrong, "there is no interface \(chosen)",
          remedy: "set [wifi-direct] interface to one of: \(joined(interfaces))"))
    }
    let lacking = ability(of: chosen)
    if let lacking { findings.append(lacking) }
    if let finding = supplicant() { findings.append(finding) }
    if let process = machine.process(named: "NetworkManager") {
      findings.append(
        Finding(
          "networkmanager", .note, "NetworkManager runs (process \(process)): it must not manage p2p-*",
          remedy: "[keyfile] unmanaged-devices=interface-name:p2p-* in /etc/NetworkManager/conf.d/causeway.conf"))
    }
    if let domain = radios.regulatoryDomain,
      domain.utf8.elementsEqual("00".utf8) || domain.utf8.elementsEqual("99".utf8)
    {
      findings.append(
        Finding(
          "regulatory", .note, "no country is set: 5 GHz is disabled, and 2.4 GHz has less power",
          remedy: "set country=DE, or yours, in wpa_supplicant's configuration; or run “iw reg set DE”"))
    }
    if !findings.contains(where: { $0.state == .wrong }) {
      let ability = radios.wireless == nil || lacking != nil ? "" : ": \(chosen) supports Wi-Fi Direct"
      let stations = radios.wireless?.stationsMax.map { ", at most \($0) stations" } ?? ""
      findings.insert(Finding("wifi-direct", .good, joined(interfaces) + ability + stations), at: 0)
    }
    return findings
  }

  /// Checks the radio of the Wi-Fi mesh. If [wifi-direct] is enabled, the check of [wifi-direct] already reports rfkill
  /// and wpa_supplicant, so this check omits them.
  func mesh() -> [Finding] {
    var findings = configuration.wifiDirect.isEnabled ? [] : rfkill("wlan", "Wi-Fi") + [supplicant()].compactMap { $0 }
    let chosen = configuration.mesh.interface
    if !machine.exists("/sys/class/net/\(chosen)/phy80211") {
      findings.append(
        Finding(
          "mesh", .wrong, "there is no Wi-Fi interface \(chosen)",
          remedy: "set [mesh] interface to one of those in /sys/class/ieee80211, or enabled = no"))
    } else if let wireless = radios.mesh, !wireless.canBeMeshPoint {
      findings.append(
        Finding(
          "mesh", .wrong, "\(chosen) cannot join a mesh: its driver does not support it",
          remedy: "use another adapter (“iw list”, Supported interface modes: mesh point)"))
    } else {
      findings.append(Finding("mesh", .good, radios.mesh == nil ? chosen : "\(chosen) supports mesh point"))
    }
    return findings
  }

  /// Checks that the interface's driver supports the configured role, group owner or client. Nil if the driver supports
  /// the role, or if the kernel gave no information.
  private func ability(of interface: String) -> Finding? {
    guard let wireless = radios.wireless else { return nil }
    let isOwner: Bool
    switch configuration.wifiDirect.mode {
    case .groupOwner: isOwner = true
    case .client: isOwner = false
    }
    if isOwner ? wireless.canBeGroupOwner : wireless.canBeGroupClient { return nil }
    let remedy = "use another adapter (“iw list”, Supported interface modes: P2P-GO, P2P-client)"
    if isOwner {
      return Finding(
        "wifi-direct", .note,
        "\(interface) cannot be the owner of a Wi-Fi Direct group: it runs an access point instead, joined only by passphrase",
        remedy: "for push button \(remedy)")
    }
    return Finding(
      "wifi-direct", .wrong,
      "\(interface) cannot be a client of a Wi-Fi Direct group: its driver does not support it", remedy: remedy)
  }

  private func supplicant() -> Finding? {
    let path = configuration.wifiDirect.controlSocket
    switch machine.connectError(path, SOCK_DGRAM) {
    case 0: return nil
    case ENOENT, ECONNREFUSED:
      let runs = machine.process(named: "wpa_supplicant") != nil
      return Finding(
        "wpa-supplicant", .wrong,
        runs ? "wpa_supplicant has no control socket at \(path)" : "wpa_supplicant does not run",
        remedy: "start it with -g \(path) -G netdev; or set [wifi-direct] control-socket to its path")
    case EACCES:
      return Finding(
        "wpa-supplicant", .note, "this user may not use \(path)",
        remedy: "run this as root; the daemon's user must be in the socket's group (-G netdev)")
    case let code:
      return Finding("wpa-supplicant", .wrong, "\(path): \(String(cString: strerror(code)))")
    }
  }

  /// Checks the kernel's radio switches (Linux, Documentation/driver-api/rfkill.rst).
  private func rfkill(_ type: StaticString, _ name: StaticString) -> [Finding] {
    var findings: [Finding] = []
    for entry in machine.names("/sys/class/rfkill") {
      let path = "/sys/class/rfkill/\(entry)"
      guard machine.holds("\(path)/type", type) else { continue }
      let device = String(decoding: machine.contents("\(path)/name") ?? [], as: UTF8.self)
      if machine.holds("\(path)/hard", "1") {
        findings.append(
          Finding(
            "rfkill", .wrong, "\(name) (\(device)) is off by a hardware switch",
            remedy: "turn it on; on a Raspberry Pi look for disable-bt and disable-wifi in /boot/firmware/config.txt"))
      } else if machine.holds("\(path)/soft", "1") {
        findings.append(
          Finding("rfkill", .wrong, "\(name) (\(device)) is blocked", remedy: "rfkill unblock \(type)"))
      }
    }
    return findings
  }
}

func joined(_ names: [String]) -> String {
  var text = ""
  for name in names { text += text.utf8.isEmpty ? name : ", \(name)" }
  return text
}
