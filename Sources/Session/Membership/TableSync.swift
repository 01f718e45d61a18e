import Primitives

/// The synchronisation of a session's table with one member, sans-IO: which table message is due to the member, and
/// when (docs/protocol.md, 12.5).
///
/// A table message is a snapshot (the complete table), a delta (the records that changed since the last message), or
/// only the digest of the table. A member whose digest differs answers with its own digest or table. So the digest is
/// sent first where the difference may disappear without a snapshot.
struct TableSync {
  /// The state of this end's own table.
  struct State {
    let digest: TableDigest
    let sequence: UInt64
    let changedAt: Instant
  }

  enum Message: Equatable {
    case snapshot
    /// The records that changed after this sequence number of the table.
    case delta(since: UInt64)
    case digest
  }

  /// The times at which the next messages are due; `.never` if a message is not due.
  private var deltaAt = Instant.never
  private var digestAt = Instant.never
  private var snapshotAt = Instant.never

  /// All records that changed up to this sequence number of the table were sent to the other end.
  private var sentUpTo: UInt64 = 0
  /// The digest that was last sent to the other end, and the digest that the other end reported last.
  private var sentDigest: TableDigest?
  private var theirDigest: TableDigest?
  private var theirDigestAt = Instant.zero
  /// The time since which the member's digest has differed from this end's; `.never` if the last report was equal.
  private var differsSince = Instant.never
  /// Whether the member has requested a snapshot.
  private var isSnapshotRequested = false
  /// The time of the last snapshot to the member, and the sequence number of the table at that time.
  private var snapshotSentAt = Instant.zero
  private var snapshotSequence = UInt64.max

  // MARK: Changes

  /// Schedules a delta, unless an earlier one is scheduled.
  mutating func scheduleDelta(at time: Instant) { deltaAt = min(deltaAt, time) }

  /// Schedules the next delta for `time`, even if an earlier one was scheduled.
  mutating func postponeDelta(to time: Instant) { deltaAt = time }

  /// Schedules a digest, unless an earlier one is scheduled.
  mutating func scheduleDigest(at time: Instant) { digestAt = min(digestAt, time) }

  /// Notes that the member has all records up to this sequence number, and schedules a delta with the later ones.
  mutating func knows(upTo sequence: UInt64, _ now: Instant) {
    sentUpTo = sequence
    deltaAt = now
  }

  /// Handles the start of a handshake. Earlier table messages may be lost. The member's handshake message will report
  /// the digest of its table.
  mutating func begin() {
    sentUpTo = 0
    sentDigest = nil
    snapshotSequence = .max
  }

  /// Handles the loss of the member. A due delta stays due.
  mutating func lose() {
    theirDigest = nil
    cancelDigestAndSnapshot()
  }

  mutating func cancelDigestAndSnapshot() {
    digestAt = .never
    snapshotAt = .never
  }

  // MARK: Received messages

  /// Handles the member's request for a snapshot.
  mutating func receiveRequest(_ own: State, _ now: Instant) {
    isSnapshotRequested = true
    snapshotAt = max(now, snapshotAllowedAt(own.sequence))
  }

  /// Handles the digest of the member's table.
  mutating func receive(_ digest: TableDigest, _ own: State, _ now: Instant) {
    theirDigest = digest
    theirDigestAt = now
    if digest == own.digest {
      sentUpTo = own.sequence
      sentDigest = digest
      snapshotAt = .never
      differsSince = .never
    } else {
      differsSince = min(differsSince, now)
      snapshotAt = min(snapshotAt, max(now + SessionLimits.askPause * 2, snapshotAllowedAt(own.sequence)))
    }
  }

  // MARK: Sent messages

  func isDue(_ now: Instant) -> Bool { deltaAt <= now || digestAt <= now || snapshotAt <= now }

  /// The earliest time after `now` at which a message is due; `.never` if there is none.
  func nextDeadline(after now: Instant) -> Instant {
    func later(_ time: Instant) -> Instant { time > now ? time : .never }
    return min(later(deltaAt), later(digestAt), later(snapshotAt))
  }

  /// The message that is due; nil if none is. After the message is sent, call `sent`.
  mutating func nextMessage(_ own: State, _ now: Instant) -> Message? {
    postponeSnapshot(own, now)
    guard isDue(now) else { return nil }
    if snapshotAt <= now && theirDigest != own.digest { return .snapshot }
    if deltaAt <= now { return .delta(since: sentUpTo) }
    if theirDigest == own.digest { snapshotAt = .never }
    guard digestAt <= now else { return nil }
    if sentDigest != own.digest { return .digest }
    // A scheduled snapshot stays, because the member reported another digest or requested the table.
    digestAt = .never
    return nil
  }

  mutating func sent(_ message: Message, _ own: State, _ now: Instant) {
    // A digest does not replace the snapshot for a member that has reported another digest: that member may have sent
    // its own snapshot a moment ago, and sends no further one for a minute.
    if message == .digest { digestAt = .never } else { cancelDigestAndSnapshot() }
    deltaAt = .never
    sentUpTo = own.sequence
    sentDigest = own.digest
    guard message == .snapshot else { return }
    isSnapshotRequested = false
    snapshotSentAt = now
    snapshotSequence = own.sequence
    // The member may have ignored the snapshot. The digest is sent again later, and a member whose table still differs
    // answers with its own digest.
    sentDigest = nil
    digestAt = now + SessionLimits.sameTableTime
  }

  /// Postpones or cancels a due snapshot if the table has changed since the member reported another digest. While
  /// tables keep changing, e.g. when many members join, most of them become equal without a snapshot. So a snapshot
  /// waits until this table has been unchanged for `SessionLimits.quietTime`. After this time, the digest is sent
  /// instead, and only a member that still differs needs the snapshot.
  private mutating func postponeSnapshot(_ own: State, _ now: Instant) {
    guard snapshotAt <= now, !isSnapshotRequested, theirDigest != own.digest, theirDigestAt <= own.changedAt,
      now - differsSince < SessionLimits.unlikeTime
    else { return }
    let restsAt = own.changedAt + SessionLimits.quietTime
    if restsAt > now {
      snapshotAt = restsAt
      return
    }
    snapshotAt = .never
    digestAt = now
    // The digest was sent before. A member that received the digest and does not answer has the same table.
    if sentDigest == own.digest { differsSince = .never }
  }

  /// The earliest time of the next snapshot to the member. After the last snapshot an interval must pass, and a longer
  /// one if the table is unchanged.
  private func snapshotAllowedAt(_ sequence: UInt64) -> Instant {
    snapshotSentAt + (snapshotSequence == sequence ? SessionLimits.sameTableTime : SessionLimits.tableTime)
  }
}
