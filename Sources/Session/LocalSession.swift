import Primitives

/// A session that a local application is in.
final class LocalSession {
  enum Phase: Equatable {
    case open
    /// The application has left. The node sends departure notices to the other members until `until`. A member that
    /// lacks stream ends receives its stream ends first, until `owing` at most.
    case leaving(owing: Instant, until: Instant)
    case over
  }

  /// A non-member that is to be sent a table.
  struct Stranger {
    /// The reason for the table message.
    enum Wish {
      /// The address sent a handshake message but is not in the table, so it is asked for its own table.
      case ask
      /// The address is notified how its own membership ended.
      case news
    }
    let address: MemberAddress
    /// A session that the non-member knows.
    let session: SessionID
    let wish: Wish
    var at: Instant
  }

  /// A pending member: an address that was welcomed by the same inviter, or the inviter itself, and is not in the table
  /// yet. This end sends a table to the pending member. So the pending member and this end know each other even if the
  /// inviter disappears without notifying them.
  struct PendingMember {
    let address: MemberAddress
    var at: Instant
    var greetings = 0
  }

  let handle: SessionHandle
  let address: MemberAddress
  let owner: SessionOwner
  /// Whether the application decides on the certificate of each member.
  let decidesOnMembers: Bool
  var table: SessionTable
  var phase = Phase.open
  /// The departure of the application that has left, while signatures for it are still to be made. Until then no table
  /// is sent, because a member that has received a table is sent no other one.
  var unsignedDeparture: (reason: Departure.Reason, text: [UInt8])?
  /// The other members of the session, ascending by address.
  var peers: [MemberPeer] = []
  var strangers: [Stranger] = []
  var pendingMembers: [PendingMember] = []
  /// Unread messages of former members: one entry for each address.
  var unreadOfGone: [(address: MemberAddress, unread: Unread)] = []
  /// The number of messages without a delivery result. A message to n members is counted n times.
  var unsentMessages = 0
  /// The index of the peer whose streams sent last.
  var streamTurn = 0
  var autoJoin: AutoJoin
  /// The time of the last change of the table.
  var changedAt = Instant.zero
  /// Whether the application accepted an invitation and the welcome into the inviter's session has not arrived.
  var isJoining = false

  init(
    _ handle: SessionHandle, _ address: MemberAddress, owner: SessionOwner, decidesOnMembers: Bool,
    _ table: SessionTable
  ) {
    self.handle = handle
    self.owner = owner
    self.address = address
    self.decidesOnMembers = decidesOnMembers
    self.table = table
    autoJoin = AutoJoin(own: address)
  }

  var isOpen: Bool { phase == .open }

  /// Whether a stream end still has to be sent to a member, or be acknowledged by one.
  var owesStreams: Bool { peers.contains { $0.streams.areOwed } }

  /// Whether no other address was ever in the session.
  var isAlone: Bool { table.records.count == 1 && table.origins.count == 1 }

  func position(of address: MemberAddress) -> Int? { peers.firstIndex { $0.address == address } }

  /// The session id to use in messages to a member. A merged session has several ids, and the member may know only some
  /// of these ids. The result is the id that the member named last. Before the member has named an id, the result is
  /// the session id of a joined record of the member, or of any record. A member whose application has restarted may
  /// not know the named session any more.
  func session(knownTo peer: MemberPeer) -> SessionID? {
    if let named = peer.named { return named }
    let records = table.records(of: peer.address)
    return (records.first { $0.isJoined } ?? records.first)?.session
  }
}
