import Primitives

/// A message whose signatures are being checked. Nothing more is read of its node meanwhile (`Sessions.mayReceive`): so all that
/// it sends is handled in its order, and what it sends too much of waits in its own channel.
struct TableInCheck {
  enum Purpose {
    /// The message without its entries.
    case table(TableMessage)
    /// The welcome to an invitation, without its entries. `base` is the table to which they are added: nil for that of the session.
    case welcome(InvitationHandle, WelcomeMessage, base: SessionTable?)
    /// The invitee's own session, without its entries, which is to become one with this one.
    case offer(InvitationHandle, AnswerMessage.Offer)
    /// Records of this node that somebody shows who takes it for a member. `signed` are ended.
    case stale(StaleMembership.Key, records: [MemberRecord], signed: [MemberRecord])
  }

  let node: NodeID
  /// The holder of the share that is charged.
  var holder: Int
  /// The session whose table it is; nil for one that this node is not in.
  var session: SessionHandle?
  var purpose: Purpose
  var verification: TableVerification
}

/// The checks of signatures in messages of other nodes, piece by piece.
extension Sessions {
  /// Whether a message of another node may be received now. One that can have records waits until the one before is done, and
  /// until its link has a place; every other one of that node waits behind it. `byteCount` is that of the message.
  public func mayReceive(_ kind: UInt8, byteCount: Int, from node: NodeID, behind holder: Int) -> Bool {
    if isChecking(node) { return false }
    guard Self.mayHaveRecords(kind, byteCount: byteCount) else { return true }
    return inCheck.count < SessionLimits.tablesInCheckMax && !inCheck.contains { $0.holder == holder }
  }

  /// Whether a message can have records, whose signatures must be checked.
  public static func mayHaveRecords(_ kind: UInt8, byteCount: Int) -> Bool {
    guard byteCount > SessionLimits.messageBytesWithoutRecords else { return false }
    return switch SessionKind(rawValue: kind) {
    case .answer, .welcome, .table: true
    case .invite, .end, .meet, .message, .window, .streamOpen, .streamBytes, .streamEnd, .need, nil: false
    }
  }

  public func isChecking(_ node: NodeID) -> Bool { inCheck.contains { $0.node == node } }

  /// Messages in check.
  public var inCheckCount: Int { inCheck.count }

  /// The holder whose turn it is: `check` goes on with its message.
  public func nextHolderInCheck() -> Int? {
    if inCheck.isEmpty { return nil }
    checkTurn = checkTurn + 1 < inCheck.count ? checkTurn + 1 : 0
    return inCheck[checkTurn].holder
  }

  /// Goes on with the message of `nextHolderInCheck`.
  public func check(_ allowance: inout CheckAllowance, now: Instant) {
    guard checkTurn < inCheck.count else { return }
    // What follows from it may begin another one, or end its session.
    var one = inCheck.remove(at: checkTurn)
    if proceed(&one, &allowance, now) {
      finish(one, now)
      removeEnded(now)
    } else {
      inCheck.insert(one, at: checkTurn)
    }
  }

  /// A link is gone: what is in check for it is charged to this node.
  public func linkLost(_ holder: Int) {
    for index in inCheck.indices where inCheck[index].holder == holder { inCheck[index].holder = FairShare.ownHolder }
  }

  /// Begins to check a message; it is done at once if the allowance lasts.
  func begin(
    _ purpose: TableInCheck.Purpose, _ entries: TableEntries, of session: SessionHandle?, from node: NodeID,
    _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    var one = TableInCheck(
      node: node, holder: allowance.holder, session: session, purpose: purpose,
      verification: TableVerification(entries, isOwn: node == local))
    if proceed(&one, &allowance, now) {
      finish(one, now)
    } else if inCheck.count < SessionLimits.tablesInCheckMax {
      inCheck.append(one)
    }
  }

  /// True when all is checked, or nothing of it matters any more.
  private func proceed(_ one: inout TableInCheck, _ allowance: inout CheckAllowance, _ now: Instant) -> Bool {
    switch one.purpose {
    case .table, .offer:
      guard let session = one.session.flatMap({ session($0) }) else { return true }
      return one.verification.proceed(with: session.table, &allowance)
    case .welcome(_, _, let base):
      guard let session = one.session.flatMap({ session($0) }) else { return true }
      guard let base else { return one.verification.proceed(with: session.table, &allowance) }
      // The admission, and this node's signature that accepts it.
      return one.verification.proceed(with: base, &allowance)
        && allowance.take(1 + SessionLimits.checksPerSignature)
    case .stale(let key, var records, var signed):
      while let record = records.last {
        guard allowance.take(1 + SessionLimits.checksPerSignature) else { break }
        records.removeLast()
        if let ended = endOfStale(record) { signed.append(ended) }
      }
      one.purpose = .stale(key, records: records, signed: signed)
      return records.isEmpty
    }
  }

  private func finish(_ one: TableInCheck, _ now: Instant) {
    let verification = one.verification
    if verification.isForged { countForgery(of: one.node, max(verification.wrongSignatures, 1), now) }
    switch one.purpose {
    case .table(let message):
      guard let session = one.session.flatMap({ session($0) }) else { return }
      take(verification, into: session, now)
      heardTable(message, hadEntries: true, session, from: one.node, now)
    case .welcome(let invitation, let welcome, let base):
      welcomed(invitation, welcome, base, verification, from: one.node, now)
    case .offer(let invitation, let offer): merge(invitation, offer, verification, now)
    case .stale(let key, _, let signed): staleSigned(key, signed)
    }
  }
}
