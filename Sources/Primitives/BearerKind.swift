/// The medium of a link. The raw value is sent on the wire (advertisements), but for what `advertised` says.
public enum BearerKind: UInt8, Sendable {
  case ethernet = 1
  case wifi = 2
  case wifiDirect = 3
  case bluetoothLE = 4
  case loopback = 5
  case bluetoothClassic = 6

  /// Routing cost of a link over this bearer before it is measured: about the microseconds that one KiB takes at the
  /// bearer's usual goodput.
  public var cost: UInt16 {
    switch self {
    case .loopback: 1
    case .ethernet: 10
    case .wifi: 100
    case .wifiDirect: 120
    case .bluetoothLE: 8000
    // At its best faster than LE, but it takes more of the air: LE stays first.
    case .bluetoothClassic: 9000
    }
  }

  /// The word used in status, logs and documentation.
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

  /// Of either kind, over one radio.
  public var isBluetooth: Bool { self == .bluetoothLE || self == .bluetoothClassic }

  /// As an advertisement names it: a receiver refuses one with a bearer that it does not know, and both kinds of Bluetooth
  /// are one to it.
  public var advertised: BearerKind { self == .bluetoothClassic ? .bluetoothLE : self }
}
