/// Where a node's Wi-Fi Direct stands.
public enum WiFiDirectState: Sendable {
  /// Not started, stopped, or the options cannot work.
  case off
  /// No wpa_supplicant answers.
  case waitingForSupplicant
  /// wpa_supplicant is there and is told what it needs to know.
  case preparing
  /// The interface is absent, or it cannot do Wi-Fi Direct.
  case unavailable
  /// The group is being made, or rests after a failure.
  case creatingGroup
  case groupOwner
  /// Looking for an owner, or resting between two looks.
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

/// What status shows of Wi-Fi Direct. Strings are empty where there is nothing.
public struct WiFiDirectSnapshot: Sendable {
  public var role = WiFiDirectRole.groupOwner
  public var state = WiFiDirectState.off
  /// The interface that carries the group.
  public var groupInterface = ""
  public var ssid = ""
  /// Known to the group's owner, and to a client that was configured with it.
  public var passphrase = ""
  /// MHz
  public var frequency: UInt32 = 0
  /// The stations in an owner's group, at most `stationsMax`.
  public var stations: [MACAddress] = []
  /// A client's group owner.
  public var owner: MACAddress?

  static let stationsMax = 32
}
