import Bearer
import Board
import Journal
import Primitives

/// The configuration of a box, with one struct per section of `causeway.conf`. Each property has its default value.
///
/// `ConfigurationKeys` defines the syntax, and `config/causeway.conf` explains all keys.
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
  /// Warnings about accepted but unwise settings, one sentence each.
  public var warnings: [String] = []
  /// The keys in the file and their values as written, for example “[ip] port” and “41820”.
  var given: [(key: String, value: String)] = []

  public init() {}

  /// The keys whose values differ from the other configuration, or that only one of them contains. Each key appears
  /// once.
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

  /// The path of the daemon's control socket.
  public var controlSocketPath: String { node.runtimeDirectory + "/control.sock" }
  /// The path of the daemon's socket for applications.
  public var localSocketPath: String { node.runtimeDirectory + "/api.sock" }
  /// The path of the daemon's journal.
  public var journalPath: String { node.runtimeDirectory + "/journal" }
}

/// The section `[node]`.
public struct NodeSection {
  /// The display name: 1–63 bytes of UTF-8 without control characters. Empty until it is set from the host name.
  public var displayName = ""
  /// The service type: 1–15 of a–z, 0–9 and hyphen (RFC 6335, section 5.1).
  public var serviceType = "causeway"
  public var discoveryInfo: [DiscoveryPair] = []
  public var stateDirectory = "/var/lib/causeway"
  public var runtimeDirectory = "/run/causeway"
  /// Whether the node forwards frames of other nodes.
  public var isRelay = true
  /// The maximum number of links: 1–64.
  public var peersMax = 64
  public init() {}
}

/// The section `[trust]`.
public struct TrustSection {
  public var policy = TrustPolicy.open
  /// The directory of the authorities' certificates and revocation lists.
  public var anchors = "/etc/causeway/anchors"
  /// The nodes whose deny-lists are accepted: at most 4.
  public var operators: [NodeID] = []
  public init() {}
}

/// The section `[peer]`.
public struct PeerSection {
  /// Whether payloads between this node and a peer are encrypted end to end.
  public var encryption = EncryptionPreference.required
  public init() {}
}

/// The section `[applications]`.
public struct ApplicationsSection {
  /// Whether the daemon offers a socket to applications (docs/local-api.md).
  public var isEnabled = true
  /// The group whose members may connect, by name or number. If empty, the mode of the socket file decides.
  public var group = ""
  /// Service types that are reserved for the members of a group: at most `ServiceGroup.countMax`.
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

/// A key and value that other nodes see before they connect: a string of the DNS-SD TXT record (RFC 6763, 6.4).
public struct DiscoveryPair {
  public var key: String
  public var value: String
  public init(key: String, value: String) {
    self.key = key
    self.value = value
  }
}

/// The section `[ip]`.
public struct IPSection {
  /// The maximum number of interfaces, and of peers. It is the limit of the bearer.
  public static let entriesMax = 32
  public var isEnabled = true
  /// The interfaces to use; empty for all.
  public var interfaces: [String] = []
  public var port: UInt16 = 41820
  /// Nodes to dial in addition to discovered ones.
  public var peers: [StaticPeer] = []
  /// Whether 127.0.0.1 and ::1 are used too, for several nodes on one machine.
  public var usesLoopback = false
  public init() {}
}

/// The section `[bluetooth]`.
public struct BluetoothSection {
  public var isEnabled = true
  /// The adapters as configured; the box uses `adapters`.
  var adaptersGiven: [AdapterChoice] = []
  /// The adapters to use: 1 to `AdapterChoice.countMax`.
  public var adapters: [AdapterChoice] { adaptersGiven.isEmpty ? [.automatic] : adaptersGiven }
  /// The PSM of the LE L2CAP channel: 0x80–0xFF (Core Specification 5.4, Vol 3, Part A, 4.22).
  public var psm: UInt16 = 0xC1
  /// Whether Bluetooth classic and LE are used. At least one is.
  public var isClassic = false
  public var isLowEnergy = true
  /// The bridge that peers join over Bluetooth classic, "group" for the Wi-Fi group's network, or empty for none.
  public var networkBridge = ""
  /// Whether peers over Bluetooth join the network of the Wi-Fi group. The daemon creates a bridge for it.
  public var joinsGroup: Bool { networkBridge.utf8.elementsEqual("group".utf8) }
  public init() {}
}

/// The section `[wifi-direct]`.
public struct WiFiDirectSection {
  public var isEnabled = true
  public var mode = WiFiDirectRole.groupOwner
  public var interface = "wlan0"
  /// wpa_supplicant's global control socket.
  public var controlSocket = "/run/wpa_supplicant/global"
  /// The frequency in MHz; with 0, wpa_supplicant chooses.
  public var frequency: UInt16 = 0
  public var wps = PushButtonPolicy.always
  /// The name of the group; if empty, wpa_supplicant chooses.
  public var ssid = ""
  /// The WPA2 passphrase: 8–63 printable ASCII characters; if empty, wpa_supplicant chooses.
  public var passphrase = ""
  /// Whether a group owner assigns addresses by DHCP.
  public var servesDHCP = true
  /// Whether a group owner serves a status page in its group.
  public var hasStatusPage = true
  /// The prefix of a group owner's device name. A client joins only owners with this prefix.
  public var deviceNamePrefix = "Causeway"
  public init() {}
}

/// The section `[mesh]`.
public struct MeshSection {
  public var isEnabled = false
  public var interface = "wlan1"
  /// The mesh id: 1–32 bytes.
  public var ssid = ""
  /// The password for SAE: 8–63 printable ASCII characters.
  public var passphrase = ""
  /// The frequency in MHz.
  public var frequency: UInt16 = 2437
  /// Whether the radios forward for each other.
  public var isForwarding = true
  public init() {}
}

/// The section `[discovery]`.
public struct DiscoverySection {
  /// The DNS-SD responder; nil for no DNS-SD.
  public var dnsSD: ResponderChoice? = .automatic
  public init() {}
}

/// The section `[board]`.
public struct BoardSection {
  /// The status LED: a name in `/sys/class/leds`. Empty for none.
  public var statusLED = ""
  /// The GPIO line of a status light.
  public var statusPin: GPIOPin?
  /// The GPIO line of a button.
  public var buttonPin: GPIOPin?
  /// How long the button must be stable before an edge counts, in milliseconds.
  public var buttonDebounceMilliseconds: UInt32 = 20
  public init() {}
}

/// The section `[journal]`.
public struct JournalSection {
  /// The size of the ring in KiB: 16–65536. Each KiB holds 16 records.
  public var sizeKiB = 256
  public var level = Level.info
  public init() {}
}
