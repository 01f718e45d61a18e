import Primitives

/// The two ends of a session: two nodes, each in one boot epoch.
public struct SessionName: Equatable, Sendable {
  public var local: NodeID
  public var peer: NodeID
  public var localEpoch: UInt64
  public var peerEpoch: UInt64

  public init(local: NodeID, peer: NodeID, localEpoch: UInt64, peerEpoch: UInt64) {
    self.local = local
    self.peer = peer
    self.localEpoch = localEpoch
    self.peerEpoch = peerEpoch
  }

  /// The node with the lower id is the client of the handshake.
  public var isClient: Bool { local < peer }
}

/// Why a handshake failed. The raw value is in the journal.
public enum SessionFailure: UInt8, Error, Sendable {
  /// The peer proved another key than that of the expected node.
  case wrongIdentity = 1
  /// No certificate, or one without an ECDSA P-256 key.
  case noIdentity = 2
  /// The peer stopped answering.
  case timedOut = 3
  /// The peer sent a fatal alert.
  case endedByPeer = 4
  /// The peer's messages are not a handshake.
  case broken = 5
  case noMemory = 6
  /// The peer has no place for a session now.
  case busy = 7
  /// This node gave the place of the session to another peer.
  case displaced = 8
}

/// The state of a session.
public enum SessionState: Equatable, Sendable {
  case handshaking
  /// The peer proved the key of the expected node.
  case established
  case failed(SessionFailure)
}

/// One cryptographic session between this node and one other: handshake, sealing and opening. mbedTLS's DTLS in the
/// firmware; a fast stand-in in the simulator.
///
/// Lost, duplicate, reordered, altered or foreign datagrams do no harm: they are dropped. After every call except
/// `seal` and `open` the owner calls `nextHandshake` until it returns 0, and sets its timer to `nextDeadline`.
public protocol PeerSession: AnyObject {
  var state: SessionState { get }
  /// The other end's certificates in DER, its own first; empty until established.
  var peerChain: [[UInt8]] { get }
  /// Whether this datagram is the one that began the session, or a retransmission of it.
  func began(with hello: RawSpan) -> Bool
  /// How far the handshake has come. Each message of the other end that moves the handshake increases it; a datagram that
  /// is repeated, altered or foreign does not.
  var progress: UInt32 { get }
  /// Gives up a handshake in progress. `nextHandshake` then returns the datagram that reports it to the other end, if any.
  func abandon()
  /// A handshake datagram arrived. An established session accepts them too, because its last flight may have been lost.
  func receiveHandshake(_ datagram: RawSpan, now: Instant)
  /// Writes the next datagram of the handshake to the start of `buffer`, which has `SealLimits.handshakeBytesMax`
  /// bytes. Returns its length, 0 when there is none.
  func nextHandshake(into buffer: UnsafeMutableRawBufferPointer) -> Int
  /// When `handleTimeout` is due.
  var nextDeadline: Instant { get }
  func handleTimeout(now: Instant)
  /// Seals `plaintext` (1 … `SealLimits.plaintextBytesMax` bytes) into the start of `record`, which must be
  /// `SealLimits.overheadBytesMax` bytes longer. Returns the record's length, 0 on failure.
  func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int
  /// Opens `record` into the start of `plaintext`, which is as long as the record. Returns the plaintext's length; nil
  /// when the record is altered, replayed, too old, or of another session.
  func open(_ record: RawSpan, into plaintext: UnsafeMutableRawBufferPointer) -> Int?
}

/// A server's stateless answer to the first datagram of a handshake (RFC 6347, 4.2.1).
public enum HelloAnswer: Equatable, Sendable {
  /// The cookie is right: the sender can receive datagrams at the node id that it claims. A session may be made.
  case accepted
  /// Send back this many bytes; keep no state.
  case reply(byteCount: Int)
  /// The datagram does not begin a handshake.
  case refused
}

/// Creates sessions.
public protocol SessionMaker: AnyObject {
  /// The client's end of a new session; its first datagram is ready. Nil when no memory is left.
  func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)?
  /// Checks a datagram that begins a handshake, without state. A reply is written to `reply`, which has
  /// `SealLimits.handshakeBytesMax` bytes.
  func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer
  /// Writes to `reply`, which has `SealLimits.handshakeBytesMax` bytes, the answer to a datagram for which `answerHello`
  /// returned `.accepted` and for whose session there is no place. Returns its length, 0 for none. Keeps no state.
  func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int
  /// The server's end of a session after `answerHello` returned `.accepted`. Nil when no memory is left.
  func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)?
}

/// All limits of sealing.
public enum SealLimits {
  /// Greatest overhead of sealing, in bytes: the type byte, and the header (13), explicit nonce (8) and tag (16) of
  /// DTLS 1.2 (RFC 6347, RFC 5288).
  public static let overheadBytesMax = 1 + 13 + 8 + 16
  /// One record's plaintext (RFC 6347, 4.1).
  public static let plaintextBytesMax = 16_384
  /// In a handshake frame both epochs precede the datagram.
  public static let handshakeHeaderBytes = 16
  /// The longest handshake datagram: the frame payload that every link accepts, less the epochs. It fits every path,
  /// even one that changes during the handshake.
  public static let handshakeBytesMax = 2_048 - handshakeHeaderBytes
  /// Handshakes at once, over all peers. A peer has at most one, for at most `handshakeTime`. A node that reaches this one
  /// under a claimed id takes a place; it is charged to the link that brings the frames of that id. One link has half of
  /// the places that nobody holds, and k greedy links have 1/(k + 1) each.
  public static let handshakesMax = 32
  /// The part of these places that is kept for peers that the operator pinned and for those that proved their key in a session before.
  public static let handshakesReserved = 8
  /// A handshake that made no progress for this time gives its place to another one that needs it. Three round trips over
  /// Bluetooth, of up to 0.4 s each, make progress more often.
  public static let claimTime = TimeSpan.seconds(1)
  /// So does one that is this old, whatever progress it makes: a peer could send one message in each `claimTime`.
  public static let wholeTime = TimeSpan.seconds(5)
  /// A handshake without progress for this time has failed. The last retransmission that the other end may need is sent
  /// after 7.5 s.
  public static let stallTime = TimeSpan.seconds(12)
  /// The longest pause before a peer is tried again that had no place for a session, or for which this node had none.
  public static let busyPauseMax = TimeSpan.seconds(4)
  /// From the first datagram to the confirmation, without the application's decision.
  public static let handshakeTime = TimeSpan.seconds(30)
  /// How long the application may take to decide on a certificate.
  public static let decisionTime = TimeSpan.seconds(60)
  /// How long a replaced session still opens records.
  public static let previousTime = TimeSpan.seconds(30)
  /// A peer's new handshake replaces one in progress that is at least this old.
  public static let replaceTime = TimeSpan.milliseconds(500)
  /// The pauses between handshakes, between session requests and between hellos double from the minimum to the maximum.
  public static let pauseMin = TimeSpan.milliseconds(500)
  public static let pauseMax = TimeSpan.seconds(16)
  /// A refused peer is tried again after this time.
  public static let refusedTime = TimeSpan.seconds(60)
  /// An undecryptable record leads to a new session only when no record was opened for this time.
  public static let undecryptableTime = TimeSpan.seconds(3)
}

/// When a session's keys are renewed.
public struct SessionLifetime: Equatable, Sendable {
  /// Records in either direction: well below the limit of AES-GCM (2²⁴ records of full length, RFC 8446, 5.5).
  public var recordsMax: UInt64 = 1 << 23
  public var age = TimeSpan.seconds(24 * 3600)
  public init() {}
}
