/// A recent proof that a node has the private key of its identity. The proof is the TLS handshake of a link, or the
/// handshake of an end-to-end session whose packets arrived over a link.
public struct KeyProof: Sendable {
  /// The address at the remote end of the link, in the form to which admission charges streams, or 0 for a local
  /// process. For an end-to-end session this address is the address of the relaying neighbour. The address of a node
  /// behind that neighbour is claimed but not proven.
  public let source: UInt64
  /// The bearer of the link.
  public let bearer: BearerKind
  public let at: Instant

  public init(from source: UInt64, over bearer: BearerKind, at instant: Instant) {
    self.source = source
    self.bearer = bearer
    at = instant
  }
}
