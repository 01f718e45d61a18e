/// The policy that decides which peers' keys this node accepts.
public enum TrustPolicy: UInt8, Sendable {
  /// Every key is accepted whose possession the peer has proved.
  case open
  /// Every proven key, with trust on first use: the name of a new key is pinned to it.
  case firstUse
  /// Keys whose certificate chain leads to an anchor, and keys pinned by the operator.
  case authority

  public var name: StaticString {
    switch self {
    case .open: "open"
    case .firstUse: "first-use"
    case .authority: "ca"
    }
  }
}
