/// A node at a known address, dialled in addition to discovered ones.
public struct StaticPeer: Equatable, Sendable {
  /// Its scope is 0: look up `interface` before dialling, because interface indexes change.
  public var endpoint: IPEndpoint
  /// The interface of a link-local address, otherwise empty.
  public var interface: String

  public init(endpoint: IPEndpoint, interface: String) {
    self.endpoint = endpoint
    self.interface = interface
  }
}
