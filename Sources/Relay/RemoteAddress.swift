import Bearer
import BearerBluetooth
import BearerIP

extension RemoteAddress {
  /// The address as text, for status and logs.
  var text: String {
    switch self {
    case .ip(let endpoint): endpoint.text
    case .bluetooth(let endpoint): endpoint.text
    case .bluetoothClassic(let address): BluetoothEndpoint(address: address, isRandom: false).text
    }
  }

  /// The source that admission charges for a stream. The source does not depend on the port, and does not change while
  /// the process runs. The source is one of the following:
  ///
  /// - an IPv4 address
  /// - a link-local IPv6 address with its interface
  /// - the /64 network of another IPv6 address, because one host may have 2⁶⁴ addresses of that network
  /// - a Bluetooth address
  ///
  /// A machine chooses its IPv6 address freely, so IPv6 sources are hashes under a random key. Without the key,
  /// fe80::ffff:192.0.2.1 would be charged to 192.0.2.1, and fe80:: to no source.
  var source: UInt64 {
    switch self {
    case .ip(let endpoint):
      if endpoint.isIPv4 { return endpoint.low }
      var hasher = Hasher()
      hasher.combine(endpoint.high)
      if endpoint.isLinkLocalIPv6 {
        hasher.combine(endpoint.low)
        hasher.combine(endpoint.scope)
      }
      // The top bit distinguishes IPv6 sources from IPv4 and Bluetooth sources.
      return 1 << 63 | UInt64(truncatingIfNeeded: hasher.finalize())
    case .bluetooth(let endpoint): return 1 << 48 | endpoint.address
    case .bluetoothClassic(let address): return 1 << 48 | address
    }
  }
}
