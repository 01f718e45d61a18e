import Primitives

/// An address where a node may be reached, as discovery found it. Only `handle` and `bearer` are certain; the rest is
/// claimed.
public struct FoundCandidate {
  /// The caller's number for it from now on.
  public var handle: UInt32
  public var bearer: BearerKind
  /// The broadcast domain where it was found: nodes of one domain all reach each other, so each links with a few of
  /// them only. 0 for none: such a candidate is always dialled.
  public var domain: UInt32
  /// The first 8 bytes of the claimed node id, 0 when none is claimed.
  public var hint: UInt64
  /// Whether the node forwards for others.
  public var relays: Bool

  public init(_ handle: UInt32, _ bearer: BearerKind, domain: UInt32 = 0, hint: UInt64, relays: Bool = true) {
    self.handle = handle
    self.bearer = bearer
    self.domain = domain
    self.hint = hint
    self.relays = relays
  }
}
