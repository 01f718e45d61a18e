import Bearer
import CAvahi
import Primitives

/// The service that this node publishes by DNS-SD (RFC 6763), and the interfaces where the node publishes and browses.
public struct DiscoverySettings: Sendable {
  /// The maximum length of a service instance name, in bytes of UTF-8 (RFC 6763, section 4.1.1).
  public static let nameBytesMax = 63
  /// The maximum length of one TXT string, "key=value", in bytes (RFC 6763, section 6.1).
  public static let txtStringBytesMax = 255
  /// The maximum number of strings in a TXT record. This number of strings of 255 bytes each still fits into one packet
  /// with the other records.
  public static let txtStringsMax = 8

  /// The service type: the names of service and transport, in the form that RFC 6335 registers.
  public var serviceType = "_causeway._tcp"
  /// The TCP port on which this node accepts links.
  public var port: UInt16
  /// Key and value of each TXT string. A value that is too long is truncated between two characters.
  public var txt: [(key: String, value: String)]
  /// The service instance name. The instance name is derived from the node's key and not from its display name, so that
  /// two nodes have different names.
  public var instanceName: String
  /// The names of the interfaces on which to publish and browse; empty for all interfaces.
  public var interfaces: [String] = []

  /// Which multicast DNS responder discovery uses.
  public var responder = ResponderChoice.automatic

  public init(port: UInt16, txt: [(key: String, value: String)], instanceName: String) {
    self.port = port
    self.txt = txt
    self.instanceName = instanceName
  }

  /// The service of a Causeway node, with the node's id as the instance name. The TXT record has the keys `id`, `v`
  /// (the version of the record) and `name`. The TXT record also has `relay=no` if the node does not forward for
  /// others.
  public init(node: NodeID, port: UInt16, displayName: String, relays: Bool = true) {
    let id = hexadecimal(node)
    let leaf: [(key: String, value: String)] = relays ? [] : [("relay", "no")]
    self.init(port: port, txt: [("id", id), ("v", "1"), ("name", displayName)] + leaf, instanceName: id)
  }
}

/// The node id as 32 lower-case hexadecimal digits.
func hexadecimal(_ node: NodeID) -> String {
  var digits: [UInt8] = []
  for index in 0..<NodeID.byteCount {
    for nibble in [node.byte(index) >> 4, node.byte(index) & 15] {
      digits.append(nibble < 10 ? 0x30 + nibble : 0x61 + nibble - 10)
    }
  }
  return String(decoding: digits, as: UTF8.self)
}

/// The TXT string "key=value", truncated to `txtStringBytesMax` bytes. Empty for an invalid key: a key is printable
/// ASCII without "=" (RFC 6763, section 6.4).
func txtString(key: String, value: String) -> [UInt8] {
  var bytes = Array(key.utf8)
  let isKey = !bytes.isEmpty && bytes.count < DiscoverySettings.txtStringBytesMax
  guard isKey, bytes.allSatisfy({ $0 >= 0x20 && $0 <= 0x7E && $0 != 0x3D }) else { return [] }
  bytes.append(0x3D)
  bytes.append(contentsOf: value.utf8)
  return cutUTF8(bytes, bytesMax: DiscoverySettings.txtStringBytesMax)
}

/// The longest prefix of the UTF-8 text that has at most `bytesMax` bytes and does not end inside a character.
func cutUTF8(_ bytes: [UInt8], bytesMax: Int) -> [UInt8] {
  if bytes.count <= bytesMax { return bytes }
  var end = bytesMax
  while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
  return Array(bytes[..<end])
}

/// Calls `body` with Avahi's list of the TXT strings, which is valid only during the call.
func withStringList<Result>(
  _ txt: [(key: String, value: String)], _ body: (UnsafeMutablePointer<AvahiStringList>?) -> Result
) -> Result {
  var list: UnsafeMutablePointer<AvahiStringList>?
  // The order of the strings is reversed, because Avahi puts each new string before the earlier ones.
  for pair in txt.prefix(DiscoverySettings.txtStringsMax).reversed() {
    let bytes = txtString(key: pair.key, value: pair.value)
    if !bytes.isEmpty { list = avahi_string_list_add_arbitrary(list, bytes, bytes.count) }
  }
  defer { avahi_string_list_free(list) }
  return body(list)
}
