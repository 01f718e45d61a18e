/// Which Bluetooth controller a box uses.
public enum AdapterChoice: Equatable, Sendable {
  /// The most controllers of a box.
  public static let countMax = 4

  /// The controller with the lowest index that can do Bluetooth LE.
  case automatic
  /// `hci0` and so on.
  case index(UInt16)
  /// The controller with this public address, most significant byte first. Only this choice survives a change of USB
  /// ports.
  case address(UInt64)
}
