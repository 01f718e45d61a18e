/// Which keys are accepted.
public enum TrustPolicy: UInt8, Sendable {
  /// Every proven key.
  case open
  /// Every key; the name of a new key is pinned to it.
  case firstUse
  /// Keys whose certificate chain leads to an anchor, and keys that the operator pinned.
  case authority

  public var name: StaticString {
    switch self {
    case .open: "open"
    case .firstUse: "first-use"
    case .authority: "ca"
    }
  }
}
