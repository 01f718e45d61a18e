import Bearer
import Journal
import Primitives

/// Everything that can be set about a box: one struct per section of `causeway.conf`, each property with
/// its default. `ConfigurationKeys` says how each is written; `config/causeway.conf` explains them all.
public struct Configuration {
  public var node = NodeSection()
  public var trust = TrustSection()
  public var peer = PeerSection()
  public var ip = IPSection()
  public var bluetooth = BluetoothSection()
  public var wifiDirect = WiFiDirectSection()
  public var discovery = DiscoverySection()
  public var board = BoardSection()
  public var journal = JournalSection()
  /// What is accepted but unwise, one sentence each.
  public var warnings: [String] = []
  /// The keys that the file gives, as it writes them: “[ip] port” and the value.
  var given: [(key: String, value: String)] = []

  public init() {}

  /// The keys that the other file gives otherwise, or that only one of the two gives; each once.
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

  /// The unix socket of the daemon that runs with this configuration.
  public var controlSocketPath: String { node.runtimeDirectory + "/control.sock" }
  /// The journal of the daemon that runs with this configuration.
  public var journalPath: String { node.runtimeDirectory + "/journal" }
}

/// `[node]`
public struct NodeSection {
  /// What people see: 1–63 bytes of UTF-8 without control characters. Empty until the host's name is read.
  public var displayName = ""
  /// RFC 6335, section 5.1: 1–15 of a–z, 0–9 and hyphen.
  public var serviceType = "causeway"
  public var discoveryInfo: [DiscoveryPair] = []
  public var stateDirectory = "/var/lib/causeway"
  public var runtimeDirectory = "/run/causeway"
  /// Whether frames of others are passed on.
  public var isRelay = true
  /// How many neighbours may be linked at once: 1–64.
  public var peersMax = 64
  public init() {}
}

/// `[trust]`
public struct TrustSection {
  public var policy = TrustMode.open
  /// The directory with authorities' certificates and revocation lists.
  public var anchors = "/etc/causeway/anchors"
  /// Nodes whose deny-lists count here: at most 4.
  public var operators: [NodeID] = []
  public init() {}
}

/// Which keys are welcome.
public enum TrustMode {
  /// Every key that is proven.
  case open
  /// Every key; its name is its own from then on.
  case firstUse
  /// Keys with a certificate of one of the authorities.
  case authority
}

/// `[peer]`
public struct PeerSection {
  /// Whether what is said between this node and a peer is sealed from those who carry it.
  public var encryption = Encryption.required
  public init() {}
}

/// What a node wants of the words between itself and a peer.
public enum Encryption {
  case required
  case optional
  case none
}

/// One key and value that others see before they connect (a string of the DNS-SD TXT record, RFC 6763, 6.4).
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
  public var isEnabled = true
  /// Interfaces to use; none named means all.
  public var interfaces: [String] = []
  public var port: UInt16 = 41820
  /// Nodes to dial whether or not discovery sees them.
  public var peers: [StaticPeer] = []
  /// Use 127.0.0.1 and ::1 too, for several nodes on one machine.
  public var usesLoopback = false
  public init() {}
}

/// A node at a known address.
public struct StaticPeer {
  /// Its scope is 0: look up `interface` when dialling, since interfaces come and go.
  public var endpoint: IPEndpoint
  /// The interface of a link-local address, else empty.
  public var interface: String
  /// The address as it was written.
  public var text: String
}

/// `[bluetooth]`
public struct BluetoothSection {
  public var isEnabled = true
  public var adapter = BluetoothAdapter.automatic
  /// The LE L2CAP channel's PSM: 0x80–0xFF (Core Specification 5.4, Vol 3, Part A, 4.22).
  public var psm: UInt16 = 0xC1
  public init() {}
}

/// Which Bluetooth adapter the box uses.
public enum BluetoothAdapter {
  /// The first one that can do LE.
  case automatic
  /// hciN
  case index(UInt16)
  /// The 48-bit address, most significant byte first.
  case address(UInt64)
}

/// `[wifi-direct]`
public struct WiFiDirectSection {
  public var isEnabled = true
  public var mode = WiFiDirectMode.groupOwner
  public var interface = "wlan0"
  /// wpa_supplicant's global control socket.
  public var controlSocket = "/run/wpa_supplicant/global"
  /// MHz; 0 leaves it to wpa_supplicant.
  public var frequency: UInt16 = 0
  public var wps = WPSMode.always
  /// Empty leaves it to wpa_supplicant.
  public var ssid = ""
  /// WPA2 passphrase, 8–63 printable ASCII; empty leaves it to wpa_supplicant.
  public var passphrase = ""
  /// The group owner's device name begins with it, and a client joins only such owners.
  public var deviceNamePrefix = "Causeway"
  public init() {}
}

/// Whether the box makes the Wi-Fi Direct group or joins one.
public enum WiFiDirectMode {
  case groupOwner
  case client
}

/// When joiners may come in by WPS push button.
public enum WPSMode {
  case always
  case button
  case off
}

/// `[discovery]`
public struct DiscoverySection {
  public var dnsSD = DNSSDMode.automatic
  public init() {}
}

/// `[board]`
public struct BoardSection {
  /// The LED that shows how the box is: a name in `/sys/class/leds`. Empty for none.
  public var statusLED = ""
  public init() {}
}

/// Who speaks multicast DNS for the box.
public enum DNSSDMode {
  /// avahi-daemon where one answers, else our own responder.
  case automatic
  case daemon
  case embedded
  case off
}

/// `[journal]`
public struct JournalSection {
  /// KiB of the ring: 16–65536; 16 records each.
  public var sizeKiB = 256
  public var level = Level.info
  public init() {}
}
