import Primitives

/// An address at which discovery found a node. Nothing in a candidate is proven: only the TLS handshake proves the
/// node's identity.
public struct Candidate: Equatable, Sendable {
  public var bearer: BearerKind
  public var address: RemoteAddress
  /// The first 8 bytes of the node id that the discovery record claims; 0 if it claims none. The hint serves two
  /// purposes only: not to dial a node that is already linked, and to decide which of two nodes dials.
  public var hint: UInt64
  /// The index of the interface on whose network the candidate was announced to all nodes; 0 if it was found otherwise.
  /// All nodes on that network can reach each other.
  public var domain: UInt32
  /// Whether the node claims to forward for others.
  public var relays: Bool

  public init(bearer: BearerKind, address: RemoteAddress, hint: UInt64, domain: UInt32 = 0, relays: Bool = true) {
    self.bearer = bearer
    self.address = address
    self.hint = hint
    self.domain = domain
    self.relays = relays
  }

  /// Whether this candidate and `other` have the same bearer, address and hint. The networks on which the candidates
  /// were found are ignored.
  public func leads(whereLeads other: Candidate) -> Bool {
    bearer == other.bearer && address == other.address && hint == other.hint
  }
}

/// The address of a peer that a bearer dials, or from which a stream came.
public enum RemoteAddress: Equatable, Sendable {
  case ip(IPEndpoint)
  case bluetooth(BluetoothEndpoint)
  /// The 48-bit address of a Bluetooth classic device.
  case bluetoothClassic(UInt64)
}

/// An IPv4 or IPv6 address and port. IPv4 is stored in `high`/`low` as ::ffff:a.b.c.d.
public struct IPEndpoint: Equatable, Sendable {
  public var high: UInt64
  public var low: UInt64
  public var port: UInt16
  /// The interface index, which link-local addresses require; 0 for any interface.
  public var scope: UInt32

  public init(high: UInt64, low: UInt64, port: UInt16, scope: UInt32) {
    self.high = high
    self.low = low
    self.port = port
    self.scope = scope
  }

  public var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }
}

/// The address of a Bluetooth LE device, without a PSM. This node reads the PSM from the device's GATT service after
/// connecting.
public struct BluetoothEndpoint: Equatable, Sendable {
  /// The 48-bit address, most significant byte first, as in AA:BB:CC:DD:EE:FF.
  public var address: UInt64
  /// Whether the address is random, not public (Core Specification 5.4, Vol 6, Part B, 1.3). A dial has to state which.
  public var isRandom: Bool

  public init(address: UInt64, isRandom: Bool) {
    self.address = address
    self.isRandom = isRandom
  }
}
