import Primitives

/// A received message whose signatures are being checked. During the check no other message of its node is handled
/// (`Sessions.mayReceive`). So the messages of the node keep their order, and later ones wait in the node's own
/// channel.
struct TableInCheck {
  enum Purpose {
    /// The message without its entries.
    case table(TableMessage)
    /// A welcome to an invitation, without its entries. `base` is the table to which the entries are added; nil means
    /// the table of the session.
    case welcome(InvitationHandle, WelcomeMessage, base: SessionTable?)
    /// The invitee's own session, without its entries, which is to be merged with the inviter's session.
    case offer(InvitationHandle, AnswerMessage.Offer)
    /// Records of this node that a remote member sent, because the sender's table wrongly lists this node. `records`
    /// still need a departure, and the records in `signed` have a departure.
    case stale(StaleMembership.Key, records: [MemberRecord], signed: [MemberRecord])
  }

  let node: NodeID
  /// The link whose share of signature checks is charged, or this node: a holder number of `FairShare`.
  var holder: Int
  /// The session of the table; nil if no application here is in the session.
  var session: SessionHandle?
  var purpose: Purpose
  var verification: TableVerification
}

/// The messages in check, at most one for each link. The links take turns.
struct TableChecks {
  private var messages: [TableInCheck] = []
  /// The index of the message that is checked next.
  private var turn = 0

  var count: Int { messages.count }
  func contains(from node: NodeID) -> Bool { messages.contains { $0.node == node } }
  func contains(behind holder: Int) -> Bool { messages.contains { $0.holder == holder } }

  /// Advances to the next message, and returns the holder number that is charged; nil if there is no message.
  mutating func advance() -> Int? {
    if messages.isEmpty { return nil }
    turn = turn + 1 < messages.count ? turn + 1 : 0
    return messages[turn].holder
  }

  /// Removes the message to which `advance` advanced; nil if it is gone.
  mutating func takeCurrent() -> TableInCheck? { turn < messages.count ? messages.remove(at: turn) : nil }

  /// Puts a message back whose check is not complete.
  mutating func putBack(_ message: TableInCheck) { messages.insert(message, at: min(turn, messages.count)) }

  /// Adds a message. Does nothing if there are `SessionLimits.tablesInCheckMax` messages.
  mutating func add(_ message: TableInCheck) {
    if messages.count < SessionLimits.tablesInCheckMax { messages.append(message) }
  }

  /// Charges this node for the messages of a link that has ended.
  mutating func linkLost(_ holder: Int) {
    for index in messages.indices where messages[index].holder == holder {
      messages[index].holder = FairShare.ownHolder
    }
  }

  /// Continues the checks for a session with another session into which the first session was merged.
  mutating func move(from session: SessionHandle, to other: SessionHandle) {
    for index in messages.indices where messages[index].session == session { messages[index].session = other }
  }
}

/// The signature checks of received messages, in small steps.
extension Sessions {
  /// Whether a message of `byteCount` bytes from another node can be handled now. No message of a node is handled while
  /// an earlier message of the node is in check. A message that may contain records also waits while its link has a
  /// message in check, or all nodes together have `SessionLimits.tablesInCheckMax`. `holder` is the link's number in
  /// `FairShare`.
  public func mayReceive(_ kind: UInt8, byteCount: Int, from node: NodeID, behind holder: Int) -> Bool {
    if isChecking(node) { return false }
    guard Self.mayHaveRecords(kind, byteCount: byteCount) else { return true }
    return checks.count < SessionLimits.tablesInCheckMax && !checks.contains(behind: holder)
  }

  /// Whether a message may contain records, whose signatures must be checked.
  public static func mayHaveRecords(_ kind: UInt8, byteCount: Int) -> Bool {
    guard byteCount > SessionLimits.messageBytesWithoutRecords else { return false }
    return switch SessionKind(rawValue: kind) {
    case .answer, .welcome, .table: true
    case .invite, .end, .meet, .message, .window, .streamOpen, .streamBytes, .streamEnd, .need, nil: false
    }
  }

  public func isChecking(_ node: NodeID) -> Bool { checks.contains(from: node) }

  /// The number of messages in check.
  public var inCheckCount: Int { checks.count }

  /// Advances to the next message in check, and returns the holder number that is charged; nil if there is no message.
  /// `check` continues with that message.
  public func nextHolderInCheck() -> Int? { checks.advance() }

  /// Continues the check of the message to which `nextHolderInCheck` advanced.
  public func check(_ allowance: inout CheckAllowance, now: Instant) {
    // The message is removed first, because finishing it may begin another check or end the message's session.
    guard var one = checks.takeCurrent() else { return }
    if proceed(&one, &allowance, now) {
      finish(one, now)
      removeEnded(now)
    } else {
      checks.putBack(one)
    }
  }

  /// Charges this node for the messages in check of a link that has ended.
  public func linkLost(_ holder: Int) { checks.linkLost(holder) }

  /// Begins to check a message. The check is finished at once if the allowance is sufficient.
  func begin(
    _ purpose: TableInCheck.Purpose, _ entries: TableEntries, of session: SessionHandle?, from node: NodeID,
    _ allowance: inout CheckAllowance, _ now: Instant
  ) {
    var one = TableInCheck(
      node: node, holder: allowance.holder, session: session, purpose: purpose,
      verification: TableVerification(entries, isOwn: node == local))
    if proceed(&one, &allowance, now) { finish(one, now) } else { checks.add(one) }
  }

  /// Continues a check. Returns true if the check is complete, or if its session has ended.
  private func proceed(_ one: inout TableInCheck, _ allowance: inout CheckAllowance, _ now: Instant) -> Bool {
    switch one.purpose {
    case .table, .offer:
      guard let session = one.session.flatMap({ session($0) }) else { return true }
      return one.verification.proceed(with: session.table, &allowance)
    case .welcome(_, _, let base):
      guard let session = one.session.flatMap({ session($0) }) else { return true }
      guard let base else { return one.verification.proceed(with: session.table, &allowance) }
      // The allowance must also cover the check of the admission, and this node's signature that accepts the admission.
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
    if verification.isForged { offenders.count(one.node, max(verification.wrongSignatures, 1), now) }
    switch one.purpose {
    case .table(let message):
      guard let session = one.session.flatMap({ session($0) }) else { return }
      take(verification, into: session, now)
      handleTable(message, hadEntries: true, session, from: one.node, now)
    case .welcome(let invitation, let welcome, let base):
      welcomed(invitation, welcome, base, verification, from: one.node, now)
    case .offer(let invitation, let offer): merge(invitation, offer, verification, now)
    case .stale(let key, _, let signed): stale.complete(key, signed)
    }
  }
}
