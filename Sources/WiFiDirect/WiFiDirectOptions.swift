import Bearer
import BearerIP
import CSystem

/// The configuration of Wi-Fi Direct, or of a mesh.
public struct WiFiDirectOptions: Sendable {
  public var role = WiFiDirectRole.groupOwner
  /// The mesh that the radio takes part in instead of a group; nil for a group. A mesh requires `ssid` and
  /// `passphrase`. A mesh ignores `role`, and all options for devices that join.
  public var mesh: MeshOptions?
  /// The kernel's name of the wireless interface.
  public var interface = "wlan0"
  /// wpa_supplicant's global control socket. If this socket does not exist, the interface's own sockets in the same
  /// directory are tried.
  public var controlSocket = "/run/wpa_supplicant/global"
  /// The directory in which this process creates its end of the control socket. wpa_supplicant must see the directory
  /// under the same path, so a private /tmp does not work. If empty, the directory is /run/causeway if that is
  /// writable, otherwise /tmp.
  public var clientDirectory = ""
  /// The frequency in MHz; with 0, wpa_supplicant chooses.
  public var frequency: UInt16 = 0
  public var pushButton = PushButtonPolicy.always
  /// The network name: 1 to 32 bytes. If empty, an owner derives the name from its hint (the first 8 bytes of its node
  /// id), and a client joins by push button. A group's name gets the prefix "DIRECT-" unless it already has the prefix
  /// (Wi-Fi P2P 1.7, 3.2.1).
  public var ssid = ""
  /// The passphrase: 8 to 63 printable ASCII characters. If empty, an owner uses `passphraseOfNode`, and a client with
  /// an `ssid` joins an open network.
  public var passphrase = ""
  /// The default passphrase of an owner, which is derived from the node's key, and so changes only with the key.
  public var passphraseOfNode = ""
  /// The prefix of this node's P2P device name: at most 15 bytes. Unless `peer` is set, a client joins only groups
  /// whose owner's name has this prefix.
  public var deviceNamePrefix = "Causeway"
  /// The P2P device address of the only owner whose group a client joins; nil for any owner with the name prefix.
  public var peer: MACAddress?
  /// The TCP port on which the group owner's node accepts links. With 0, a client finds the node only by discovery.
  public var port: UInt16 = IPBearerSettings.portDefault
  /// Whether the interface of an owner's group is a port of `GroupBridge`. The bridge then has the group's IP address.
  public var isBridged = false
  /// The maximum number of stations in the group. The Wi-Fi firmware of a Raspberry Pi is known to halt at the eighth
  /// station.
  public var stationsMax: UInt8 = 7

  public init() {}

  /// The group owner's IPv4 address, in a /24 network; Android expects this address. The owner assigns the addresses
  /// from `firstAddressText` to `lastAddressText` to clients.
  public static let ownerAddress: UInt32 = 0xC0A8_3101
  public static let ownerAddressText = "192.168.49.1"
  static let maskText = "255.255.255.0"
  static let firstAddressText = "192.168.49.10"
  static let lastAddressText = "192.168.49.200"
  static let prefixLength: UInt8 = 24
  /// The remaining addresses of the network, for stations that use DHCP.
  public static let leasedAddresses: ClosedRange<UInt32> = 0xC0A8_31C9...0xC0A8_31FE

  /// The fault of an invalid setting in one sentence, or nil if all are valid.
  var problem: String? {
    if !Self.isName(interface, bytesMax: 15) {
      return "\"\(Self.shown(interface))\" is not an interface: write a name such as wlan0"
    }
    if !Self.isName(deviceNamePrefix, bytesMax: DeviceName.prefixBytesMax) {
      return "the device name prefix must have 1 to \(DeviceName.prefixBytesMax) letters, digits and hyphens"
    }
    if ssid.utf8.count > 32 { return "the SSID has \(ssid.utf8.count) bytes: the maximum is 32" }
    if !passphrase.utf8.isEmpty {
      let isPrintable = passphrase.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
      if !isPrintable || passphrase.utf8.count < 8 || passphrase.utf8.count > 63 {
        return "the passphrase must have 8 to 63 printable ASCII characters"
      }
    }
    if mesh != nil, ssid.utf8.isEmpty || passphrase.utf8.isEmpty {
      return "a mesh needs an SSID and a passphrase: set both"
    }
    if role == .client, !passphrase.utf8.isEmpty, ssid.utf8.isEmpty {
      return "a passphrase without an SSID names no network to join: set both"
    }
    return nil
  }

  /// The passphrase of an owner: the configured one, or the node's default.
  var usedPassphrase: String { passphrase.utf8.isEmpty ? passphraseOfNode : passphrase }

  /// `clientDirectory` or its default.
  var usedClientDirectory: String {
    if !clientDirectory.utf8.isEmpty { return clientDirectory }
    return access("/run/causeway", W_OK) == 0 ? "/run/causeway" : "/tmp"
  }

  private static func isName(_ text: String, bytesMax: Int) -> Bool {
    !text.utf8.isEmpty && text.utf8.count <= bytesMax
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
  }

  private static func shown(_ text: String) -> String { String(decoding: text.utf8.prefix(32), as: UTF8.self) }
}
