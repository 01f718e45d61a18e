/// Limits how many signatures this node verifies because others sent them: those of advertisements, deny-lists and
/// session tables.
///
/// Two bounds hold for all of them together. The rate is shared among the links that delivered them (`FairRate`). A
/// piece (`Limits.checksPerPiece`) bounds the checks made in a row before other events are handled. The owner begins
/// each further piece in its own wake-up. The unit is the check of one signature; other work counts as the number of
/// checks that take the same time.
public struct CheckBudget {
  /// The answer to a request for a check.
  public enum Answer {
    case granted
    /// The link has used its share.
    case overShare
    /// The piece is used up: retry in the next one.
    case pieceUsed
  }

  private var rate = FairRate(burst: Limits.checksAtOnceMax, perSecond: Limits.checksPerSecond)
  private var left = Limits.checksPerPiece
  private var pieceBegan = Instant.zero

  public init() {}

  /// Begins the next piece. Call it after other events were handled.
  public mutating func beginPiece(now: Instant) {
    pieceBegan = now
    left = Limits.checksPerPiece
  }

  /// Takes one check for a link.
  public mutating func take(by holder: Int, now: Instant) -> Answer {
    renew(now)
    guard left > 0 else { return .pieceUsed }
    guard rate.take(by: holder, now: now) else { return .overShare }
    left -= 1
    return .granted
  }

  /// Takes checks of session tables for a link: as many as its share and the piece allow. Some of the share is left for
  /// advertisements, because nodes cannot find routes without them.
  public mutating func takeForTables(by holder: Int, now: Instant) -> Int {
    renew(now)
    let taken = rate.take(upTo: left, by: holder, sparing: Limits.checksSparedByTables, now: now)
    left -= taken
    return taken
  }

  /// Returns unused checks that were taken for tables.
  public mutating func giveBack(_ checks: Int, by holder: Int) {
    rate.giveBack(checks, by: holder)
    left += checks
  }

  /// Takes one check from the piece but not from the rate, for work that has its own rate limit. Returns false when the
  /// piece is used up.
  public mutating func takeOfPiece(now: Instant) -> Bool {
    renew(now)
    guard left > 0 else { return false }
    left -= 1
    return true
  }

  /// Begins a new piece when none was begun for `Limits.pieceTime`: other events were handled in between.
  private mutating func renew(_ now: Instant) {
    if now - pieceBegan >= Limits.pieceTime { beginPiece(now: now) }
  }
}
