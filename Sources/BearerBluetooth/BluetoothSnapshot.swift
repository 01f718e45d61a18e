import Primitives

/// The state of the bearer, for status.
public struct BluetoothSnapshot: Sendable {
  /// The controller in use: its `hciN` and address; nil while there is none.
  public var adapterIndex: UInt16?
  public var adapterAddress: UInt64?
  /// Why there is no working controller; nil when there is one.
  public var problem: String?
  /// The controller supports extended advertising: it can advertise and dial at the same time.
  public var isExtended: Bool
  public var isAdvertising: Bool
  public var isScanning: Bool
  public var isDialling: Bool
  /// Much passes over Wi-Fi: scans and dials are few.
  public var isAirShared: Bool
  /// The controller has LE 2M; a peer that asks for it gets it.
  public var has2M: Bool
  /// Connections of this node's making at short intervals, and at long ones.
  public var fastLinks: Int
  public var slowLinks: Int
  /// How long it has scanned and dialled since the start.
  public var scanningTime: TimeSpan
  public var diallingTime: TimeSpan
  /// Current LE links, and their limit.
  public var links: Int
  public var linksMax: Int
  /// Known peers: heard and not lost.
  public var candidates: Int
  /// Dials that wait for the current one.
  public var dialsQueued: Int
  /// Open attribute channels.
  public var attributeChannels: Int
  public var psm: UInt16
  /// False: only classic is used.
  public var isLowEnergy: Bool
  /// Nil when only LE is used.
  public var classic: ClassicSnapshot?
}
