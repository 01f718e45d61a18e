import Primitives

/// A message whose signatures are being checked. Meanwhile no other message of its node is handled
/// (`Sessions.mayReceive`). So its messages keep their order, and excess ones wait in its own channel.
struct TableInCheck {
  enum Purpose {
    /// The message without its entries.
    case table(TableMessage)
    /// The welcome to an invitation, without its entries. `base` is the table to which they are added; nil for that of
    /// the session.
    case welcome(InvitationHandle, WelcomeMessage, base: SessionTable?)
    /// The invitee's own session, without its entries, to be merged with this one.
    case offer(InvitationHandle, AnswerMessage.Offer)
    /// Records of this node that a remote member sent, because it counts this node as a member. `signed` have their
    /// departures.
    case stale(StaleMembership.Key, records: [MemberRecord], signed: [MemberRecord])
  }

  let node: NodeID
  /// The holder of the share (`FairShare`) that is charged.
  var holder: Int
  /// The session of the table; nil if this node is not in it.
  var session: SessionHandle?
  var purpose: Purpose
  var verification: TableVerification
}

/// The signature checks of received messages, in small steps.
extension Sessions {
  /// Whether a message of another node may be received now. A message that may contain records waits for the previous
  /// one of its node, and for a place of its link. All later messages of the node wait behind it. `byteCount` is the
  /// size of the message.
  public func mayReceive(_ kind: UInt8, byteCount: Int, from node: NodeID, behind holder: Int) -> Bool {
    if isChecking(node) { return false }
    guard Self.mayHaveRecords(kind, byteCount: byteCount) else { return true }
    return inCheck.count < SessionLimits.tablesInCheckMax && !inCheck.contains { $0.holder == holder }
  }

  /// Whether a message may contain records, whose signatures must be checked.
  public static func mayHaveRecords(_ kind: UInt8, byteCount: Int) -> Bool {
    guard byteCount > SessionLimits.messageBytesWithoutRecords else { return false }
    return switch SessionKind(rawValue: kind) {
    case .answer, .welcome, .table: true
    case .invite, .end, .meet, .message, .window, .streamOpen, .streamBytes, .streamEnd, .need, nil: false
    }
  }

  public func isChecking(_ node: NodeID) -> Bool { inCheck.contains { $0.node == node } }

  /// The number of messages in check.
  public var inCheckCount: Int { inCheck.count }

  /// Advances to the next message in check and returns its holder; nil if there is none. `check` continues with it.
  public func nextHolderInCheck() -> Int? {
    if inCheck.isEmpty { return nil }
    checkTurn = checkTurn + 1 < inCheck.count ? checkTurn + 1 : 0
    return inCheck[checkTurn].holder
  }

  /// Continues with the message of `nextHolderInCheck`.
  public func check(_ allowance: inout CheckAllowance, now: Instant) {
    guard checkTurn < inCheck.count else { return }
    // Finishing it may begin another check, or end its session.
    var one = inCheck.remove(at: checkTurn)
    if proceed(&one, &allowance, now) {
      finish(one, now)
      removeEnded(now)
    } else {
      inCheck.insert(one, at: checkTurn)
    }
  }

  /// Charges this node for the messages in check of a link that is gone.
  public func linkLost(_ holder: Int) {
    for index in inCheck.indices where inCheck[index].holder == holder { inCheck[index].holder = FairShare.ownHolder }
  }

  /// Begins to check a message. It is finished at once if the allowance is sufficient.
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

  /// Continues a check. Returns true if it is complete, or no longer relevant.
  private func proceed(_ one: inout TableInCheck, _ allowance: inout CheckAllowance, _ now: Instant) -> Bool {
    switch one.purpose {
    case .table, .offer:
      guard let session = one.session.flatMap({ session($0) }) else { return true }
      return one.verification.proceed(with: session.table, &allowance)
    case .welcome(_, _, let base):
      guard let session = one.session.flatMap({ session($0) }) else { return true }
      guard let base else { return one.verification.proceed(with: session.table, &allowance) }
      // One check for the admission, and this node's signature that accepts it.
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
