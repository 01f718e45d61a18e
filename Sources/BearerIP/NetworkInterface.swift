import Bearer
import CSystem
import Netlink
import Primitives

/// An address of an interface. IPv4 is stored as ::ffff:a.b.c.d.
public struct InterfaceAddress: Equatable, Sendable {
  public var high: UInt64
  public var low: UInt64
  /// The prefix length in the 128-bit form: 120 for an IPv4 /24.
  public var prefixLength: UInt8

  public init(high: UInt64, low: UInt64, prefixLength: UInt8) {
    self.high = high
    self.low = low
    self.prefixLength = prefixLength
  }

  func isSame(_ endpoint: IPEndpoint) -> Bool { high == endpoint.high && low == endpoint.low }

  /// Whether the endpoint is on the network of this address.
  func reaches(_ endpoint: IPEndpoint) -> Bool {
    let bits = UInt64(min(prefixLength, 128))
    let highMask: UInt64 = bits >= 64 ? .max : ~(UInt64.max >> bits)
    let lowMask: UInt64 = bits >= 128 ? .max : bits <= 64 ? 0 : ~(UInt64.max >> (bits - 64))
    return (high ^ endpoint.high) & highMask == 0 && (low ^ endpoint.low) & lowMask == 0
  }
}

/// An interface that links are allowed to use now.
public struct NetworkInterface: Equatable, Sendable {
  public var name: String
  public var index: UInt32
  public var kind: BearerKind
  /// The addresses of the interface, at most `addressesMax`.
  public var addresses: [InterfaceAddress]

  /// The maximum number of interfaces in one enumeration. Further interfaces are ignored; the kernel lists physical
  /// ones first.
  public static let countMax = 64
  /// The maximum number of addresses stored for each interface. Further addresses are ignored.
  public static let addressesMax = 16

  public init(name: String, index: UInt32, kind: BearerKind, addresses: [InterfaceAddress]) {
    self.name = name
    self.index = index
    self.kind = kind
    self.addresses = addresses
  }

  public static func == (a: NetworkInterface, b: NetworkInterface) -> Bool {
    a.index == b.index && a.kind == b.kind && sameText(a.name, b.name) && a.addresses == b.addresses
  }
}

/// Whether both texts have the same bytes. `==` of `String` tests canonical equivalence, and would link Unicode's
/// tables into the firmware.
public func sameText(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }

/// Whether `name` matches `pattern`, in which `*` stands for any sequence of bytes.
func fits(_ name: String, _ pattern: String) -> Bool {
  let name = Array(name.utf8)
  let pattern = Array(pattern.utf8)
  // Greedy matching with one backtracking point, at the last `*`: when the next `*` is reached, the match before it is
  // final. So the time is at most proportional to the product of both lengths.
  var at = 0
  var want = 0
  var star: Int?
  var resume = 0
  while at < name.count {
    if want < pattern.count, pattern[want] == UInt8(ascii: "*") {
      star = want
      resume = at
      want += 1
    } else if want < pattern.count, pattern[want] == name[at] {
      at += 1
      want += 1
    } else if let star {
      resume += 1
      at = resume
      want = star + 1
    } else {
      return false
    }
  }
  while want < pattern.count, pattern[want] == UInt8(ascii: "*") { want += 1 }
  return want == pattern.count
}

/// The rules for which interfaces links are allowed to use, and for the kind of each interface.
struct InterfaceRules {
  var patterns: [String]
  var allowsLoopback: Bool
  /// The interface of a Wi-Fi Direct group whose name does not begin with `p2p-`.
  var wifiDirectInterface: String?

  func allows(_ name: String, isLoopback: Bool) -> Bool {
    if isLoopback { return allowsLoopback }
    if patterns.isEmpty { return true }
    for pattern in patterns where fits(name, pattern) { return true }
    return false
  }

  func kind(_ name: String, isLoopback: Bool, wireless: BearerKind?) -> BearerKind {
    if isLoopback { return .loopback }
    // A driver without P2P interface types does not mark the interface of a group. Only the interface's name shows a
    // group: wpa_supplicant's `p2p-…`, or the name of the radio's own interface (`wifiDirectInterface`).
    if name.utf8.starts(with: "p2p-".utf8) { return .wifiDirect }
    if let wifiDirectInterface, sameText(wifiDirectInterface, name) { return .wifiDirect }
    return wireless ?? .ethernet
  }
}

/// The interfaces that are up, have a carrier and are allowed; nil if the kernel call fails.
func enumerateInterfaces(_ rules: InterfaceRules) -> [NetworkInterface]? {
  var list: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&list) == 0 else { return nil }
  defer { freeifaddrs(list) }
  let wireless = WirelessTypes()
  defer { wireless?.close() }
  var interfaces: [NetworkInterface] = []
  var next = list
  while let entry = next?.pointee {
    next = entry.ifa_next
    // Every interface has a link-layer entry, even without an address.
    guard entry.ifa_flags & interfaceReady == interfaceReady, let rawName = entry.ifa_name else { continue }
    let name = String(cString: rawName)
    let isLoopback = entry.ifa_flags & UInt32(IFF_LOOPBACK) != 0
    guard rules.allows(name, isLoopback: isLoopback) else { continue }
    var known = interfaces.firstIndex { sameText($0.name, name) }
    if known == nil, interfaces.count < NetworkInterface.countMax {
      let index = if_nametoindex(rawName)
      guard index != 0 else { continue }
      let kind = rules.kind(name, isLoopback: isLoopback, wireless: wireless?.kind(index))
      interfaces.append(NetworkInterface(name: name, index: index, kind: kind, addresses: []))
      known = interfaces.count - 1
    }
    guard let known, interfaces[known].addresses.count < NetworkInterface.addressesMax,
      let address = interfaceAddress(entry)
    else { continue }
    interfaces[known].addresses.append(address)
  }
  return interfaces
}

private let interfaceReady = UInt32(IFF_UP | IFF_RUNNING)

private func interfaceAddress(_ entry: ifaddrs) -> InterfaceAddress? {
  guard let address = entry.ifa_addr, let mask = entry.ifa_netmask else { return nil }
  switch CInt(address.pointee.sa_family) {
  case AF_INET:
    let bits = ipv4(mask).nonzeroBitCount
    return InterfaceAddress(high: 0, low: 0xFFFF_0000_0000 | UInt64(ipv4(address)), prefixLength: UInt8(96 + bits))
  case AF_INET6:
    let (high, low) = words(address)
    let (highMask, lowMask) = words(mask)
    return InterfaceAddress(
      high: high, low: low, prefixLength: UInt8(highMask.nonzeroBitCount + lowMask.nonzeroBitCount))
  default:
    return nil
  }
}

private func ipv4(_ address: UnsafeMutablePointer<sockaddr>) -> UInt32 {
  address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt32(bigEndian: $0.pointee.sin_addr.s_addr) }
}

private func words(_ address: UnsafeMutablePointer<sockaddr>) -> (UInt64, UInt64) {
  address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
    withUnsafeBytes(of: address.pointee.sin6_addr) { (bigEndian($0[0..<8]), bigEndian($0[8..<16])) }
  }
}
