import Primitives

/// Identifies a byte stream to or from a member, until its `.ended` event.
public struct StreamHandle: Hashable, Sendable {
  public let number: UInt32
  public init(number: UInt32) { self.number = number }
}

/// How a stream ended. Each of its two ends reports the end once to its application.
public enum StreamEnd: Equatable, Sendable {
  /// All bytes of both directions have arrived and were taken. For a writer the end `finished` confirms that the other
  /// application has taken the bytes.
  case finished
  /// One of the two ends reset the stream: the received bytes are only the beginning of the written bytes.
  case reset(StreamReset)
  /// The member is unreachable, or the handshake between the two members was restarted.
  case lost
}

/// An event of a stream for the applications.
public enum StreamEvent: Equatable, Sendable {
  /// A member opened the stream. The application calls `acceptStream` or `resetStream`; no bytes arrive before
  /// `acceptStream`.
  case opened(SessionHandle, from: MemberAddress, name: [UInt8], isTwoWay: Bool)
  /// The next bytes of the stream. The bytes use the stream's window until `takenFromStream` is called for them.
  case bytes([UInt8])
  /// The other end of the stream has sent all its bytes.
  case finished
  /// `writeStream` accepts bytes again.
  case room
  /// The handle of the stream is no longer valid. Bytes that were not taken must be dropped.
  case ended(StreamEnd)
}

/// One stream between two members, as seen by this end.
struct Stream {
  enum Phase: Equatable {
    /// The open message, which informs the other end of the stream, must still be sent.
    case opening
    /// The application has not decided whether to accept the stream.
    case asked
    case open
    /// The stream was reset here, and the other end must still be notified.
    case reset(StreamReset)
  }

  /// The direction away from this end.
  struct Sending {
    /// Bytes that were accepted from the application and are not sent yet.
    var unsent: [UInt8] = []
    /// Bytes beyond `unsent` that the application may still write, by an earlier result of `streamRoom`.
    var promised = 0
    var sent: UInt64 = 0
    /// The total number of bytes that the other end permits this end to send.
    var limit: UInt64 = 0
    /// Whether bytes of the application were refused, so that `.room` must follow.
    var wantsRoom = false
    /// Whether the application writes no more bytes to the stream.
    var isFinished = false
    var isEndSent = false
    var isEndDelivered = false

    /// Bytes that are buffered or may still be written: at most one turn, or for a few streams up to
    /// `SessionLimits.streamTurnsMax` turns.
    var held: Int { unsent.count + promised }
  }

  /// The direction towards this end.
  struct Receiving {
    var received: UInt64 = 0
    /// The total number of bytes that the other end may send.
    var limit: UInt64 = 0
    /// The number of bytes that the application has taken.
    var taken: UInt64 = 0
    var isFinished = false
    var isWindowDue = false

    /// Bytes that have arrived and are not taken, and bytes that may still arrive.
    var held: UInt64 { (isFinished ? received : limit) - taken }
    /// The part of `held` beyond the guaranteed window, which is charged to the common pool.
    var pooled: UInt64 { held - min(held, SessionLimits.streamWindowSure) }
  }

  let id: UInt32
  let handle: StreamHandle
  /// Whether this end opened the stream.
  let isOwn: Bool
  /// If false, the end that did not open the stream never writes, and only confirms the end of the stream.
  let isTwoWay: Bool
  let name: [UInt8]
  var phase: Phase
  var sending = Sending()
  var receiving = Receiving()

  var isReset: Bool {
    if case .reset = phase { return true }
    return false
  }

  /// Whether the application may write to the stream.
  var isWritable: Bool { (isOwn || isTwoWay) && !sending.isFinished }

  /// Whether all bytes of the other end have arrived and were taken.
  var isRead: Bool { receiving.isFinished && receiving.held == 0 }

  var isOver: Bool { phase == .open && sending.isEndDelivered && isRead }

  /// Whether all bytes were read, none was written back, and only the confirmation of the end is not delivered yet. The
  /// application knows the end already, even if the confirmation is lost.
  var isConfirming: Bool {
    phase == .open && !isOwn && isRead && !isWritable && sending.sent == 0 && sending.unsent.isEmpty
  }

  /// Whether the application here knows how the stream ended, and the other end does not know that yet.
  var isOwed: Bool { isReset || isConfirming }

  /// Whether a message of the stream in the interactive lane is due.
  var hasNotice: Bool { phase == .opening || isReset || (phase == .open && receiving.isWindowDue) }

  /// The bytes that this end grants to the other end from the common pool.
  var pooled: UInt64 { isReset ? 0 : receiving.pooled }

  /// The number of bytes to send in the next turn; 0 if only the end is due, nil if nothing is due.
  var turn: Int? {
    guard phase == .open, !sending.isEndSent else { return nil }
    let count = min(sending.unsent.count, Int(min(sending.limit - sending.sent, UInt64(SessionLimits.streamTurnBytes))))
    if count > 0 { return count }
    if !isOwn && !isTwoWay { return isRead ? 0 : nil }
    // An end must not be sent before the first credit: the open message uses another lane and may arrive later than the
    // end.
    return sending.isFinished && sending.unsent.isEmpty && (sending.limit > 0 || !isOwn) ? 0 : nil
  }
}

/// The streams between two members.
struct PairStreams {
  var all: [Stream] = []
  /// The highest stream number that this end ever used, and the highest that the other end used in this handshake.
  var lastOwn: UInt32 = 0
  var lastTheirs: UInt32 = 0
  /// The index of the stream that sent last.
  private var turn = 0

  func position(of id: UInt32) -> Int? { all.firstIndex { $0.id == id } }

  /// Whether the other end does not know yet how a stream ended.
  var areOwed: Bool { all.contains { $0.isOwed } }

  /// The number of streams that this end (`isOwn`) or the other end has opened. Streams whose reset must still be sent
  /// are included.
  func count(isOwn: Bool) -> Int {
    var count = 0
    for stream in all where stream.isOwn == isOwn { count += 1 }
    return count
  }

  /// The next stream in turn that has something to send in the bulk lane, and its byte count; see `Stream.turn`.
  func next() -> (position: Int, byteCount: Int)? {
    for step in all.indices {
      let position = (turn + 1 + step) % all.count
      if let count = all[position].turn { return (position, count) }
    }
    return nil
  }

  /// Removes and returns the next bytes of a stream, which are sent in its turn.
  mutating func takeTurn(_ position: Int, _ byteCount: Int) -> [UInt8] {
    turn = position
    var bytes: [UInt8] = []
    swap(&bytes, &all[position].sending.unsent)
    if byteCount < bytes.count {
      all[position].sending.unsent.append(copying: bytes.span.bytes.extracting(byteCount...))
      bytes.removeLast(bytes.count - byteCount)
    }
    all[position].sending.sent += UInt64(byteCount)
    return bytes
  }
}
