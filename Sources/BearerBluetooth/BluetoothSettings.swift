import Bearer
import Primitives

extension AdapterChoice {
  /// The choice as in the configuration file: `auto`, `hci0`, or the address.
  public var text: String {
    switch self {
    case .automatic: "auto"
    case .index(let index): "hci\(index)"
    case .address(let address): BluetoothEndpoint(address: address, isRandom: false).text
    }
  }
}

/// The settings of Bluetooth.
public struct BluetoothSettings: Equatable, Sendable {
  /// The dynamic range of LE PSMs (Core Specification 5.4, Vol 3, Part A, 4.22).
  public static let psmRange: ClosedRange<UInt16> = 0x0080...0x00FF
  /// The range of `linksMax`. The upper end of the range is the number of links that the largest common controllers
  /// support.
  public static let linksMaxRange: ClosedRange<Int> = 1...32

  public var adapter = AdapterChoice.automatic
  /// The PSM on which this node accepts channels, within `psmRange`. Peers read the PSM from the GATT service.
  public var psm: UInt16 = 0x0081
  /// The maximum number of LE links at once. When all are in use, the box neither advertises nor scans, and dials no
  /// further peers. The chips of Raspberry Pi boards support 7 to 10 links.
  public var linksMax = 7
  /// The time limit for making an LE connection. A pending connection starves Wi-Fi on chips that share the antenna.
  public var dialTimeout = TimeSpan.seconds(4)
  /// Whether this node forwards for others. The scan response announces whether this node forwards for others.
  public var relays = true
  /// Whether the box advertises over LE. If false, the box only dials over LE.
  public var isAdvertising = true
  /// Whether the box scans over LE. If false, the box only waits over LE to be dialled.
  public var isScanning = true

  /// Whether Bluetooth classic is used: peers can connect over it, and this node searches for peers by inquiry.
  public var isClassic = false
  /// Whether LE is used. At least one of LE and classic is used.
  public var isLowEnergy = true
  /// The name of the bridge that peers can join over Bluetooth classic; empty for none. A bridge requires `isClassic`.
  public var networkBridge = ""

  public init() {}

  /// The fault in the settings, and what to write instead; nil for valid settings.
  public var problem: String? {
    if !Self.psmRange.contains(psm) { return "bluetooth psm \(psm) is not an LE dynamic PSM: choose 128 to 255" }
    if !Self.linksMaxRange.contains(linksMax) { return "bluetooth links \(linksMax) is out of range: choose 1 to 32" }
    return nil
  }
}
