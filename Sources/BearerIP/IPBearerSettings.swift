import Bearer

/// What the configuration says about IP links.
public struct IPBearerSettings: Sendable {
  /// Names of the interfaces links may use; `*` stands for any run of bytes ("eth*", "p2p-*").
  /// Empty: every interface that is up, except loopback.
  public var interfaces: [String] = []
  /// Loopback counts as an interface too. For tests and for several nodes on one machine.
  public var allowsLoopback = false
  /// The TCP port to listen on; 0 lets the kernel choose one.
  public var port: UInt16 = IPBearerSettings.portDefault
  /// Nodes that are dialled without having been discovered.
  public var peers: [StaticPeer] = []

  /// Unassigned in IANA's registry of services and below Linux's ephemeral range's usual collisions.
  public static let portDefault: UInt16 = 41_820
  /// The most entries of `interfaces` and of `peers` that are used.
  public static let entriesMax = 32

  public init() {}
}
