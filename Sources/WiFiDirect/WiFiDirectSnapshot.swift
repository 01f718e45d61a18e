import Bearer

/// The state of a node's Wi-Fi Direct radio.
public enum WiFiDirectState: Sendable {
  /// Not started, stopped, or configured with invalid options.
  case off
  /// wpa_supplicant cannot be reached.
  case waitingForSupplicant
  /// wpa_supplicant is being configured.
  case preparing
  /// The interface is missing, blocked, or cannot be used by wpa_supplicant for Wi-Fi Direct.
  case unavailable
  /// The group is being created, or the creation has failed and the next attempt is pending.
  case creatingGroup
  case groupOwner
  /// Searching for an owner, or pausing between two searches.
  case searching
  case joining
  case member

  /// The state's name in the status and in logs.
  public var name: StaticString {
    switch self {
    case .off: "off"
    case .waitingForSupplicant: "waiting-for-wpa-supplicant"
    case .preparing: "preparing"
    case .unavailable: "unavailable"
    case .creatingGroup: "creating-group"
    case .groupOwner: "group-owner"
    case .searching: "searching"
    case .joining: "joining"
    case .member: "member"
    }
  }
}

/// The status of Wi-Fi Direct or of a mesh. A string whose value is unknown is empty.
public struct WiFiDirectSnapshot: Sendable {
  public var role = WiFiDirectRole.groupOwner
  public var state = WiFiDirectState.off
  /// The interface of the group, or of the mesh.
  public var groupInterface = ""
  public var ssid = ""
  /// The group's passphrase, if this node owns the group or is configured with this passphrase.
  public var passphrase = ""
  /// The frequency of the group in MHz.
  public var frequency: UInt32 = 0
  /// The stations in an owner's group, or the neighbours in a mesh: at most `stationsMax`.
  public var stations: [MACAddress] = []
  /// Whether a device may join by WPS after `pushButton`: for two minutes, or until a device has joined.
  public var isPushButtonPressed = false
  /// The group owner, if this node is a client.
  public var owner: MACAddress?

  static let stationsMax = 32
}
