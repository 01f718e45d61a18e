import Primitives

/// A stream of bytes to or from a member, until `.ended` has been told of it.
public struct StreamHandle: Hashable, Sendable {
  public let number: UInt32
  public init(number: UInt32) { self.number = number }
}

/// How a stream ended. Each ends once, at either end.
public enum StreamEnd: Equatable, Sendable {
  /// All bytes of both directions have arrived and were taken. A writer knows by it that the other application has them.
  case finished
  /// One of the two ends cut it: what came is only the beginning.
  case reset(StreamReset)
  /// The member is out of reach, or the two have met anew.
  case lost
}

/// What the applications are told of a stream.
public enum StreamEvent: Equatable, Sendable {
  /// A member opened it: `acceptStream`, or `resetStream`. Nothing comes before.
  case opened(SessionHandle, from: MemberAddress, name: [UInt8], isTwoWay: Bool)
  /// The next bytes. They count as held here until `takenFromStream`.
  case bytes([UInt8])
  /// These were all bytes that the other end has written.
  case finished
  /// `writeStream` takes bytes again.
  case room
  /// The handle is no longer valid. Bytes that were not taken are to be dropped.
  case ended(StreamEnd)
}

/// One stream between two members, seen from one of them.
struct Stream {
  enum Phase: Equatable {
    /// The other end is to be told of it.
    case opening
    /// The application has not decided whether it wants it.
    case asked
    case open
    /// It is over, and the other end is to be told.
    case reset(StreamReset)
  }

  /// The direction away from this end.
  struct Sending {
    /// Taken from the application and not sent.
    var unsent: [UInt8] = []
    /// What the application was told beside that it may write.
    var promised = 0
    var sent: UInt64 = 0
    /// Bytes that may be sent in all.
    var limit: UInt64 = 0
    /// The application was refused bytes.
    var wantsRoom = false
    /// The application writes no more.
    var isFinished = false
    var isEndSent = false
    var isEndDelivered = false

    /// Bytes that are here, or may come at any time: a turn, or of few streams two.
    var held: Int { unsent.count + promised }
  }

  /// The direction towards this end.
  struct Receiving {
    var received: UInt64 = 0
    /// Bytes that the other end may send in all.
    var limit: UInt64 = 0
    /// Bytes that the application has taken.
    var taken: UInt64 = 0
    var isFinished = false
    var isWindowDue = false

    /// Bytes that are here and not taken, or may come at any time.
    var held: UInt64 { (isFinished ? received : limit) - taken }
    /// Those above what each stream has for sure: they are of the pool.
    var pooled: UInt64 { held - min(held, SessionLimits.streamWindowSure) }
  }

  let id: UInt32
  let handle: StreamHandle
  let isOwn: Bool
  /// Whoever was opened a stream that is not only confirms the end of what came by an end of its own.
  let isTwoWay: Bool
  let name: [UInt8]
  var phase: Phase
  var sending = Sending()
  var receiving = Receiving()

  var isReset: Bool {
    if case .reset = phase { return true }
    return false
  }

  /// The application may write.
  var isWritable: Bool { (isOwn || isTwoWay) && !sending.isFinished }

  /// All that the other end has written is here, and was taken.
  var isRead: Bool { receiving.isFinished && receiving.held == 0 }

  var isOver: Bool { phase == .open && sending.isEndDelivered && isRead }

  /// All was read, and nothing was written back: only the confirmation of the end is on its way. The application has the end
  /// already, whatever becomes of the confirmation.
  var isConfirming: Bool {
    phase == .open && !isOwn && isRead && !isWritable && sending.sent == 0 && sending.unsent.isEmpty
  }

  /// The application here knows the end, and the other end does not yet.
  var isOwed: Bool { isReset || isConfirming }

  /// A message in the interactive lane is due.
  var hasNotice: Bool { phase == .opening || isReset || (phase == .open && receiving.isWindowDue) }

  /// Bytes of the common pool that the other end was granted.
  var pooled: UInt64 { isReset ? 0 : receiving.pooled }

  /// The bytes of the next turn, 0 when only the end is due; nil when nothing is.
  var turn: Int? {
    guard phase == .open, !sending.isEndSent else { return nil }
    let count = min(sending.unsent.count, Int(min(sending.limit - sending.sent, UInt64(SessionLimits.streamTurnBytes))))
    if count > 0 { return count }
    if !isOwn && !isTwoWay { return isRead ? 0 : nil }
    // Before credit the other end may not know the stream yet: its opening goes in another lane.
    return sending.isFinished && sending.unsent.isEmpty && (sending.limit > 0 || !isOwn) ? 0 : nil
  }
}

/// The streams between two members.
struct PairStreams {
  var all: [Stream] = []
  /// The greatest number that this end has ever given, and that the other has given under this end's present number.
  var lastOwn: UInt32 = 0
  var lastTheirs: UInt32 = 0
  /// The stream that sent last.
  private var turn = 0

  func position(of id: UInt32) -> Int? { all.firstIndex { $0.id == id } }

  /// The other end does not know yet how a stream ended.
  var areOwed: Bool { all.contains { $0.isOwed } }

  /// Streams that one of the two opened, those included of which only the reset is still to be sent.
  func count(isOwn: Bool) -> Int {
    var count = 0
    for stream in all where stream.isOwn == isOwn { count += 1 }
    return count
  }

  /// The next stream in turn that has something to send in the bulk lane, and how much; see `Stream.turn`.
  func next() -> (position: Int, byteCount: Int)? {
    for step in all.indices {
      let position = (turn + 1 + step) % all.count
      if let count = all[position].turn { return (position, count) }
    }
    return nil
  }

  /// A stream takes its turn: its next bytes.
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
