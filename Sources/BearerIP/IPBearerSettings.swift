import Bearer

/// The configuration of IP links.
public struct IPBearerSettings: Sendable {
  /// Names of the interfaces that links may use; `*` stands for any run of bytes ("eth*", "p2p-*"). If empty, links use
  /// every interface that is up, except loopback.
  public var interfaces: [String] = []
  /// Whether loopback counts as an interface. This is for tests and for several nodes on one machine.
  public var allowsLoopback = false
  /// The TCP port to listen on; 0 lets the kernel choose one.
  public var port: UInt16 = IPBearerSettings.portDefault
  /// Nodes that are dialled without having been discovered.
  public var peers: [StaticPeer] = []

  /// The default port. It is unassigned in IANA's registry of services and below the usual collisions in Linux's
  /// ephemeral range.
  public static let portDefault: UInt16 = 41_820
  /// The most entries of `interfaces` and of `peers` that are used.
  public static let entriesMax = 32

  public init() {}
}
