/// A node at a configured address, which is dialled in addition to discovered nodes.
public struct StaticPeer: Equatable, Sendable {
  /// The address and port, with scope 0. Look up the index of `interface` before each dial, because indexes change.
  public var endpoint: IPEndpoint
  /// The interface of a link-local address, otherwise empty.
  public var interface: String

  public init(endpoint: IPEndpoint, interface: String) {
    self.endpoint = endpoint
    self.interface = interface
  }
}
