/// An unsolicited message from wpa_supplicant about groups and meshes (wpa_ctrl.h 2.10).
public enum SupplicantEvent: Equatable, Sendable {
  case deviceFound(FoundDevice)
  case findStopped
  case groupStarted(StartedGroup)
  case groupRemoved(interface: String, reason: String)
  /// Negotiation, provision discovery or WPS of a new group failed.
  case formationFailed
  /// The network accepts no more stations (IEEE 802.11-2020, table 9-50, status 17).
  case full
  /// The device of this P2P device address requests to join by push button.
  case pushButtonRequested(MACAddress)
  /// Push button was deactivated, after two minutes or because a device used it.
  case pushButtonEnded
  /// Several devices pushed within two minutes, and WPS refused one of them. The owner of the group gets this event
  /// (WPS-OVERLAP-DETECTED), and so does the refused device (WPS-M2D with configuration error 12: multiple
  /// push button sessions).
  case pushButtonOverlap
  /// A station joined an access point or a group, or a neighbour joined a mesh.
  case stationConnected(MACAddress)
  case stationDisconnected(MACAddress)
  /// A neighbour in a mesh failed the SAE authentication, so it does not know the passphrase.
  case meshPeerRefused(MACAddress)
  /// The driver could not start a mesh.
  case meshRefused
  /// This radio is connected as a station of an ordinary network.
  case connected
  case disconnected
  case terminating
  /// Any other message from wpa_supplicant.
  case other
}

/// A device in radio range.
public struct FoundDevice: Equatable, Sendable {
  /// The P2P device address, for P2P_CONNECT.
  public var address: MACAddress
  /// The transmitter address. For a group owner, this address is the BSSID of its group.
  public var transmitter: MACAddress
  public var name: String
  /// Whether the device currently owns a group (Wi-Fi P2P 1.7, table 12, bit 0).
  public var isGroupOwner: Bool
}

/// A group that this device owns or has joined.
public struct StartedGroup: Equatable, Sendable {
  public var interface: String
  public var isOwner: Bool
  public var ssid: String
  /// The frequency of the group in MHz, or 0 if the frequency is unknown.
  public var frequency: UInt32
  /// The passphrase of the group; only the owner knows this passphrase.
  public var passphrase: String
  /// The IPv4 addresses that the owner sent, as big-endian numbers: this client's address, the network mask, and the
  /// owner's address. All these addresses are 0 if the owner assigned none.
  public var address: UInt32
  public var mask: UInt32
  public var ownerAddress: UInt32
}

/// An event and the interface that it is about.
public struct SupplicantMessage: Equatable, Sendable {
  /// The interface; empty if the message names none.
  public var interface: String
  public var event: SupplicantEvent
}
