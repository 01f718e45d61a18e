import Primitives

/// An event that a `Seal` reports to its owner.
public enum SealEvent: Equatable {
  /// Data flows under new keys, this many milliseconds after the first handshake datagram.
  case opened(milliseconds: UInt64)
  /// A handshake failed. Another handshake follows while there is data to send.
  case failed(SessionFailure)
  /// The session was refused, and no data flows. `byPeer` is true if the peer refused the session, false if this node
  /// did.
  case refused(SealRefusal, byPeer: Bool)
  /// The application must call `decide`. `chain` is the other end's certificate chain in DER, with that end's own
  /// certificate first.
  case decisionWanted(chain: [[UInt8]])
}

/// Why there is no session with a peer, according to the last attempt.
public enum SealObstacle: Equatable, Sendable {
  /// One end of the session refused the other end. `byPeer` is true if the peer refused, false if this node did.
  case refused(SealRefusal, byPeer: Bool)
  /// The last handshake failed, or the peer ended the session (`.busy`).
  case failed(SessionFailure)
  /// This node has no slot for another handshake or another peer.
  case noSlotHere
}

/// The type and length of a frame payload that a `Seal` wrote.
public enum SealFrame: Equatable {
  case handshake(byteCount: Int)
  case sealed(byteCount: Int)
}

/// The content of an opened payload.
public enum Opened: Equatable {
  /// A hello between the two seals, already handled. `channelEpoch` is the channel epoch of the other end; nil if its
  /// hello was not accepted.
  case hello(channelEpoch: UInt64?)
  /// A payload of the frame type `type`. The payload begins at byte 1 of the plaintext and has `byteCount` bytes.
  case payload(type: UInt8, byteCount: Int)
}
