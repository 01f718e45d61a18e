import Bearer
import CSystem

extension StaticPeer {
  public static let accepted: StaticString =
    "numeric addresses with a port, such as 10.0.0.2:41820, [2001:db8::2]:41820 or [fe80::2%eth0]:41820, at most 32"

  /// Parses one address with its port. Returns nil if the text is invalid.
  public static func parse(_ text: ByteString) -> StaticPeer? {
    guard let colon = text.bytes.lastIndex(of: UInt8(ascii: ":")),
      let port = ByteString(text.bytes[(colon + 1)...]).number(in: 1...65535)
    else { return nil }
    var host = text.bytes[..<colon]
    var interface = ""
    var endpoint = IPEndpoint(high: 0, low: 0, port: UInt16(port), scope: 0)
    if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
      host = host.dropFirst().dropLast()
      if let percent = host.firstIndex(of: UInt8(ascii: "%")) {
        guard let name = parseInterface(ByteString(host[(percent + 1)...])) else { return nil }
        interface = name
        host = host[..<percent]
      }
      var address = in6_addr()
      guard inet_pton(AF_INET6, ByteString(host).string, &address) == 1 else { return nil }
      withUnsafeBytes(of: &address) { raw in
        endpoint.high = UInt64(bigEndian: raw.load(as: UInt64.self))
        endpoint.low = UInt64(bigEndian: raw.load(fromByteOffset: 8, as: UInt64.self))
      }
      let isLinkLocal = endpoint.high >> 54 == 0xFE80 >> 6
      if isLinkLocal == interface.utf8.isEmpty { return nil }
    } else {
      var address = in_addr()
      guard inet_pton(AF_INET, ByteString(host).string, &address) == 1 else { return nil }
      endpoint.low = 0xFFFF_0000_0000 | UInt64(UInt32(bigEndian: address.s_addr))
    }
    return StaticPeer(endpoint: endpoint, interface: interface)
  }
}

/// Parses the name of a Linux network interface: 1–15 bytes of printable ASCII without blanks, slashes and colons.
func parseInterface(_ text: ByteString) -> String? {
  guard (1...15).contains(text.bytes.count), !text.equals("."), !text.equals("..") else { return nil }
  let isAllowed = text.bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":") }
  return isAllowed ? text.string : nil
}

extension AdapterChoice {
  public static let accepted: StaticString =
    "auto, or up to 4 adapters, each such as hci0 or by its address such as 00:11:22:33:44:55"

  /// Parses the choice of one adapter. Returns nil if the text is invalid.
  public static func parse(_ text: ByteString) -> AdapterChoice? {
    if text.equals("auto") { return .automatic }
    if text.hasPrefix("hci"), !text.hasPrefix("hci0x") {
      return ByteString(text.bytes.dropFirst(3)).number(in: 0...65534).map { .index(UInt16($0)) }
    }
    let octets = text.bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard octets.count == 6 else { return nil }
    var address: UInt64 = 0
    for octet in octets {
      guard octet.count == 2, let high = ByteString.hexValue(octet.first!), let low = ByteString.hexValue(octet.last!)
      else {
        return nil
      }
      address = address << 8 | UInt64(high << 4 | low)
    }
    return .address(address)
  }
}

/// Whether a box can use these adapters together. `auto` must be the only entry, and an adapter must not be named
/// twice.
func areDistinct(_ adapters: [AdapterChoice]) -> Bool {
  guard adapters.count <= AdapterChoice.countMax else { return false }
  for (index, adapter) in adapters.enumerated() {
    if adapter == .automatic && adapters.count > 1 || adapters[..<index].contains(adapter) { return false }
  }
  return true
}
