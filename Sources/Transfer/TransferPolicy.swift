/// Decides whether, and when, a sender offers again after an attempt without an outcome. Sans-IO: times are in
/// milliseconds of a clock of the owner's choice. `causeway send` and the library follow the same policy. See
/// docs/resources.md, “Limits”.
public struct SenderPolicy: Sendable {
  /// The next step after an attempt without an outcome.
  public enum Decision: Equatable, Sendable {
    /// Offer the resource again after this pause.
    case retry(afterMilliseconds: UInt64)
    /// End the transfer: `TransferLimits.attemptsMax` attempts in a row sent nothing, or refusals went on for
    /// `TransferLimits.turnSeconds`.
    case giveUp
  }

  /// The pause after a failed path whose attempt sent something, in milliseconds. The pause doubles with each further
  /// failure.
  static let pauseMin: UInt64 = 200
  static let pauseMax: UInt64 = 5_000
  /// The pause after a refusal, in milliseconds.
  static let refusedPause: ClosedRange<UInt64> = 250...1_500

  /// Consecutive attempts that sent nothing.
  private var attempts = 0
  /// The bytes that earlier attempts sent.
  private var bytesSent: UInt64 = 0
  /// Until when a refused offer is repeated; nil if the last attempt was not refused.
  private var turnEnd: UInt64?

  public init() {}

  /// Whether the receiver refused the last attempt.
  public var isRefused: Bool { turnEnd != nil }

  /// Handles the failure of the path to the receiver. `bytesSent` counts all attempts. The pause doubles while attempts
  /// send nothing.
  public mutating func pathFailed(bytesSent: UInt64) -> Decision {
    attempts = bytesSent > self.bytesSent ? 0 : attempts + 1
    self.bytesSent = bytesSent
    turnEnd = nil
    return attempts < TransferLimits.attemptsMax ? .retry(afterMilliseconds: pause) : .giveUp
  }

  /// Handles a refusal. A receiver with too many offers refuses a stream just as an application without files does. So
  /// a refused offer is repeated until a slot must have become free. `random` spreads senders that wait for one slot.
  public mutating func refused(random: UInt64, nowMilliseconds now: UInt64) -> Decision {
    let end = turnEnd ?? now + TransferLimits.turnSeconds * 1_000
    turnEnd = end
    let range = Self.refusedPause
    return now < end
      ? .retry(afterMilliseconds: range.lowerBound + random % (range.upperBound - range.lowerBound + 1)) : .giveUp
  }

  /// The pause before the next attempt after a failed path.
  public var pause: UInt64 { min(Self.pauseMin << UInt64(min(attempts, 5)), Self.pauseMax) }
}

/// Decides what follows an attempt that brought a receiver no outcome.
public enum ReceiverPolicy {
  /// The next step after a failed attempt.
  public enum Decision: Equatable, Sendable {
    /// All files are stored, and only the sender's confirmation is missing: the transfer is complete.
    case isComplete
    /// The sender cancelled, or an offer without an answer lost its path. A repeated offer is shown again.
    case cancelledByPeer
    /// Wait `TransferLimits.returnSeconds` for the same offer.
    case awaitsReturn
  }

  /// `isCut`: the sender reset the stream. `isAccepted`: the offer was accepted once.
  public static func attemptFailed(isCut: Bool, isAccepted: Bool, isComplete: Bool) -> Decision {
    if isComplete { return .isComplete }
    return isCut || !isAccepted ? .cancelledByPeer : .awaitsReturn
  }
}
