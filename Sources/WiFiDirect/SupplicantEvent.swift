/// An unsolicited message of wpa_supplicant, as far as a group's life depends on it (wpa_ctrl.h 2.10).
public enum SupplicantEvent: Equatable, Sendable {
  case deviceFound(FoundDevice)
  case findStopped
  case groupStarted(StartedGroup)
  case groupRemoved(interface: String, reason: String)
  /// Negotiation, provision discovery or WPS of a group that was to come failed.
  case formationFailed
  /// The network takes no more stations (IEEE 802.11-2020, table 9-50, status 17).
  case full
  /// Somebody asks to join by push button.
  case pushButtonRequested(MACAddress)
  /// The push button's two minutes are over, or somebody has used them.
  case pushButtonEnded
  /// Two devices pushed at once: WPS lets neither in.
  case pushButtonOverlap
  case stationConnected(MACAddress)
  case stationDisconnected(MACAddress)
  /// As a station of an ordinary network.
  case connected
  case disconnected
  case terminating
  /// Everything else.
  case other
}

/// A device in radio range.
public struct FoundDevice: Equatable, Sendable {
  /// Its P2P device address, which P2P_CONNECT takes.
  public var address: MACAddress
  /// The address it was heard under: an owner's is its group's BSSID.
  public var transmitter: MACAddress
  public var name: String
  /// Whether it owns a group now (Wi-Fi P2P 1.7, table 12, bit 0).
  public var isGroupOwner: Bool
}

/// A group this device owns or has joined.
public struct StartedGroup: Equatable, Sendable {
  public var interface: String
  public var isOwner: Bool
  public var ssid: String
  /// MHz; 0 when it was not said.
  public var frequency: UInt32
  /// Only the owner is told.
  public var passphrase: String
  /// What the owner assigned to a client and calls itself, big-endian numbers; 0 without assignment.
  public var address: UInt32
  public var mask: UInt32
  public var ownerAddress: UInt32
}

/// An event and the interface it came from.
public struct SupplicantMessage: Equatable, Sendable {
  /// Empty when the message named none.
  public var interface: String
  public var event: SupplicantEvent
}
