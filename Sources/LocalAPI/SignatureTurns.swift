import Primitives

/// The schedule of requests that need a signature of this node, over all users.
///
/// Only one such request is carried out in each wake-up, because a signature takes as long as other events may wait.
/// Each user has a token bucket, and all users share another. A request beyond a rate waits and is not refused. Only
/// signatures that were made are counted; a refused request costs nothing. The operator is not counted.
public struct SignatureTurns {
  /// When a request is carried out.
  public enum Turn: Equatable {
    case now
    /// Another request with a signature was carried out in this wake-up.
    case nextWakeUp
    /// A token bucket, of the user or of all users, is empty until then.
    case at(Instant)
  }

  private var users = SourceBuckets(LocalLimits.signaturesPerUser)
  private var all = TokenBucket()
  /// The wake-up of the last signature.
  private var signedAt: Instant?

  public init() {}

  /// The turn of a user's request. `now` is the time of the wake-up.
  public func turn(of user: UInt32, now: Instant) -> Turn {
    let due = max(users.next(UInt64(user)), all.next(LocalLimits.signaturesOfAll))
    if due > now { return .at(due) }
    return signedAt == now ? .nextWakeUp : .now
  }

  /// The order among waiting users. The lowest value goes first, because that user has used the least of its rate.
  public func order(of user: UInt32) -> Instant { users.next(UInt64(user)) }

  /// Counts the signatures of a request. Signatures beyond a rate create no debt.
  public mutating func spend(_ signatures: UInt64, of user: UInt32, now: Instant) {
    if signatures == 0 { return }
    signedAt = now
    for _ in 0..<signatures {
      _ = users.take(UInt64(user), now: now)
      _ = all.take(LocalLimits.signaturesOfAll, now: now)
    }
  }
}
