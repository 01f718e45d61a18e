/// A recent proof that a node holds its key: the handshake of a link, or of a session whose packets arrived over a
/// link.
public struct KeyProof: Sendable {
  /// The address at the other end of that link, as admission charges it, or 0 for a local process. For a session it is
  /// the relaying neighbour's address, because the address of a node behind it is only claimed.
  public let source: UInt64
  /// The bearer of that link.
  public let bearer: BearerKind
  public let at: Instant

  public init(from source: UInt64, over bearer: BearerKind, at instant: Instant) {
    self.source = source
    self.bearer = bearer
    at = instant
  }
}
