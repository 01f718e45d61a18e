import Bearer
import BearerIP
import CSystem

/// The configuration of Wi-Fi Direct, or of a mesh.
public struct WiFiDirectOptions: Sendable {
  public var role = WiFiDirectRole.groupOwner
  /// A mesh instead of a group: `role` and all about devices that join do not count, name and passphrase are needed.
  public var mesh: MeshOptions?
  /// The kernel's name of the wireless interface.
  public var interface = "wlan0"
  /// wpa_supplicant's global control socket. If it does not exist, the interface's own sockets in the same directory
  /// are tried.
  public var controlSocket = "/run/wpa_supplicant/global"
  /// The directory of the client's end of the control socket. wpa_supplicant must see it under the same path, so a
  /// private /tmp does not work. Empty: /run/causeway if it is writable, otherwise /tmp.
  public var clientDirectory = ""
  /// MHz; 0: wpa_supplicant chooses.
  public var frequency: UInt16 = 0
  public var pushButton = PushButtonPolicy.always
  /// 1 to 32 bytes. "DIRECT-" is prepended to a group's name unless it begins with that (Wi-Fi P2P 1.7, 3.2.1). Empty:
  /// the name is derived from the hint.
  public var ssid = ""
  /// 8 to 63 printable ASCII characters. Empty: an owner takes `passphraseOfNode`; a client joins by push button.
  public var passphrase = ""
  /// The same as long as the node has its key.
  public var passphraseOfNode = ""
  /// At most 15 bytes. The owner's device name begins with it, and a client joins only such groups.
  public var deviceNamePrefix = "Causeway"
  /// A client joins this owner only.
  public var peer: MACAddress?
  /// The TCP port of the group owner's node; 0: only discovery finds it.
  public var port: UInt16 = IPBearerSettings.portDefault
  /// Whether an owner's group is a port of `GroupBridge`, which has the group's address then.
  public var isBridged = false
  /// The most stations in the group. A Raspberry Pi's firmware is known to halt at the eighth.
  public var stationsMax: UInt8 = 7

  public init() {}

  /// The group owner's address (which Android expects), a /24; and the range that it assigns.
  public static let ownerAddress: UInt32 = 0xC0A8_3101
  public static let ownerAddressText = "192.168.49.1"
  static let maskText = "255.255.255.0"
  static let firstAddressText = "192.168.49.10"
  static let lastAddressText = "192.168.49.200"
  static let prefixLength: UInt8 = 24
  /// What is left of the network for stations that ask by DHCP.
  public static let leasedAddresses: ClosedRange<UInt32> = 0xC0A8_31C9...0xC0A8_31FE

  /// One sentence about an invalid setting; nil when all are valid.
  var problem: String? {
    if !Self.isName(interface, bytesMax: 15) {
      return "\"\(Self.shown(interface))\" is no interface: write a name such as wlan0"
    }
    if !Self.isName(deviceNamePrefix, bytesMax: DeviceName.prefixBytesMax) {
      return "the device name prefix takes 1 to \(DeviceName.prefixBytesMax) letters, digits and hyphens"
    }
    if ssid.utf8.count > 32 { return "the SSID has \(ssid.utf8.count) bytes: 32 is the most" }
    if !passphrase.utf8.isEmpty {
      let isPrintable = passphrase.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
      if !isPrintable || passphrase.utf8.count < 8 || passphrase.utf8.count > 63 {
        return "the passphrase takes 8 to 63 printable ASCII characters"
      }
    }
    if mesh != nil, ssid.utf8.isEmpty || passphrase.utf8.isEmpty {
      return "a mesh takes an SSID and a passphrase: set both"
    }
    if role == .client, !passphrase.utf8.isEmpty, ssid.utf8.isEmpty {
      return "a passphrase without an SSID names no network to join: set both"
    }
    return nil
  }

  /// `passphrase`, or the node's own.
  var usedPassphrase: String { passphrase.utf8.isEmpty ? passphraseOfNode : passphrase }

  /// `clientDirectory`, or its default.
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
