import Bearer
import Board
import Journal
import Primitives

/// The configuration: one struct per section of `causeway.conf`, each property with its default. `ConfigurationKeys`
/// defines the syntax; `config/causeway.conf` explains all keys.
public struct Configuration {
  public var node = NodeSection()
  public var trust = TrustSection()
  public var peer = PeerSection()
  public var applications = ApplicationsSection()
  public var ip = IPSection()
  public var bluetooth = BluetoothSection()
  public var wifiDirect = WiFiDirectSection()
  public var mesh = MeshSection()
  public var discovery = DiscoverySection()
  public var board = BoardSection()
  public var journal = JournalSection()
  /// Accepted but unwise settings, one sentence each.
  public var warnings: [String] = []
  /// The keys in the file and their values, as written: “[ip] port” and the value.
  var given: [(key: String, value: String)] = []

  public init() {}

  /// The keys with another value in the other configuration, or given in only one of them; each once.
  public func keysChanged(in other: Configuration) -> [String] {
    var changed: [String] = []
    for (key, _) in given + other.given {
      let isEqual = values(of: key).elementsEqual(other.values(of: key)) { Text($0).equals(Text($1)) }
      if !isEqual && !changed.contains(where: { Text($0).equals(Text(key)) }) { changed.append(key) }
    }
    return changed
  }

  private func values(of key: String) -> [String] {
    given.filter { Text($0.key).equals(Text(key)) }.map { $0.value }
  }

  /// The control socket of a daemon with this configuration.
  public var controlSocketPath: String { node.runtimeDirectory + "/control.sock" }
  /// The socket of the local API of a daemon with this configuration.
  public var localSocketPath: String { node.runtimeDirectory + "/api.sock" }
  /// The journal of a daemon with this configuration.
  public var journalPath: String { node.runtimeDirectory + "/journal" }
}

/// `[node]`
public struct NodeSection {
  /// The name that people see: 1–63 bytes of UTF-8 without control characters. Empty until the host's name is read.
  public var displayName = ""
  /// RFC 6335, section 5.1: 1–15 of a–z, 0–9 and hyphen.
  public var serviceType = "causeway"
  public var discoveryInfo: [DiscoveryPair] = []
  public var stateDirectory = "/var/lib/causeway"
  public var runtimeDirectory = "/run/causeway"
  /// Whether frames of others are forwarded.
  public var isRelay = true
  /// Limit of links at once: 1–64.
  public var peersMax = 64
  public init() {}
}

/// `[trust]`
public struct TrustSection {
  public var policy = TrustPolicy.open
  /// The directory with authorities' certificates and revocation lists.
  public var anchors = "/etc/causeway/anchors"
  /// Nodes whose deny-lists are accepted: at most 4.
  public var operators: [NodeID] = []
  public init() {}
}

/// `[peer]`
public struct PeerSection {
  /// Whether payloads between this node and a peer are encrypted end to end.
  public var encryption = EncryptionPreference.required
  public init() {}
}

/// `[applications]`
public struct ApplicationsSection {
  /// Whether there is a socket for applications (docs/local-api.md).
  public var isEnabled = true
  /// The group whose members may connect, by name or number. Empty: whoever the socket file's mode lets in.
  public var group = ""
  /// Service types that only the members of a group may use, at most `ServiceGroup.countMax`.
  public var serviceGroups: [ServiceGroup] = []
  public init() {}
}

/// A service type, and the numeric id of the group that may use it.
public struct ServiceGroup: Equatable {
  public static let countMax = 64
  public var type: String
  public var group: UInt32
  public init(type: String, group: UInt32) {
    self.type = type
    self.group = group
  }
}

/// A key and value that others see before they connect (a string of the DNS-SD TXT record, RFC 6763, 6.4).
public struct DiscoveryPair {
  public var key: String
  public var value: String
  public init(key: String, value: String) {
    self.key = key
    self.value = value
  }
}

/// `[ip]`
public struct IPSection {
  /// The most interfaces, and the most peers: the bearer uses no more.
  public static let entriesMax = 32
  public var isEnabled = true
  /// Interfaces to use; empty for all.
  public var interfaces: [String] = []
  public var port: UInt16 = 41820
  /// Nodes to dial in addition to discovered ones.
  public var peers: [StaticPeer] = []
  /// Also use 127.0.0.1 and ::1, for several nodes on one machine.
  public var usesLoopback = false
  public init() {}
}

/// `[bluetooth]`
public struct BluetoothSection {
  public var isEnabled = true
  /// As written; the box uses `adapters`.
  var adaptersGiven: [AdapterChoice] = []
  /// 1 to `AdapterChoice.countMax`.
  public var adapters: [AdapterChoice] { adaptersGiven.isEmpty ? [.automatic] : adaptersGiven }
  /// The LE L2CAP channel's PSM: 0x80–0xFF (Core Specification 5.4, Vol 3, Part A, 4.22).
  public var psm: UInt16 = 0xC1
  /// Whether Bluetooth classic is used, and whether LE is; one of them is.
  public var isClassic = false
  public var isLowEnergy = true
  /// The bridge that peers may join over Bluetooth classic, or "group"; empty for none.
  public var networkBridge = ""
  /// Whether they join the network of the Wi-Fi group, by a bridge of the daemon's own.
  public var joinsGroup: Bool { networkBridge.utf8.elementsEqual("group".utf8) }
  public init() {}
}

/// `[wifi-direct]`
public struct WiFiDirectSection {
  public var isEnabled = true
  public var mode = WiFiDirectRole.groupOwner
  public var interface = "wlan0"
  /// wpa_supplicant's global control socket.
  public var controlSocket = "/run/wpa_supplicant/global"
  /// MHz; 0: wpa_supplicant chooses.
  public var frequency: UInt16 = 0
  public var wps = PushButtonPolicy.always
  /// Empty: wpa_supplicant chooses.
  public var ssid = ""
  /// WPA2 passphrase, 8–63 printable ASCII characters; empty: wpa_supplicant chooses.
  public var passphrase = ""
  /// Whether a group owner gives those in its group addresses by DHCP.
  public var servesDHCP = true
  /// Whether a group owner shows a status page to those in its group.
  public var hasStatusPage = true
  /// The group owner's device name begins with it, and a client joins only such owners.
  public var deviceNamePrefix = "Causeway"
  public init() {}
}

/// `[mesh]`
public struct MeshSection {
  public var isEnabled = false
  public var interface = "wlan1"
  /// The mesh id: 1–32 bytes.
  public var ssid = ""
  /// The password of SAE, 8–63 printable ASCII characters.
  public var passphrase = ""
  /// MHz
  public var frequency: UInt16 = 2437
  /// Whether the radios forward for each other.
  public var isForwarding = true
  public init() {}
}

/// `[discovery]`
public struct DiscoverySection {
  /// Nil: no DNS-SD.
  public var dnsSD: ResponderChoice? = .automatic
  public init() {}
}

/// `[board]`
public struct BoardSection {
  /// The status LED: a name in `/sys/class/leds`. Empty for none.
  public var statusLED = ""
  /// A status light at a GPIO line.
  public var statusPin: GPIOPin?
  /// A button at a GPIO line.
  public var buttonPin: GPIOPin?
  /// How long the button has to be still before an edge counts.
  public var buttonDebounceMilliseconds: UInt32 = 20
  public init() {}
}

/// `[journal]`
public struct JournalSection {
  /// Size of the ring in KiB: 16–65536; each KiB holds 16 records.
  public var sizeKiB = 256
  public var level = Level.info
  public init() {}
}
