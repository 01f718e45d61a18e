import Primitives

/// One session of this node.
final class LocalSession {
  enum Phase: Equatable {
    case open
    /// The application has left. The other members are notified until `until`. A member that is owed ends of streams receives
    /// these first, until `owing` at most.
    case leaving(owing: Instant, until: Instant)
    case over
  }

  /// Somebody to whom a table goes although it is no member here.
  struct Stranger {
    enum Wish {
      /// It met this member but is unknown: it is asked for its table.
      case ask
      /// It is told how its own membership ended.
      case news
    }
    let address: MemberAddress
    /// A session that it knows.
    let session: SessionID
    let wish: Wish
    var at: Instant
  }

  /// An address that was welcomed when this one was, and may be a member: it is told of this one, so that the two know
  /// of each other when the inviter is gone before it has told them.
  struct Newcomer {
    let address: MemberAddress
    var at: Instant
    var greetings = 0
  }

  let handle: SessionHandle
  let address: MemberAddress
  let owner: SessionOwner
  /// The application decides on the certificate of each member.
  let judges: Bool
  var table: SessionTable
  var phase = Phase.open
  /// By address.
  var pairs: [Pair] = []
  var strangers: [Stranger] = []
  var newcomers: [Newcomer] = []
  /// What waits for the application of those that are members no longer: of an address one entry.
  var unreadOfGone: [(address: MemberAddress, unread: Unread)] = []
  /// Messages that have no result yet, for each member.
  var unsentMessages = 0
  /// The pair whose streams sent last.
  var streamTurn = 0
  /// It accepts those that it gathers, and is accepted by them, without a question.
  var gathers = false
  /// The addresses that it gathers, in their order.
  var gatherings: [Gathering] = []
  /// So many of them may be invited at once: one, and twice as many with each that comes alone.
  var gatherWindow = 1
  /// When it is time to see whom to invite.
  var gatherAt = Instant.never
  /// When its table changed, or somebody came who is to invite.
  var grewAt = Instant.zero
  /// When its table changed last.
  var changedAt = Instant.zero
  /// It waits for a welcome into another session.
  var isJoining = false

  init(_ handle: SessionHandle, _ address: MemberAddress, owner: SessionOwner, judges: Bool, _ table: SessionTable) {
    self.handle = handle
    self.owner = owner
    self.address = address
    self.judges = judges
    self.table = table
  }

  var isOpen: Bool { phase == .open }

  /// Members do not know yet how streams ended.
  var owesStreams: Bool { pairs.contains { $0.streams.areOwed } }

  /// Nobody else was ever in it.
  var isAlone: Bool { table.records.count == 1 && table.origins.count == 1 }

  func position(of address: MemberAddress) -> Int? { pairs.firstIndex { $0.address == address } }

  /// A session that both this end and a member know: the one that it named last. Of one that has not said anything yet,
  /// the one of its newest joined ticket, or of any; its application may have begun again and not know that one any more.
  func session(knownTo pair: Pair) -> SessionID? {
    if let named = pair.named { return named }
    let records = table.records(of: pair.address)
    return (records.first { $0.isJoined } ?? records.first)?.session
  }
}
