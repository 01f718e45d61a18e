import Primitives

/// The schedule of requests from clients that need a signature of this node.
///
/// Only one request that needs a signature is carried out in each pass of the event loop. One signature takes as long
/// as other events are allowed to wait. Each user has a token bucket, and all users share one more bucket. A request
/// that exceeds a rate waits and is not refused. Only signatures that were made are counted: a refused request without
/// a signature uses no token. Requests of the operator do not wait and are not counted.
///
/// Departures of applications that have ended take the same turns, those of the operator too, but without a rate.
public struct SignatureTurns {
  /// When a request is carried out.
  public enum Turn: Equatable {
    case now
    /// A request with a signature was already carried out in this pass of the event loop.
    case nextWakeUp
    /// The token bucket of the user or of all users is empty until this time.
    case at(Instant)
  }

  private var users = SourceBuckets(LocalLimits.signaturesPerUser)
  private var all = TokenBucket()
  /// The pass of the event loop in which the last signature was made, identified by its time.
  private var signedAt: Instant?

  public init() {}

  /// When a request of a user is carried out, or a departure is signed. `now` is the time at which this pass of the
  /// event loop began. `user` is nil for the operator, who has no rate.
  public func turn(of user: UInt32?, now: Instant) -> Turn {
    if let user {
      let due = max(users.next(UInt64(user)), all.next(LocalLimits.signaturesOfAll))
      if due > now { return .at(due) }
    }
    return signedAt == now ? .nextWakeUp : .now
  }

  /// The order among waiting users. The user with the lowest value is first, because that user has used the smallest
  /// part of its rate.
  public func order(of user: UInt32) -> Instant { users.next(UInt64(user)) }

  /// Counts the signatures of a request or a departure. Signatures that exceed a rate are not deducted from later
  /// tokens.
  public mutating func spend(_ signatures: UInt64, of user: UInt32?, now: Instant) {
    if signatures == 0 { return }
    signedAt = now
    guard let user else { return }
    for _ in 0..<signatures {
      _ = users.take(UInt64(user), now: now)
      _ = all.take(LocalLimits.signaturesOfAll, now: now)
    }
  }
}
