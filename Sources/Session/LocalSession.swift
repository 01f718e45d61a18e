import Primitives

/// One session of this node.
final class LocalSession {
  enum Phase: Equatable {
    case open
    /// The application has left. The other members are notified until `until`. A member that lacks ends of streams
    /// receives these first, until `owing` at most.
    case leaving(owing: Instant, until: Instant)
    case over
  }

  /// A non-member that is to be sent a table.
  struct Stranger {
    enum Wish {
      /// It sent a handshake message but is unknown: it is asked for its table.
      case ask
      /// It is notified how its own membership ended.
      case news
    }
    let address: MemberAddress
    /// A session that the non-member knows.
    let session: SessionID
    let wish: Wish
    var at: Instant
  }

  /// A pending member: an address that was welcomed at the same time and may be a member. It is notified of this
  /// member. So the two know each other even if the inviter disappears before it has notified them.
  struct Newcomer {
    let address: MemberAddress
    var at: Instant
    var greetings = 0
  }

  let handle: SessionHandle
  let address: MemberAddress
  let owner: SessionOwner
  /// Whether the application decides on the certificate of each member.
  let judges: Bool
  var table: SessionTable
  var phase = Phase.open
  /// The other members, ascending by address.
  var pairs: [Pair] = []
  var strangers: [Stranger] = []
  var newcomers: [Newcomer] = []
  /// Unread messages of former members: one entry for each address.
  var unreadOfGone: [(address: MemberAddress, unread: Unread)] = []
  /// Messages without a result, counted for each receiving member.
  var unsentMessages = 0
  /// The index of the pair whose streams sent last.
  var streamTurn = 0
  /// Whether auto-join is on: invitations between gathered addresses are accepted without asking the application.
  var gathers = false
  /// The gathered addresses, ascending.
  var gatherings: [Gathering] = []
  /// The number of auto-join invitations at once: 1, doubled with each address that joins alone.
  var gatherWindow = 1
  /// The time of the next check of auto-join.
  var gatherAt = Instant.never
  /// The time of the last change of the table, or of the last appearance of an address that invites first.
  var grewAt = Instant.zero
  /// The time of the last change of the table.
  var changedAt = Instant.zero
  /// Whether the session waits for a welcome into another session.
  var isJoining = false

  init(_ handle: SessionHandle, _ address: MemberAddress, owner: SessionOwner, judges: Bool, _ table: SessionTable) {
    self.handle = handle
    self.owner = owner
    self.address = address
    self.judges = judges
    self.table = table
  }

  var isOpen: Bool { phase == .open }

  /// Whether members do not know yet how streams ended.
  var owesStreams: Bool { pairs.contains { $0.streams.areOwed } }

  /// Whether no other address was ever in the session.
  var isAlone: Bool { table.records.count == 1 && table.origins.count == 1 }

  func position(of address: MemberAddress) -> Int? { pairs.firstIndex { $0.address == address } }

  /// A session that both this end and a member know: the one that the member named last. Before it has named one, it is
  /// that of its newest joined ticket, or of any ticket. Its application may have restarted and no longer know that
  /// session.
  func session(knownTo pair: Pair) -> SessionID? {
    if let named = pair.named { return named }
    let records = table.records(of: pair.address)
    return (records.first { $0.isJoined } ?? records.first)?.session
  }
}
