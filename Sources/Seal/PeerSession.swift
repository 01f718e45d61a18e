import Primitives

/// The two ends of a sealed session: two nodes, each in one boot epoch.
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

  /// Whether this node is the client of the handshake. The client is the node with the lower id.
  public var isClient: Bool { local < peer }
}

/// Why a handshake failed. The raw value is recorded in the journal.
public enum SessionFailure: UInt8, Error, Sendable {
  /// The peer proved a key other than that of the expected node.
  case wrongIdentity = 1
  /// The peer sent no certificate, or one without an ECDSA P-256 key.
  case noIdentity = 2
  /// The peer stopped answering the handshake.
  case timedOut = 3
  /// The peer sent a fatal alert.
  case endedByPeer = 4
  /// The peer's messages are not a valid handshake.
  case broken = 5
  case noMemory = 6
  /// The peer has no slot for another session.
  case busy = 7
  /// This node evicted the handshake in favour of another peer.
  case displaced = 8
}

/// The state of a sealed session.
public enum SessionState: Equatable, Sendable {
  case handshaking
  /// The handshake has succeeded: the peer proved the key of the expected node.
  case established
  case failed(SessionFailure)
}

/// A cryptographic session between this node and one other node, which performs the handshake, seals (encrypts)
/// payloads, and opens (decrypts) records. The firmware uses the DTLS of mbedTLS; the simulator uses a fast substitute.
///
/// Lost, duplicate, reordered, altered or foreign datagrams are dropped and do no harm. After every call except `seal`
/// and `open` the owner calls `nextHandshake` until it returns 0, and sets its timer to `nextDeadline`.
public protocol PeerSession: AnyObject {
  var state: SessionState { get }
  /// The other end's certificate chain in DER, with that end's own certificate first. The chain is empty until `state`
  /// is established.
  var peerChain: [[UInt8]] { get }
  /// Whether `hello` is the datagram that began the session, or a retransmission of that datagram.
  func began(with hello: RawSpan) -> Bool
  /// A counter of handshake progress. Each message of the other end that advances the handshake increases the counter.
  /// Repeated, altered and foreign datagrams do not increase the counter.
  var progress: UInt32 { get }
  /// Aborts a handshake in progress. `nextHandshake` then returns the alert for the other end, if an alert is due.
  func abandon()
  /// Handles a handshake datagram. An established session accepts handshake datagrams too, because its last flight may
  /// have been lost.
  func receiveHandshake(_ datagram: RawSpan, now: Instant)
  /// Writes the next datagram of the handshake to the start of `buffer`, which has `SealLimits.handshakeBytesMax`
  /// bytes. Returns the length of the datagram, 0 if there is none.
  func nextHandshake(into buffer: UnsafeMutableRawBufferPointer) -> Int
  /// The time when `handleTimeout` is due.
  var nextDeadline: Instant { get }
  func handleTimeout(now: Instant)
  /// Seals `plaintext` (1 … `SealLimits.plaintextBytesMax` bytes) into the start of `record`, which must be
  /// `SealLimits.overheadBytesMax` bytes longer. Returns the record's length, 0 on failure.
  func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int
  /// Opens `record` into the start of `plaintext`, which is as long as the record. Returns the length of the plaintext.
  /// Returns nil if the record is altered, replayed, too old, or of another session.
  func open(_ record: RawSpan, into plaintext: UnsafeMutableRawBufferPointer) -> Int?
}

/// A server's stateless answer to the first datagram of a handshake (RFC 6347, 4.2.1).
public enum HelloAnswer: Equatable, Sendable {
  /// The cookie is valid: the sender receives datagrams at the node id in its claim. The caller may create a session.
  case accepted
  /// The caller must send back the first `byteCount` bytes of the reply, and keep no state.
  case reply(byteCount: Int)
  /// The datagram does not begin a handshake.
  case refused
}

/// Creates sealed sessions and answers the first datagrams of handshakes.
public protocol SessionMaker: AnyObject {
  /// Creates the client's end of a session. The client's first datagram is ready after this call. Returns nil if no
  /// memory is left.
  func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)?
  /// Checks a datagram that begins a handshake, and keeps no state. A reply is written to the start of `reply`, which
  /// has `SealLimits.handshakeBytesMax` bytes.
  func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer
  /// Refuses a datagram that `answerHello` accepted, because there is no slot for a session. Writes the refusal to the
  /// start of `reply`, which has `SealLimits.handshakeBytesMax` bytes. Returns the length of the refusal, 0 if there is
  /// none. Keeps no state.
  func refuseHello(_ datagram: RawSpan, reply: UnsafeMutableRawBufferPointer) -> Int
  /// Creates the server's end of a session after `answerHello` returned `.accepted`. Returns nil if no memory is left.
  func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)?
}

/// All limits of sealing.
public enum SealLimits {
  /// The maximum overhead of sealing, in bytes: the type byte (1), and in DTLS 1.2 the record header (13), explicit
  /// nonce (8) and tag (16). RFC 6347, RFC 5288.
  public static let overheadBytesMax = 1 + 13 + 8 + 16
  /// The maximum plaintext of one record, in bytes (RFC 6347, 4.1).
  public static let plaintextBytesMax = 16_384
  /// The header of a handshake payload, in bytes: the boot epochs of both nodes, which precede the datagram.
  public static let handshakeHeaderBytes = 16
  /// The longest handshake datagram, in bytes: the frame payload that every link accepts, minus the epochs. So the
  /// datagrams fit every path, even if the path changes during the handshake.
  public static let handshakeBytesMax = 2_048 - handshakeHeaderBytes
  /// The maximum number of concurrent handshakes, over all peers. A peer has at most one handshake, whose time
  /// `handshakeTime` and `parkedTime` limit. A remote node can take a slot under an invented id. So each slot is
  /// charged to the link over which the frames of that id arrive. Under this rule, one greedy link gets half of the
  /// slots that are not reserved, and each of k greedy links gets 1/(k + 1).
  public static let handshakesMax = 32
  /// The part of `handshakesMax` that is reserved for peers that the operator pinned, and for peers that proved their
  /// key in an earlier session.
  public static let handshakesReserved = 8
  /// A handshake without progress for this time is evicted if another handshake needs its slot. A handshake that takes
  /// three round trips over Bluetooth, of up to 0.4 s each, makes progress more often.
  public static let claimTime = TimeSpan.seconds(1)
  /// A handshake of this age is evicted like an idle one, even if the handshake makes progress. A peer could otherwise
  /// keep its slot by one message in each `claimTime`.
  public static let wholeTime = TimeSpan.seconds(5)
  /// A handshake without progress for this long has failed. The last retransmission that the other end may need is sent
  /// after 7.5 s.
  public static let stallTime = TimeSpan.seconds(12)
  /// The maximum pause before a retry if either node had no slot for the session.
  public static let busyPauseMax = TimeSpan.seconds(4)
  /// The maximum time from the first datagram of a handshake until the session is established. The time in which frames
  /// wait in a parked link is not included, here and in `stallTime`.
  public static let handshakeTime = TimeSpan.seconds(30)
  /// A handshake without progress for this long has failed, even if its link was parked. No send waits longer.
  public static let parkedTime = TimeSpan.seconds(120)
  /// The maximum time for the application's decision on a certificate.
  public static let decisionTime = TimeSpan.seconds(60)
  /// The time for which a session still opens records after a new session has replaced the old session.
  public static let previousTime = TimeSpan.seconds(30)
  /// The age from which a handshake in progress is replaced if the same peer begins a new one.
  public static let replaceTime = TimeSpan.milliseconds(500)
  /// The back-off between handshakes, between session requests and between hellos: the pause doubles from `pauseMin` to
  /// `pauseMax`.
  public static let pauseMin = TimeSpan.milliseconds(500)
  public static let pauseMax = TimeSpan.seconds(16)
  /// The time after a refusal, by either end, before a session with the peer is tried again.
  public static let refusedTime = TimeSpan.seconds(60)
  /// A record that no session can open leads to a new session only if no other record was opened for this time.
  public static let undecryptableTime = TimeSpan.seconds(3)
}

/// The limits after which the keys of a session are renewed.
public struct SessionLifetime: Equatable, Sendable {
  /// The number of records in one direction. This limit is well below that of AES-GCM (2²⁴ records of full length, RFC
  /// 8446, 5.5).
  public var recordsMax: UInt64 = 1 << 23
  /// The time since the session was established.
  public var age = TimeSpan.seconds(24 * 3600)
  public init() {}
}
