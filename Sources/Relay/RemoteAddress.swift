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

  /// Whom admission charges for a stream: an IPv4 or link-local address; the network of another IPv6 address, of which a host
  /// may take 2⁶⁴; a Bluetooth address. Ports do not count. Two addresses with the same number share their places.
  var source: UInt64 {
    switch self {
    case .ip(let endpoint): endpoint.isIPv4 || endpoint.isLinkLocalIPv6 ? endpoint.low : endpoint.high
    case .bluetooth(let endpoint): 1 << 48 | endpoint.address
    case .bluetoothClassic(let address): 1 << 48 | address
    }
  }
}
