import Bearer

/// The state of a node's Wi-Fi Direct.
public enum WiFiDirectState: Sendable {
  /// Not started, stopped, or invalid options.
  case off
  /// wpa_supplicant cannot be reached.
  case waitingForSupplicant
  /// wpa_supplicant is being configured.
  case preparing
  /// The interface is missing, or does not support Wi-Fi Direct.
  case unavailable
  /// The group is being created, or its creation pauses after a failure.
  case creatingGroup
  case groupOwner
  /// Searching for an owner, or pausing between two searches.
  case searching
  case joining
  case member

  /// The word used in status and logs.
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

/// Wi-Fi Direct in status. Strings are empty where there is no value.
public struct WiFiDirectSnapshot: Sendable {
  public var role = WiFiDirectRole.groupOwner
  public var state = WiFiDirectState.off
  /// The interface of the group, or of the mesh.
  public var groupInterface = ""
  public var ssid = ""
  /// Known to the owner of the group, and to a client that was configured with it.
  public var passphrase = ""
  /// MHz
  public var frequency: UInt32 = 0
  /// The stations in an owner's group, or the neighbours in a mesh: at most `stationsMax`.
  public var stations: [MACAddress] = []
  /// Whether somebody may join by WPS because `pushButton` was called: two minutes, or until one did.
  public var isPushButtonPressed = false
  /// A client's group owner.
  public var owner: MACAddress?

  static let stationsMax = 32
}
