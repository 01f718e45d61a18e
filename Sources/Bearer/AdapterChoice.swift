/// Which Bluetooth controller a box uses.
public enum AdapterChoice: Equatable, Sendable {
  /// The maximum number of controllers that one box uses.
  public static let countMax = 4

  /// The controller with the lowest index that supports Bluetooth LE, or classic if LE is off.
  case automatic
  /// The controller with this kernel index: `hci0` and so on.
  case index(UInt16)
  /// The controller with this public address, most significant byte first. Unlike an index, the address stays the same
  /// when the controller moves to another USB port.
  case address(UInt64)
}
