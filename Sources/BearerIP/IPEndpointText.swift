import Bearer
import CSystem

extension IPEndpoint {
  /// Makes an IPv4 endpoint. `address` is a big-endian number.
  public init(ipv4 address: UInt32, port: UInt16) {
    self.init(high: 0, low: 0xFFFF_0000_0000 | UInt64(address), port: port, scope: 0)
  }

  /// The IPv4 address as a big-endian number; nil for IPv6.
  public var ipv4: UInt32? { isIPv4 ? UInt32(truncatingIfNeeded: low) : nil }

  /// Whether the address is in fe80::/10 (RFC 4291, 2.5.6), which requires a `scope`.
  public var isLinkLocalIPv6: Bool { high >> 54 == 0xFE80 >> 6 }

  /// The endpoint as text: "192.0.2.1:41820" or "[fe80::1%eth0]:41820".
  public var text: String { isIPv4 ? "\(addressText):\(port)" : "[\(addressText)]:\(port)" }

  /// The address alone: "192.0.2.1" or "fe80::1%eth0".
  public var addressText: String {
    if let ipv4 {
      return "\(ipv4 >> 24).\(ipv4 >> 16 & 0xFF).\(ipv4 >> 8 & 0xFF).\(ipv4 & 0xFF)"
    }
    var bytes = addressBytes
    var digits = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(AF_INET6, &bytes, &digits, socklen_t(digits.count)) != nil else { return "?" }
    let address = string(digits)
    if scope == 0 || !isLinkLocalIPv6 { return address }
    guard let name = interfaceName(scope) else { return "\(address)%\(scope)" }
    return "\(address)%\(name)"
  }

  /// The 16 bytes of the IPv6 form, in network order.
  var addressBytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    for word in [high, low] {
      for index in UInt64(0)..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (56 - 8 * index))) }
    }
    return bytes
  }
}

/// The name of an interface; nil if the interface no longer exists.
public func interfaceName(_ index: UInt32) -> String? {
  var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
  guard index != 0, if_indextoname(index, &name) != nil else { return nil }
  return string(name)
}

/// Parses dotted decimal to a big-endian number; nil for anything else.
public func parseIPv4(_ text: some Collection<UInt8>) -> UInt32? {
  guard text.count <= 15 else { return nil }
  var address = in_addr()
  var digits = text.map { CChar(bitPattern: $0) }
  digits.append(0)
  guard digits.withUnsafeBufferPointer({ inet_pton(AF_INET, $0.baseAddress!, &address) }) == 1 else { return nil }
  return UInt32(bigEndian: address.s_addr)
}

/// The number that up to eight bytes encode in network order.
func bigEndian(_ bytes: some Collection<UInt8>) -> UInt64 {
  var word: UInt64 = 0
  for byte in bytes { word = word << 8 | UInt64(byte) }
  return word
}

private func string(_ text: [CChar]) -> String {
  text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
}
