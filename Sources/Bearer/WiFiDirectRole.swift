/// The role of this node in Wi-Fi Direct.
public enum WiFiDirectRole: Sendable {
  /// Owns a group that other nodes join by push button or passphrase.
  case groupOwner
  /// Joins the group of another node: by push button, or as an ordinary station if the network's name (SSID) is set.
  case client
}

/// When the group owner accepts a WPS push button.
public enum PushButtonPolicy: Sendable {
  case always
  /// The radio has this role for two minutes after `WiFiDirectRadio.pushButton`.
  case onRequest
  case never
}
