/// Which multicast DNS responder the box uses.
public enum ResponderChoice: Sendable {
  /// avahi-daemon if it answers, otherwise the built-in responder.
  case automatic
  case daemon
  case embedded
}
