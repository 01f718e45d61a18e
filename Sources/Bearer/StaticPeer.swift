/// A node at a configured address, dialled in addition to discovered nodes.
public struct StaticPeer: Equatable, Sendable {
  /// The address and port. Its scope is 0: look up `interface` before dialling, because interface indexes change.
  public var endpoint: IPEndpoint
  /// The interface of a link-local address, otherwise empty.
  public var interface: String

  public init(endpoint: IPEndpoint, interface: String) {
    self.endpoint = endpoint
    self.interface = interface
  }
}
