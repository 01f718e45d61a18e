import Primitives

/// The state of a `BluetoothBearer`, for the status.
public struct BluetoothSnapshot: Sendable {
  /// The controller in use: the number of its `hciN`, and its address; nil while there is none.
  public var adapterIndex: UInt16?
  public var adapterAddress: UInt64?
  /// Why there is no working controller; nil if a controller works.
  public var problem: String?
  /// Whether the controller supports extended advertising, and so can advertise and dial at the same time.
  public var isExtended: Bool
  public var isAdvertising: Bool
  public var isScanning: Bool
  public var isDialling: Bool
  /// Whether Wi-Fi carries much traffic, so that this node scans and dials less often.
  public var isAirShared: Bool
  /// Whether the controller supports the PHY LE 2M. LE 2M is used with a peer that requests it.
  public var has2M: Bool
  /// The numbers of connections that this node has made, by their connection intervals: short (`fastLinks`) and long
  /// (`slowLinks`).
  public var fastLinks: Int
  public var slowLinks: Int
  /// How long the controller has scanned and dialled over LE since the start.
  public var scanningTime: TimeSpan
  public var diallingTime: TimeSpan
  /// The current number of LE links, and their limit.
  public var links: Int
  public var linksMax: Int
  /// The number of known LE peers: found and not lost.
  public var candidates: Int
  /// The number of dials that wait for the end of the current dial.
  public var dialsQueued: Int
  /// The number of open attribute channels.
  public var attributeChannels: Int
  public var psm: UInt16
  /// Whether LE is used. If false, only classic is used.
  public var isLowEnergy: Bool
  /// The state of classic; nil if only LE is used.
  public var classic: ClassicSnapshot?
}
