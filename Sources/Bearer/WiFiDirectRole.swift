/// The role of this node in Wi-Fi Direct.
public enum WiFiDirectRole: Sendable {
  /// Owns a group that others join by push button or passphrase.
  case groupOwner
  /// Joins the group of a node: by push button, or by passphrase as an ordinary station when one is set.
  case client
}

/// When the group owner accepts WPS push button.
public enum PushButtonPolicy: Sendable {
  case always
  /// For two minutes after `WiFiDirectRadio.pushButton`.
  case onRequest
  case never
}
