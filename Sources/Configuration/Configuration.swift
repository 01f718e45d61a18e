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
  /// Warnings about settings that are accepted but unwise. Each warning is one sentence.
  public var warnings: [String] = []
  /// The keys in the file and their values as written by the operator, for example “[ip] port” and “41820”.
  var given: [(key: String, value: String)] = []

  public init() {}

  /// The keys whose values differ between this configuration and `other`, or that only one of the two contains. Each
  /// key is returned once.
  public func keysChanged(in other: Configuration) -> [String] {
    var changed: [String] = []
    for (key, _) in given + other.given {
      let isEqual = values(of: key).elementsEqual(other.values(of: key)) { ByteString($0).equals(ByteString($1)) }
      if !isEqual && !changed.contains(where: { ByteString($0).equals(ByteString(key)) }) { changed.append(key) }
    }
    return changed
  }

  private func values(of key: String) -> [String] {
    given.filter { ByteString($0.key).equals(ByteString(key)) }.map { $0.value }
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
  /// The display name: 1–63 bytes of UTF-8 without control characters. If the file contains no name, `load` sets the
  /// display name to the host name.
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
  /// The ids of the operators' nodes, whose deny-lists are accepted: at most 4.
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
  /// The name or number of the user group whose members may connect to the socket. If the group is empty, the mode of
  /// the socket file decides.
  public var group = ""
  /// The service types that are reserved for the members of a user group: at most `ServiceGroup.countMax`.
  public var serviceGroups: [ServiceGroup] = []
  public init() {}
}

/// A service type, and the numeric id of the user group whose members may use the type.
public struct ServiceGroup: Equatable {
  public static let countMax = 64
  public var type: String
  public var group: UInt32
  public init(type: String, group: UInt32) {
    self.type = type
    self.group = group
  }
}

/// A key and a value that other nodes see before connecting. A pair is a string of the DNS-SD TXT record (RFC 6763,
/// section 6.4).
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
  /// The maximum number of interfaces, and of peers. The IP bearer has the same limit.
  public static let entriesMax = 32
  public var isEnabled = true
  /// The names of the interfaces to use. If the list is empty, all interfaces are used.
  public var interfaces: [String] = []
  public var port: UInt16 = 41820
  /// The nodes that are dialled in addition to discovered nodes.
  public var peers: [StaticPeer] = []
  /// Whether 127.0.0.1 and ::1 are also used, so that several nodes on one machine can connect.
  public var usesLoopback = false
  public init() {}
}

/// The section `[bluetooth]`.
public struct BluetoothSection {
  public var isEnabled = true
  /// The adapters that the file names. If the file names none, this list is empty, while `adapters` is not.
  var adaptersGiven: [AdapterChoice] = []
  /// The adapters that the box uses: 1 to `AdapterChoice.countMax`.
  public var adapters: [AdapterChoice] { adaptersGiven.isEmpty ? [.automatic] : adaptersGiven }
  /// The PSM of the LE L2CAP channel: 0x80–0xFF (Core Specification 5.4, Vol 3, Part A, section 4.22).
  public var psm: UInt16 = 0xC1
  /// Whether Bluetooth classic is used, and whether Bluetooth LE is used. At least one of the two is true.
  public var isClassic = false
  public var isLowEnergy = true
  /// The bridge to which peers over Bluetooth classic are connected (IP over Bluetooth). "group" means the network of
  /// the Wi-Fi group. If the name is empty, there is no IP over Bluetooth.
  public var networkBridge = ""
  /// Whether peers over Bluetooth are connected to the network of the Wi-Fi group. In this case the daemon creates a
  /// bridge.
  public var joinsGroup: Bool { networkBridge.utf8.elementsEqual("group".utf8) }
  public init() {}
}

/// The section `[wifi-direct]`.
public struct WiFiDirectSection {
  public var isEnabled = true
  public var mode = WiFiDirectRole.groupOwner
  public var interface = "wlan0"
  /// The path of wpa_supplicant's global control socket.
  public var controlSocket = "/run/wpa_supplicant/global"
  /// The frequency of the group in MHz. If the frequency is 0, wpa_supplicant chooses a frequency.
  public var frequency: UInt16 = 0
  public var wps = PushButtonPolicy.always
  /// The SSID of the group. If the SSID is empty, wpa_supplicant chooses an SSID.
  public var ssid = ""
  /// The WPA2 passphrase: 8–63 printable ASCII characters. If the passphrase is empty, wpa_supplicant chooses a
  /// passphrase.
  public var passphrase = ""
  /// Whether a group owner assigns IP addresses by DHCP.
  public var servesDHCP = true
  /// Whether a group owner serves the status page in its group.
  public var hasStatusPage = true
  /// The prefix of a group owner's Wi-Fi Direct device name. A client joins only the groups of owners whose names have
  /// this prefix.
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
  /// The frequency of the mesh in MHz.
  public var frequency: UInt16 = 2437
  /// Whether the radios of the mesh forward frames for each other (IEEE 802.11s).
  public var isForwarding = true
  public init() {}
}

/// The section `[discovery]`.
public struct DiscoverySection {
  /// The DNS-SD responder, or nil if DNS-SD is off.
  public var dnsSD: ResponderChoice? = .automatic
  public init() {}
}

/// The section `[board]`.
public struct BoardSection {
  /// The status LED: the name of a directory in `/sys/class/leds`, or empty if there is no status LED.
  public var statusLED = ""
  /// The GPIO line of a status light, or nil if there is none.
  public var statusPin: GPIOPin?
  /// The GPIO line of a button, or nil if there is none.
  public var buttonPin: GPIOPin?
  /// The debounce period of the button, in milliseconds. A change of its level is reported when the level was stable
  /// for this period.
  public var buttonDebounceMilliseconds: UInt32 = 20
  public init() {}
}

/// The section `[journal]`.
public struct JournalSection {
  /// The size of the journal's ring buffer in KiB: 16–65536. Each KiB contains 16 records.
  public var sizeKiB = 256
  public var level = Level.info
  public init() {}
}
