import Primitives

/// When requests are carried out for which this node signs: those of all users together.
///
/// One such request is carried out in each wake-up, because a signature takes as long as other events may wait. Each user has a
/// rate, and all have one together. A request beyond a rate waits, and is not refused. Only signatures that were made are
/// counted: a request that is refused costs nothing. The operator is not counted.
public struct SignatureTurns {
  /// When one request is carried out.
  public enum Turn: Equatable {
    case now
    /// Another request that signs was carried out in this wake-up.
    case nextWakeUp
    /// The rate of the user, or that of all, is used up until then.
    case at(Instant)
  }

  private var users = SourceBuckets(LocalLimits.signaturesPerUser)
  private var all = TokenBucket()
  /// The wake-up in which a signature was made last.
  private var signedAt: Instant?

  public init() {}

  /// The turn of a user's request. `now` is the time of the wake-up.
  public func turn(of user: UInt32, now: Instant) -> Turn {
    let due = max(users.next(UInt64(user)), all.next(LocalLimits.signaturesOfAll))
    if due > now { return .at(due) }
    return signedAt == now ? .nextWakeUp : .now
  }

  /// The order of users that wait: the lowest value is first, because that user has used least of its rate.
  public func order(of user: UInt32) -> Instant { users.next(UInt64(user)) }

  /// A request was carried out. Signatures beyond a rate are not owed.
  public mutating func spend(_ signatures: UInt64, of user: UInt32, now: Instant) {
    if signatures == 0 { return }
    signedAt = now
    for _ in 0..<signatures {
      _ = users.take(UInt64(user), now: now)
      _ = all.take(LocalLimits.signaturesOfAll, now: now)
    }
  }
}
