import Bearer
import CSystem

/// Why a text is not an address.
public enum EndpointTextError: Error, Equatable {
  /// Neither "192.0.2.1:41820" nor "[2001:db8::1]:41820" nor "[fe80::1%eth0]:41820".
  case malformed
  /// The part after `%` is not the name of an existing interface.
  case unknownInterface
}

extension IPEndpoint {
  /// The longest text that is read or written, in bytes: "[", 39 digits of IPv6, "%", 15 of an interface name,
  /// "]:65535".
  public static let textBytesMax = 63

  /// An IPv4 address in network order.
  public init(ipv4 address: UInt32, port: UInt16) {
    self.init(high: 0, low: 0xFFFF_0000_0000 | UInt64(address), port: port, scope: 0)
  }

  /// The address as a big-endian number; nil for IPv6.
  public var ipv4: UInt32? { isIPv4 ? UInt32(truncatingIfNeeded: low) : nil }

  /// fe80::/10 (RFC 4291, 2.5.6): requires a `scope`.
  public var isLinkLocalIPv6: Bool { high >> 54 == 0xFE80 >> 6 }

  /// Parses a numeric address and port. Names are not resolved, because that would block.
  public init(parsing text: String) throws(EndpointTextError) {
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.textBytesMax, let colon = bytes.lastIndex(of: UInt8(ascii: ":")),
      let port = decimal(bytes[(colon + 1)...], max: 65_535), port > 0
    else { throw .malformed }
    let host = bytes[..<colon]
    guard let first = host.first else { throw .malformed }
    if first != UInt8(ascii: "[") {
      guard let address = parseIPv4(host) else { throw .malformed }
      self.init(ipv4: address, port: UInt16(port))
      return
    }
    guard host.count > 2, host.last == UInt8(ascii: "]") else { throw .malformed }
    let inside = host.dropFirst().dropLast()
    let percent = inside.firstIndex(of: UInt8(ascii: "%")) ?? inside.endIndex
    guard let (high, low) = parseIPv6(inside[..<percent]) else { throw .malformed }
    var scope: UInt32 = 0
    if percent < inside.endIndex {
      let name = inside[(percent + 1)...]
      guard !name.isEmpty, name.count < Int(IF_NAMESIZE) else { throw .malformed }
      scope = withCString(name) { if_nametoindex($0) }
      if scope == 0 { throw .unknownInterface }
    }
    self.init(high: high, low: low, port: UInt16(port), scope: scope)
  }

  /// "192.0.2.1:41820" or "[fe80::1%eth0]:41820".
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

/// The name of an interface, nil when it is gone.
public func interfaceName(_ index: UInt32) -> String? {
  var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
  guard index != 0, if_indextoname(index, &name) != nil else { return nil }
  return string(name)
}

/// Parses dotted decimal to a big-endian number; nil for anything else.
public func parseIPv4(_ text: some Collection<UInt8>) -> UInt32? {
  guard text.count <= 15 else { return nil }
  var address = in_addr()
  guard withCString(text, { inet_pton(AF_INET, $0, &address) }) == 1 else { return nil }
  return UInt32(bigEndian: address.s_addr)
}

private func parseIPv6(_ text: some Collection<UInt8>) -> (UInt64, UInt64)? {
  guard text.count < Int(INET6_ADDRSTRLEN) else { return nil }
  var bytes = [UInt8](repeating: 0, count: 16)
  guard withCString(text, { inet_pton(AF_INET6, $0, &bytes) }) == 1 else { return nil }
  return (bigEndian(bytes[0..<8]), bigEndian(bytes[8..<16]))
}

/// The number that up to eight bytes in network order encode.
func bigEndian(_ bytes: some Collection<UInt8>) -> UInt64 {
  var word: UInt64 = 0
  for byte in bytes { word = word << 8 | UInt64(byte) }
  return word
}

/// An unsigned decimal number up to `max`; nil for anything else.
func decimal(_ digits: some Collection<UInt8>, max: Int) -> Int? {
  guard !digits.isEmpty, digits.count <= 10 else { return nil }
  var value = 0
  for digit in digits {
    guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
    value = value * 10 + Int(digit - UInt8(ascii: "0"))
  }
  return value <= max ? value : nil
}

private func withCString<Result>(_ bytes: some Collection<UInt8>, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
  var text = bytes.map { CChar(bitPattern: $0) }
  text.append(0)
  return text.withUnsafeBufferPointer { body($0.baseAddress!) }
}

private func string(_ text: [CChar]) -> String {
  text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
}
