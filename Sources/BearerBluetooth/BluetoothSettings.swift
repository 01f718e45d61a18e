import Bearer
import Primitives

/// Which controller the bearer uses.
public enum AdapterChoice: Equatable, Sendable {
  /// The controller with the lowest index that can do Bluetooth LE.
  case automatic
  /// `hci0` and so on.
  case index(UInt16)
  /// The controller with this public address: the one choice that survives a change of USB ports.
  case address(UInt64)

  /// As a box's owner writes it: `auto`, `hci0`, or the address.
  public var text: String {
    switch self {
    case .automatic: "auto"
    case .index(let index): "hci\(index)"
    case .address(let address): BluetoothEndpoint(address: address, isRandom: false).text
    }
  }
}

/// What a box's owner chooses about Bluetooth LE.
public struct BluetoothSettings: Equatable, Sendable {
  /// The dynamic range of LE PSMs (Core Specification 5.4, Vol 3, Part A, 4.22).
  public static let psmRange: ClosedRange<UInt16> = 0x0080...0x00FF
  /// What `linksMax` may be. The upper end is what the largest usual controllers hold.
  public static let linksMaxRange: ClosedRange<Int> = 1...32

  public var adapter = AdapterChoice.automatic
  /// The PSM our channel listener takes, within `psmRange`; peers read it from the GATT service.
  public var psm: UInt16 = 0x0081
  /// How many LE links at once: above it the box neither advertises nor dials. Chips on a Pi hold 7 to 10.
  public var linksMax = 7
  /// A dial that has not given a stream by then is cancelled: a pending LE connection starves Wi-Fi on
  /// chips that share the antenna.
  public var dialTimeout = TimeSpan.seconds(8)
  /// False for a box that only dials.
  public var isAdvertising = true
  /// False for a box that only waits to be dialled.
  public var isScanning = true

  public init() {}

  /// What is wrong and what to write instead; nil when the settings can be used.
  public var problem: String? {
    if !Self.psmRange.contains(psm) { return "bluetooth psm \(psm) is not an LE dynamic PSM: choose 128 to 255" }
    if !Self.linksMaxRange.contains(linksMax) { return "bluetooth links \(linksMax) is out of range: choose 1 to 32" }
    return nil
  }
}
