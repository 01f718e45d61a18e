import Primitives

/// What a session is between: two lives of two nodes.
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

  /// The node with the lower id speaks first.
  public var isClient: Bool { local < peer }
}

/// Why a handshake came to nothing. The raw value is in the journal.
public enum SessionFailure: UInt8, Error, Sendable {
  /// The other end proved another key than that of the node it was to be.
  case wrongIdentity = 1
  /// No certificate, or one without an ECDSA P-256 key.
  case noIdentity = 2
  /// The other end fell silent.
  case timedOut = 3
  /// The other end ended it with an alert.
  case endedByPeer = 4
  /// Its messages do not belong to any handshake.
  case broken = 5
  case noMemory = 6
}

/// How far a session is.
public enum SessionState: Equatable, Sendable {
  case handshaking
  /// The other end holds the key of the node that it was to be.
  case established
  case failed(SessionFailure)
}

/// One cryptographic session between this node and one other: handshake, sealing and opening. mbedTLS's DTLS in the
/// firmware; a fast stand-in in the simulator.
///
/// It loses nothing by lost, doubled, reordered, altered or foreign input: such input is dropped. After every call
/// but `seal` and `open` the owner calls `nextHandshake` until it gives 0, and sets its timer to `nextDeadline`.
public protocol PeerSession: AnyObject {
  var state: SessionState { get }
  /// The other end's certificates in DER, its own first; empty until established.
  var peerChain: [[UInt8]] { get }
  /// Whether this datagram, perhaps sent again, began the session.
  func began(with hello: RawSpan) -> Bool
  /// A handshake datagram arrived. Also an established session takes them: its last flight may have been lost.
  func receiveHandshake(_ datagram: RawSpan, now: Instant)
  /// Writes the next datagram of the handshake to the start of `buffer`, which has `SealLimits.handshakeBytesMax`
  /// bytes; its length, 0 when there is none.
  func nextHandshake(into buffer: UnsafeMutableRawBufferPointer) -> Int
  /// When `handleTimeout` is due.
  var nextDeadline: Instant { get }
  func handleTimeout(now: Instant)
  /// Writes the record that seals `plaintext` (1 … `SealLimits.plaintextBytesMax` bytes) to the start of `record`, which
  /// has `SealLimits.overheadBytesMax` bytes more; its length, 0 when it failed.
  func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int
  /// Writes what `record` seals to the start of `plaintext`, which is as long as the record; its length, nil when the
  /// record is altered, was opened before, is too old, or belongs to another session.
  func open(_ record: RawSpan, into plaintext: UnsafeMutableRawBufferPointer) -> Int?
}

/// What a server says to the first datagram of a handshake, before it keeps anything of it.
public enum HelloAnswer: Equatable, Sendable {
  /// It proves that its sender hears what is sent to the node it claims to be: a session may be made.
  case accepted
  /// Send this many bytes back, and forget it.
  case reply(byteCount: Int)
  /// Not the beginning of a handshake.
  case refused
}

/// Makes sessions.
public protocol SessionMaker: AnyObject {
  /// The client's end of a new session; its first datagram is ready. Nil without memory.
  func beginSession(_ name: SessionName, now: Instant) -> (any PeerSession)?
  /// Judges a datagram that begins a handshake, without keeping anything. A reply is written to `reply`, which has
  /// `SealLimits.handshakeBytesMax` bytes.
  func answerHello(
    _ datagram: RawSpan, _ name: SessionName, reply: UnsafeMutableRawBufferPointer, now: Instant
  ) -> HelloAnswer
  /// The server's end of a session whose beginning was accepted. Nil without memory.
  func acceptSession(_ datagram: RawSpan, _ name: SessionName, now: Instant) -> (any PeerSession)?
}

/// Every limit of sealing, by name.
public enum SealLimits {
  /// What sealing adds to a payload at most: the octet of its type, and of DTLS 1.2 header (13), explicit nonce (8) and
  /// tag (16) (RFC 6347, RFC 5288).
  public static let overheadBytesMax = 1 + 13 + 8 + 16
  /// One record's plaintext (RFC 6347, 4.1).
  public static let plaintextBytesMax = 16_384
  /// Both epochs stand before the datagram in a handshake frame.
  public static let handshakeHeaderBytes = 16
  /// A handshake's datagrams fit every path whatever becomes of it in the meantime: the frame payload that every link
  /// takes, without the epochs.
  public static let handshakeBytesMax = 2_048 - handshakeHeaderBytes
  /// Sessions under way at once, of all peers. Each has at most one, so one peer cannot hold the others up for longer
  /// than `handshakeTime`.
  public static let handshakesMax = 32
  /// From its first datagram to its confirmation, the application's decision not counted.
  public static let handshakeTime = TimeSpan.seconds(30)
  /// How long the application may take to decide on a certificate.
  public static let decisionTime = TimeSpan.seconds(60)
  /// A replaced session still opens what was sealed before the change.
  public static let previousTime = TimeSpan.seconds(30)
  /// A peer's new attempt replaces one under way from this age on.
  public static let replaceTime = TimeSpan.milliseconds(500)
  /// Pauses between attempts, between invitations and between hellos double from the first to the last.
  public static let pauseMin = TimeSpan.milliseconds(500)
  public static let pauseMax = TimeSpan.seconds(16)
  /// A refused peer is tried again after this time.
  public static let refusedTime = TimeSpan.seconds(60)
  /// What cannot be opened makes for a new session only when nothing was opened for this long.
  public static let undecryptableTime = TimeSpan.seconds(3)
}

/// When a session's keys are renewed.
public struct SessionLifetime: Equatable, Sendable {
  /// Records in either direction: far below where AES-GCM (2²⁴ records of full length, RFC 8446, 5.5) gets weak.
  public var recordsMax: UInt64 = 1 << 23
  public var age = TimeSpan.seconds(24 * 3600)
  public init() {}
}
