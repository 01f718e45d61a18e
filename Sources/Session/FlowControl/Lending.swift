import Channel
import Primitives

/// The division of the buffer space for messages that wait for applications. Buffer space for every message is set
/// aside when credit for the message is granted, before the message is sent.
///
/// The share pool is divided among the members of all sessions. A member gets its share at each handshake, and again
/// whenever the application took one of its messages. A member's share is a quarter of what is free, and at most the
/// pool divided by the session's member limit. A member that needs more than its share requests a reservation for one
/// message from the borrow pool.
///
/// The sessions of an application get at most twice what is left of the borrow pool. So n applications that do not read
/// leave 1/(2n + 1) of the pool to the other applications. The sessions of a user get at most twice what is left of the
/// share pool. In the borrow pool a user's factor is four instead of two.
extension Sessions {
  // MARK: Shares

  /// The bytes of the share pool that can be assigned to a member now.
  func share(_ session: LocalSession, _ index: Int) -> UInt64 {
    let pool = SessionLimits.sharePoolBytes
    var all: UInt64 = 0, ofUser: UInt64 = 0
    func count(_ share: UInt64, _ owner: SessionOwner) {
      all += share
      if owner.user == session.owner.user { ofUser += share }
    }
    unreadOfEnded.forEach { unread, owner in count(unread.share, owner) }
    for other in sessions {
      for unread in other.unreadOfGone { count(unread.unread.share, other.owner) }
      for peer in other.peers.indices where other !== session || peer != index {
        count(other.peers[peer].credit.share, other.owner)
      }
    }
    let mayHave = SessionLimits.shares.bytesMax(
      held: Int(ofUser), taken: Int(all), isFavoured: session.owner.isFavoured)
    let share = min(
      (pool - min(pool, all)) / 4, pool / UInt64(session.table.rules.membersMax), Credit.shareMax, UInt64(mayHave))
    return share < Credit.shareMin ? 0 : share
  }

  // MARK: Reservations

  /// Handles a member's request for credit, or the member's return of unused credit.
  func receiveNeed(_ need: NeedMessage, from node: NodeID, _ now: Instant) {
    guard let (session, index) = peer(need.number, node) else { return }
    guard session.peers[index].credit.isGivenBack(need.givenBack) else { return beginAnew(session, index, now) }
    if need.givenBack > 0 { roomAppeared(session, index, now) }
    let credit = session.peers[index].credit
    guard need.limit > credit.receiveLimit else { return }
    // A member requests credit for one message at a time, so a greater request violates the protocol.
    guard need.limit - credit.receiveLimit <= Credit.costMax else { return beginAnew(session, index, now) }
    let turn = creditRequests.request()
    if credit.asked == 0 { session.peers[index].credit.askTurn = turn }
    session.peers[index].credit.asked = need.limit
  }

  /// Notes that buffer space of a member's messages became free. A wider window for the member and waiting requests of
  /// other members can then be granted.
  func roomAppeared(_ session: LocalSession, _ index: Int, _ now: Instant) {
    creditRequests.roomAppeared()
    if session.peers[index].handshake.isNumberConfirmed
      && session.peers[index].credit.isWindowDue(share(session, index))
    {
      session.peers[index].windowAt = now
    }
  }

  /// Grants requests for credit in the order of their arrival. In the sessions of one application, no request overtakes
  /// an earlier one that waits for buffer space.
  func lend(_ now: Instant) {
    guard creditRequests.takeDue() else { return }
    var asks: [(turn: UInt64, session: LocalSession, index: Int)] = []
    for session in sessions where session.isOpen {
      for index in session.peers.indices where session.peers[index].credit.asked > 0 {
        asks.append((session.peers[index].credit.askTurn, session, index))
      }
    }
    asks.sort { $0.turn < $1.turn }
    var short: [UInt32] = []
    for (_, session, index) in asks where !short.contains(session.owner.application) {
      if isLent(session, index, now) { continue }
      short.append(session.owner.application)
    }
    if !short.isEmpty { takeBack(now) }
  }

  /// Grants one request for credit. Returns false if the application or its user can get no more of the borrow pool
  /// now.
  private func isLent(_ session: LocalSession, _ index: Int, _ now: Instant) -> Bool {
    let share = share(session, index)
    var wider = session.peers[index].credit
    if wider.widen(share) >= wider.asked {
      wider.asked = 0
      session.peers[index].credit = wider
      session.peers[index].windowAt = now
      return true
    }
    // The request exceeds one message, so the application must read the member's earlier messages first. Other members
    // do not wait for this application.
    guard let loan = session.peers[index].credit.loan else { return true }
    let more = loan - session.peers[index].credit.lent
    let (all, own, ofUser) = lentBytes(session.owner)
    guard all + more <= SessionLimits.loanPoolBytes,
      own + more <= 2 * (SessionLimits.loanPoolBytes - all - more),
      Int(more)
        <= SessionLimits.loans.bytesMax(held: Int(ofUser), taken: Int(all), isFavoured: session.owner.isFavoured)
    else { return false }
    session.peers[index].credit.lend(now)
    session.peers[index].windowAt = now
    return true
  }

  /// The reserved bytes: of all sessions, of the sessions of one application, and of the sessions of its user.
  private func lentBytes(_ owner: SessionOwner) -> (all: UInt64, own: UInt64, ofUser: UInt64) {
    var all: UInt64 = 0, own: UInt64 = 0, ofUser: UInt64 = 0
    func count(_ lent: UInt64, _ other: SessionOwner) {
      all += lent
      if other.application == owner.application { own += lent }
      if other.user == owner.user { ofUser += lent }
    }
    unreadOfEnded.forEach { unread, owner in count(unread.lent, owner) }
    for session in sessions {
      for unread in session.unreadOfGone { count(unread.unread.lent, session.owner) }
      for peer in session.peers.indices { count(session.peers[peer].credit.lent, session.owner) }
    }
    return (all, own, ofUser)
  }

  /// Withdraws reservations that were unused for `SessionLimits.takeBackTime`, because other members wait. The restart
  /// of the handshake voids the credit.
  private func takeBack(_ now: Instant) {
    for session in sessions where session.isOpen {
      for index in session.peers.indices where session.peers[index].credit.takeBackAt <= now {
        beginAnew(session, index, now)
        creditRequests.roomAppeared()
      }
    }
  }

  /// Schedules the return of credit that the application requested and has not used in time. The next message of the
  /// application requests credit again.
  func giveBack(_ session: LocalSession, _ now: Instant) {
    for index in session.peers.indices where session.peers[index].credit.giveBackAt <= now {
      session.peers[index].credit.giveBackAt = .never
      session.peers[index].credit.isGiveBackDue = true
    }
  }

  /// The request for credit, or the return of credit, that is due; nil if none is.
  func needOutput(_ session: LocalSession, _ index: Int, _ canSend: (NodeID, Lane, Int) -> Bool) -> SessionOutput? {
    let peer = session.peers[index]
    guard peer.phase == .connected, peer.credit.isAskDue || peer.credit.isGiveBackDue,
      canSend(peer.address.node, .interactive, NeedMessage.byteCount)
    else { return nil }
    var need = NeedMessage(number: peer.theirNumber, givenBack: 0, limit: 0)
    if peer.credit.isGiveBackDue {
      need.givenBack = session.peers[index].credit.giveBack()
    } else {
      need.limit = session.peers[index].credit.asks()
    }
    return output(
      .need, need.bytes, to: peer.address.node, .member(session.handle, peer.address, number: peer.number))
  }

  // MARK: Unread messages of former members and ended sessions

  /// Keeps the buffer space of a former member's unread messages.
  func keepUnread(_ session: LocalSession, _ address: MemberAddress, _ credit: Credit) {
    creditRequests.roomAppeared()
    if credit.unread > 0 { session.unreadOfGone.append((address, credit.rest)) }
  }

  /// Removes and returns the unread messages of a former member that has returned. The messages are charged to the
  /// member again.
  func takeUnread(_ session: LocalSession, _ address: MemberAddress) -> Unread {
    guard let index = session.unreadOfGone.firstIndex(where: { $0.address == address }) else { return Unread() }
    return session.unreadOfGone.remove(at: index).unread
  }

  /// Keeps the buffer space of an ended session's unread messages, until the application takes them or `discard` is
  /// called.
  func keepUnread(_ session: LocalSession) {
    creditRequests.roomAppeared()
    var sum = Unread()
    for peer in session.peers { sum += peer.credit.rest }
    for index in session.peers.indices { session.peers[index].credit = Credit(Unread()) }
    for unread in session.unreadOfGone { sum += unread.unread }
    session.unreadOfGone = []
    unreadOfEnded.keep(sum, of: session.handle, session.owner)
  }

  /// Discards the unread messages of an ended session. If `byteCount` is given, one message of that size stays, because
  /// the application is about to take it.
  public func discard(_ handle: SessionHandle, exceptMessageOf byteCount: Int? = nil) {
    if unreadOfEnded.discard(handle, exceptMessageOf: byteCount) { creditRequests.roomAppeared() }
  }

  /// Notes that the application took a message of a former member or an ended session.
  func takenOfGone(_ byteCount: Int, _ address: MemberAddress, _ handle: SessionHandle) {
    creditRequests.roomAppeared()
    if let session = session(handle) {
      guard let index = session.unreadOfGone.firstIndex(where: { $0.address == address }) else { return }
      session.unreadOfGone[index].unread.takes(byteCount)
      if session.unreadOfGone[index].unread.bytes == 0 { session.unreadOfGone.remove(at: index) }
    } else {
      unreadOfEnded.took(byteCount, of: handle)
    }
  }

  // MARK: For tests

  /// Bytes that wait for applications, or for which credit is granted: those of the share pool and those of the borrow
  /// pool.
  public var roomGranted: (shares: UInt64, loans: UInt64) {
    var shares: UInt64 = 0
    unreadOfEnded.forEach { unread, _ in shares += unread.share }
    for session in sessions {
      for unread in session.unreadOfGone { shares += unread.unread.share }
      for peer in session.peers.indices { shares += session.peers[peer].credit.share }
    }
    return (shares, lentBytes(SessionOwner()).all)
  }
}
