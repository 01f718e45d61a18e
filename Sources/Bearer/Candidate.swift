import Primitives

/// An address where a node may be reached, as discovery found it. Nothing in it is proven: only the TLS handshake
/// proves the node's identity.
public struct Candidate: Equatable, Sendable {
  public var bearer: BearerKind
  public var address: RemoteAddress
  /// The first 8 bytes of the node id that the discovery record claims; 0 if it claims none. It serves only to avoid
  /// dialling a node that is already linked, and to decide which side dials.
  public var hint: UInt64
  /// The index of the interface on whose network the candidate was announced to all nodes; 0 if it was found otherwise.
  /// All nodes of one such network can reach each other.
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

  /// Whether both candidates are the same address of the same node, regardless of the network on which each was found.
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
  /// The interface index, needed for link-local addresses; 0 for any.
  public var scope: UInt32

  public init(high: UInt64, low: UInt64, port: UInt16, scope: UInt32) {
    self.high = high
    self.low = low
    self.port = port
    self.scope = scope
  }

  public var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }
}

/// The address of a Bluetooth LE device. The PSM is read from its GATT service after connecting.
public struct BluetoothEndpoint: Equatable, Sendable {
  /// The 48-bit address, most significant byte first, as people write it.
  public var address: UInt64
  /// Whether it is a random address and must be dialled as such (Core Specification 5.4, Vol 6, Part B, 1.3).
  public var isRandom: Bool

  public init(address: UInt64, isRandom: Bool) {
    self.address = address
    self.isRandom = isRandom
  }
}
