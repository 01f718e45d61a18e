import Primitives

/// An address at which a node may be reached, as discovery found it. Only `handle` and `bearer` are certain. The other
/// properties of a candidate are claims that nothing proves.
public struct FoundCandidate {
  /// The number by which the caller identifies the candidate from now on.
  public var handle: UInt32
  public var bearer: BearerKind
  /// The broadcast domain in which the address was found, or 0 for none. All nodes of a domain can reach each other, so
  /// each node links with only a few of the others. A candidate without a domain is always dialled, except over
  /// Bluetooth (`BluetoothChoice.swift`).
  public var domain: UInt32
  /// The first 8 bytes of the claimed node id, or 0 if none is claimed.
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
