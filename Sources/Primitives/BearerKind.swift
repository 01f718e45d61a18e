/// The medium of a link. Advertisements carry the raw value of `advertised`.
public enum BearerKind: UInt8, Sendable {
  case ethernet = 1
  case wifi = 2
  case wifiDirect = 3
  case bluetoothLE = 4
  case loopback = 5
  case bluetoothClassic = 6

  /// The routing cost of a link over this bearer before its cost is measured. The unit is roughly the microseconds that
  /// one KiB takes at the bearer's usual goodput.
  public var cost: UInt16 {
    switch self {
    case .loopback: 1
    case .ethernet: 10
    case .wifi: 100
    case .wifiDirect: 120
    case .bluetoothLE: 8000
    // Classic Bluetooth can be faster than LE but uses more airtime, so routing prefers LE.
    case .bluetoothClassic: 9000
    }
  }

  /// The name used in status, logs and documentation.
  public var name: StaticString {
    switch self {
    case .ethernet: "ethernet"
    case .wifi: "wifi"
    case .wifiDirect: "wifi-direct"
    case .bluetoothLE: "bluetooth-le"
    case .loopback: "loopback"
    case .bluetoothClassic: "bluetooth-classic"
    }
  }

  /// Whether the bearer is LE or classic Bluetooth. Both kinds of Bluetooth use the same radio.
  public var isBluetooth: Bool { self == .bluetoothLE || self == .bluetoothClassic }

  /// The kind that advertisements carry: LE for both kinds of Bluetooth. Receivers reject advertisements with an
  /// unknown bearer, and `bluetoothClassic` has no number in the protocol.
  public var advertised: BearerKind { self == .bluetoothClassic ? .bluetoothLE : self }
}
