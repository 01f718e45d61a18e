import Bearer

/// The configuration of IP links.
public struct IPBearerSettings: Sendable {
  /// The names of the interfaces that links are allowed to use; `*` stands for any run of bytes ("eth*", "p2p-*"). If
  /// empty, links use every interface that is up, except loopback.
  public var interfaces: [String] = []
  /// Whether links are allowed to use the loopback interface. Tests need loopback links, and so do several nodes on one
  /// machine.
  public var allowsLoopback = false
  /// The TCP port to listen on; 0 lets the kernel choose one.
  public var port: UInt16 = IPBearerSettings.portDefault
  /// Nodes that are dialled without having been discovered.
  public var peers: [StaticPeer] = []

  /// The default port. IANA's registry of services does not assign this port.
  public static let portDefault: UInt16 = 41_820
  /// The maximum number of entries of `interfaces`, and of `peers`. Further entries are ignored.
  public static let entriesMax = 32

  public init() {}
}
