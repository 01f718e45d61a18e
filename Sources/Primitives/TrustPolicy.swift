/// The policy that decides which peers' keys this node accepts.
public enum TrustPolicy: UInt8, Sendable {
  /// Accepts every key whose possession the peer has proved.
  case open
  /// Accepts every proven key, with trust on first use: the name of a peer is pinned to the peer's key.
  case firstUse
  /// Accepts keys whose certificate chain leads to a trust anchor, and keys that the operator pinned.
  case authority

  public var name: StaticString {
    switch self {
    case .open: "open"
    case .firstUse: "first-use"
    case .authority: "ca"
    }
  }
}
