import Bearer
import Journal
import Primitives

/// One key of the configuration.
///
/// `accepted` is a text that describes the accepted values, and is the end of an error text.
struct ConfigurationKey {
  let section: StaticString
  let name: StaticString
  let accepted: StaticString
  /// Whether the key may be on several lines. The values of these lines are combined.
  var isRepeatable = false
  /// Whether the value is secret. A secret value is shown neither in an error nor in a support bundle.
  var isSecret = false
  /// Stores the value in the configuration. Returns false if the value is not accepted.
  let set: (inout Configuration, ByteString) -> Bool
}

/// All keys of the configuration. Keys of the same section are consecutive.
var configurationKeys: [ConfigurationKey] {
  nodeKeys + peerKeys + applicationsKeys + trustKeys + ipKeys + bluetoothKeys + wifiDirectKeys + meshKeys
    + discoveryAndBoardKeys + [
      ConfigurationKey(section: "journal", name: "size", accepted: "a number of KiB from 16 to 65536") { to, text in
        store(&to.journal.sizeKiB, text.number(in: 16...65536).map { Int($0) })
      },
      ConfigurationKey(section: "journal", name: "level", accepted: Level.accepted) { to, text in
        store(&to.journal.level, Level.parse(text))
      },
    ]
}

private let yesOrNo: StaticString = "yes or no"
private let absolutePath: StaticString = "an absolute path of at most 80 bytes"
private let shortName: StaticString = "1 to 32 bytes of UTF-8 without control characters"
private let wpaPassphrase: StaticString = "8 to 63 printable ASCII characters"

private var nodeKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "node", name: "display-name", accepted: DisplayNameSyntax.accepted) { to, text in
      store(&to.node.displayName, DisplayNameSyntax.parse(text.bytes))
    },
    ConfigurationKey(section: "node", name: "service-type", accepted: ServiceTypeSyntax.accepted) { to, text in
      store(&to.node.serviceType, ServiceTypeSyntax.parse(text.bytes))
    },
    ConfigurationKey(
      section: "node", name: "discovery-info", accepted: DiscoveryPair.accepted, isRepeatable: true,
      set: addDiscoveryInfo),
    ConfigurationKey(section: "node", name: "state-directory", accepted: absolutePath) { to, text in
      store(&to.node.stateDirectory, path(text))
    },
    ConfigurationKey(section: "node", name: "runtime-directory", accepted: absolutePath) { to, text in
      store(&to.node.runtimeDirectory, path(text))
    },
    ConfigurationKey(section: "node", name: "relay", accepted: yesOrNo) { to, text in
      store(&to.node.isRelay, bool(text))
    },
    ConfigurationKey(section: "node", name: "peers-max", accepted: "a number from 1 to 64") { to, text in
      store(&to.node.peersMax, text.number(in: 1...64).map { Int($0) })
    },
  ]
}

private var trustKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "trust", name: "policy", accepted: "open, first-use or ca") { to, text in
      store(&to.trust.policy, choice(text, ("open", .open), ("first-use", .firstUse), ("ca", .authority)))
    },
    ConfigurationKey(section: "trust", name: "anchors", accepted: absolutePath) { to, text in
      store(&to.trust.anchors, path(text))
    },
    ConfigurationKey(section: "trust", name: "operators", accepted: NodeIDSyntax.accepted, isRepeatable: true) {
      to, text in
      append(&to.trust.operators, text, NodeIDSyntax.parse) && to.trust.operators.count <= 4
    },
  ]
}

private var peerKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "peer", name: "encryption", accepted: "required, optional or none") { to, text in
      store(
        &to.peer.encryption,
        choice(text, ("required", .required), ("optional", .optional), ("none", EncryptionPreference.none)))
    }
  ]
}

private var applicationsKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "applications", name: "enabled", accepted: yesOrNo) { to, text in
      store(&to.applications.isEnabled, bool(text))
    },
    ConfigurationKey(section: "applications", name: "group", accepted: "the name or number of a group") { to, text in
      store(&to.applications.group, parseGroup(text))
    },
    ConfigurationKey(
      section: "applications", name: "service-groups",
      accepted: "service types with a numeric group id, such as chat:1001, at most 64", isRepeatable: true
    ) { to, text in
      append(&to.applications.serviceGroups, text, ServiceGroup.parse)
        && to.applications.serviceGroups.count <= ServiceGroup.countMax
    },
  ]
}

private var ipKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "ip", name: "enabled", accepted: yesOrNo) { to, text in
      store(&to.ip.isEnabled, bool(text))
    },
    ConfigurationKey(
      section: "ip", name: "interfaces", accepted: "names of network interfaces, separated by commas, at most 32",
      isRepeatable: true
    ) { to, text in
      append(&to.ip.interfaces, text, parseInterface) && to.ip.interfaces.count <= IPSection.entriesMax
    },
    ConfigurationKey(section: "ip", name: "port", accepted: "a number from 1 to 65535") { to, text in
      store(&to.ip.port, text.number(in: 1...65535).map { UInt16($0) })
    },
    ConfigurationKey(section: "ip", name: "peers", accepted: StaticPeer.accepted, isRepeatable: true) { to, text in
      append(&to.ip.peers, text, StaticPeer.parse) && to.ip.peers.count <= IPSection.entriesMax
    },
    ConfigurationKey(section: "ip", name: "loopback", accepted: yesOrNo) { to, text in
      store(&to.ip.usesLoopback, bool(text))
    },
  ]
}

private var bluetoothKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "bluetooth", name: "enabled", accepted: yesOrNo) { to, text in
      store(&to.bluetooth.isEnabled, bool(text))
    },
    ConfigurationKey(section: "bluetooth", name: "adapter", accepted: AdapterChoice.accepted, isRepeatable: true) {
      to, text in
      append(&to.bluetooth.adaptersGiven, text, AdapterChoice.parse) && areDistinct(to.bluetooth.adaptersGiven)
    },
    ConfigurationKey(section: "bluetooth", name: "psm", accepted: "a number from 0x80 to 0xFF") { to, text in
      store(&to.bluetooth.psm, text.number(in: 0x80...0xFF).map { UInt16($0) })
    },
    ConfigurationKey(section: "bluetooth", name: "classic", accepted: "yes, no or only") { to, text in
      to.bluetooth.isLowEnergy = !text.equals("only")
      return store(&to.bluetooth.isClassic, to.bluetooth.isLowEnergy ? bool(text) : true)
    },
    ConfigurationKey(section: "bluetooth", name: "nap", accepted: "group, or the name of a bridge") { to, text in
      store(&to.bluetooth.networkBridge, parseInterface(text))
    },
  ]
}

private var wifiDirectKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "wifi-direct", name: "enabled", accepted: yesOrNo) { to, text in
      store(&to.wifiDirect.isEnabled, bool(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "mode", accepted: "group-owner or client") { to, text in
      store(&to.wifiDirect.mode, choice(text, ("group-owner", .groupOwner), ("client", .client)))
    },
    ConfigurationKey(section: "wifi-direct", name: "interface", accepted: "the name of a wireless interface") {
      to, text in
      store(&to.wifiDirect.interface, parseInterface(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "control-socket", accepted: absolutePath) { to, text in
      store(&to.wifiDirect.controlSocket, path(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "frequency", accepted: "auto, or MHz from 2412 to 7125") {
      to, text in
      if text.equals("auto") { return store(&to.wifiDirect.frequency, 0) }
      return store(&to.wifiDirect.frequency, frequency(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "wps", accepted: "always, button or off") { to, text in
      store(&to.wifiDirect.wps, choice(text, ("always", .always), ("button", .onRequest), ("off", .never)))
    },
    ConfigurationKey(section: "wifi-direct", name: "ssid", accepted: shortName) { to, text in
      store(&to.wifiDirect.ssid, parseShortName(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "passphrase", accepted: wpaPassphrase, isSecret: true) { to, text in
      store(&to.wifiDirect.passphrase, parsePassphrase(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "dhcp", accepted: yesOrNo) { to, text in
      store(&to.wifiDirect.servesDHCP, bool(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "status-page", accepted: yesOrNo) { to, text in
      store(&to.wifiDirect.hasStatusPage, bool(text))
    },
    ConfigurationKey(section: "wifi-direct", name: "device-name-prefix", accepted: shortName) { to, text in
      store(&to.wifiDirect.deviceNamePrefix, parseShortName(text))
    },
  ]
}

private var meshKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "mesh", name: "enabled", accepted: yesOrNo) { to, text in
      store(&to.mesh.isEnabled, bool(text))
    },
    ConfigurationKey(section: "mesh", name: "interface", accepted: "the name of a wireless interface") { to, text in
      store(&to.mesh.interface, parseInterface(text))
    },
    ConfigurationKey(section: "mesh", name: "ssid", accepted: shortName) { to, text in
      store(&to.mesh.ssid, parseShortName(text))
    },
    ConfigurationKey(section: "mesh", name: "passphrase", accepted: wpaPassphrase, isSecret: true) { to, text in
      store(&to.mesh.passphrase, parsePassphrase(text))
    },
    ConfigurationKey(section: "mesh", name: "frequency", accepted: "MHz from 2412 to 7125") { to, text in
      store(&to.mesh.frequency, frequency(text))
    },
    ConfigurationKey(section: "mesh", name: "forwarding", accepted: yesOrNo) { to, text in
      store(&to.mesh.isForwarding, bool(text))
    },
  ]
}

private var discoveryAndBoardKeys: [ConfigurationKey] {
  [
    ConfigurationKey(section: "discovery", name: "dns-sd", accepted: "auto, daemon, embedded or off") { to, text in
      store(
        &to.discovery.dnsSD,
        choice(text, ("auto", .automatic), ("daemon", .daemon), ("embedded", .embedded), ("off", nil)))
    },
    ConfigurationKey(section: "board", name: "status-led", accepted: "the name of a directory in /sys/class/leds") {
      to, text in
      store(&to.board.statusLED, parseLED(text))
    },
    ConfigurationKey(section: "board", name: "status-gpio", accepted: PinSyntax.light) { to, text in
      PinSyntax.store(&to.board.statusPin, text, takesBias: false)
    },
    ConfigurationKey(section: "board", name: "button-gpio", accepted: PinSyntax.button) { to, text in
      PinSyntax.store(&to.board.buttonPin, text, takesBias: true)
    },
    ConfigurationKey(
      section: "board", name: "button-debounce", accepted: "a number of milliseconds from 5 to 200"
    ) { to, text in
      store(&to.board.buttonDebounceMilliseconds, text.number(in: 5...200).map { UInt32($0) })
    },
  ]
}

extension Level {
  public static let accepted: StaticString = "fault, error, warning, notice, info or debug"

  /// Parses the name of a level. Returns nil if the name is unknown.
  public static func parse(_ text: ByteString) -> Level? {
    choice(
      text, ("fault", .fault), ("error", .error), ("warning", .warning), ("notice", .notice), ("info", .info),
      ("debug", .debug))
  }
}

private func store<Value>(_ target: inout Value, _ value: Value?) -> Bool {
  guard let value else { return false }
  target = value
  return true
}

private func append<Value>(_ target: inout [Value], _ text: ByteString, _ parse: (ByteString) -> Value?) -> Bool {
  for part in text.commaParts {
    guard let value = parse(part) else { return false }
    target.append(value)
  }
  return true
}

func choice<Value>(_ text: ByteString, _ choices: (StaticString, Value)...) -> Value? {
  for (word, value) in choices where text.equals(word) { return value }
  return nil
}

private func bool(_ text: ByteString) -> Bool? { choice(text, ("yes", true), ("no", false)) }

private func frequency(_ text: ByteString) -> UInt16? { text.number(in: 2412...7125).map { UInt16($0) } }

private func parseShortName(_ text: ByteString) -> String? {
  (1...32).contains(text.bytes.count) ? DisplayNameSyntax.printable(text.bytes) : nil
}

private func parsePassphrase(_ text: ByteString) -> String? {
  let isPrintable = text.bytes.allSatisfy { (0x20...0x7E).contains($0) }
  return isPrintable && (8...63).contains(text.bytes.count) ? text.string : nil
}

/// Parses an absolute path of at most 80 bytes. With this limit, the path of a socket in the directory fits into
/// sockaddr_un (108 bytes).
private func path(_ text: ByteString) -> String? {
  guard text.hasPrefix("/"), text.bytes.count <= 80 else { return nil }
  let isDirectory = text.bytes.count > 1 && text.bytes.last == UInt8(ascii: "/")
  return DisplayNameSyntax.printable(isDirectory ? text.bytes.dropLast() : text.bytes)
}

/// Parses the name of an LED: 1–63 bytes (`LED_MAX_NAME_SIZE`), possibly with colons, such as “beaglebone:green:usr0”.
private func parseLED(_ text: ByteString) -> String? {
  guard (1...63).contains(text.bytes.count), !text.equals("."), !text.equals("..") else { return nil }
  return text.bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") } ? text.string : nil
}

/// Parses the name or number of a user group. The syntax is that of groupadd(8): 1 to 32 letters, digits, “_”, “-” and
/// “.”, without a leading “-”.
private func parseGroup(_ text: ByteString) -> String? {
  guard (1...32).contains(text.bytes.count), text.bytes.first != UInt8(ascii: "-") else { return nil }
  let isLegal = text.bytes.allSatisfy { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
    default: false
    }
  }
  return isLegal ? text.string : nil
}

private func addDiscoveryInfo(_ to: inout Configuration, _ text: ByteString) -> Bool {
  for part in text.commaParts {
    guard let pair = DiscoveryPair.parse(part) else { return false }
    for other in to.node.discoveryInfo where ByteString(other.key).equals(ByteString(pair.key)) { return false }
    to.node.discoveryInfo.append(pair)
  }
  var bytes = 0
  for pair in to.node.discoveryInfo { bytes += pair.key.utf8.count + pair.value.utf8.count + 2 }
  return bytes <= DiscoveryPair.totalBytesMax
}
