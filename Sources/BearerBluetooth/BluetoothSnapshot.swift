import Primitives

/// The state of the bearer, for status.
public struct BluetoothSnapshot: Sendable {
  /// The controller in use: the number of its `hciN`, and its address; nil while there is none.
  public var adapterIndex: UInt16?
  public var adapterAddress: UInt64?
  /// Why there is no working controller; nil if there is one.
  public var problem: String?
  /// Whether the controller supports extended advertising, and so can advertise and dial at the same time.
  public var isExtended: Bool
  public var isAdvertising: Bool
  public var isScanning: Bool
  public var isDialling: Bool
  /// Whether Wi-Fi is loaded, so that scans and dials are few.
  public var isAirShared: Bool
  /// Whether the controller has LE 2M. A peer that asks for it gets it.
  public var has2M: Bool
  /// Connections made by this node: at short intervals, and at long ones.
  public var fastLinks: Int
  public var slowLinks: Int
  /// How long the controller has scanned and dialled since the start.
  public var scanningTime: TimeSpan
  public var diallingTime: TimeSpan
  /// Current LE links, and their limit.
  public var links: Int
  public var linksMax: Int
  /// The number of known peers: found and not lost.
  public var candidates: Int
  /// Dials that wait for the current one.
  public var dialsQueued: Int
  /// Open attribute channels.
  public var attributeChannels: Int
  public var psm: UInt16
  /// Whether LE is used. If false, only classic is.
  public var isLowEnergy: Bool
  /// The state of classic; nil if only LE is used.
  public var classic: ClassicSnapshot?
}
