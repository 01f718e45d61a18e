/// An unsolicited message of wpa_supplicant, if it concerns groups (wpa_ctrl.h 2.10).
public enum SupplicantEvent: Equatable, Sendable {
  case deviceFound(FoundDevice)
  case findStopped
  case groupStarted(StartedGroup)
  case groupRemoved(interface: String, reason: String)
  /// Negotiation, provision discovery or WPS of a new group failed.
  case formationFailed
  /// The network accepts no more stations (IEEE 802.11-2020, table 9-50, status 17).
  case full
  /// A device requests to join by push button.
  case pushButtonRequested(MACAddress)
  /// The push button's two minutes have ended, or a device has used them.
  case pushButtonEnded
  /// Two devices pushed at once: WPS accepts neither.
  case pushButtonOverlap
  /// A station of an access point or a group, or a neighbour in a mesh.
  case stationConnected(MACAddress)
  case stationDisconnected(MACAddress)
  /// A neighbour in a mesh did not prove that it knows the passphrase.
  case meshPeerRefused(MACAddress)
  /// The driver did not start a mesh.
  case meshRefused
  /// Connected as a station of an ordinary network.
  case connected
  case disconnected
  case terminating
  /// Everything else.
  case other
}

/// A device in radio range.
public struct FoundDevice: Equatable, Sendable {
  /// Its P2P device address, for P2P_CONNECT.
  public var address: MACAddress
  /// The transmitter address: a group owner's is its group's BSSID.
  public var transmitter: MACAddress
  public var name: String
  /// Whether it currently owns a group (Wi-Fi P2P 1.7, table 12, bit 0).
  public var isGroupOwner: Bool
}

/// A group that this device owns or has joined.
public struct StartedGroup: Equatable, Sendable {
  public var interface: String
  public var isOwner: Bool
  public var ssid: String
  /// MHz; 0 when unknown.
  public var frequency: UInt32
  /// Only known to the owner.
  public var passphrase: String
  /// The client's and the owner's addresses that the owner assigned, big-endian numbers; 0 without assignment.
  public var address: UInt32
  public var mask: UInt32
  public var ownerAddress: UInt32
}

/// An event and the interface that it concerns.
public struct SupplicantMessage: Equatable, Sendable {
  /// Empty when the message has none.
  public var interface: String
  public var event: SupplicantEvent
}
