import Bearer
import BearerBluetooth
import BearerIP

extension RemoteAddress {
  /// As people write it, for status and logs.
  var text: String {
    switch self {
    case .ip(let endpoint): endpoint.text
    case .bluetooth(let endpoint): endpoint.text
    case .bluetoothClassic(let address): BluetoothEndpoint(address: address, isRandom: false).text
    }
  }

  /// Whom admission charges for a stream: an IPv4 address; a link-local address and its interface; the network of another IPv6
  /// address, of which a host may take 2⁶⁴; a Bluetooth address. Ports do not count. It lasts as long as the process.
  ///
  /// A machine chooses its IPv6 address freely, so numbers of IPv6 are hashes under a random key. Else fe80::ffff:192.0.2.1
  /// would be charged to 192.0.2.1, and fe80:: to nobody.
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
      // Never a number of IPv4 or Bluetooth.
      return 1 << 63 | UInt64(truncatingIfNeeded: hasher.finalize())
    case .bluetooth(let endpoint): return 1 << 48 | endpoint.address
    case .bluetoothClassic(let address): return 1 << 48 | address
    }
  }
}
