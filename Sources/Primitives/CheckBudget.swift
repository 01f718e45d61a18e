/// Limits how many received signatures this node verifies. A check is the verification of one signature of an
/// advertisement, a deny-list or a session table.
///
/// Two limits apply to all checks together. The first is a rate, which the links that delivered the signatures share
/// (`FairRate`). The second is the piece: `Limits.checksPerPiece` checks may follow each other before other events are
/// handled. The owner of the budget begins each further piece in a new pass of the event loop. Other costly work is
/// charged as the number of checks that take the same time.
public struct CheckBudget {
  /// The answer to a request for a check.
  public enum Answer {
    case granted
    /// The link has used its share.
    case overShare
    /// The piece is used up: retry in the next piece.
    case pieceUsed
  }

  private var rate = FairRate(burst: Limits.checksAtOnceMax, perSecond: Limits.checksPerSecond)
  private var left = Limits.checksPerPiece
  private var pieceBegan = Instant.zero

  public init() {}

  /// Begins the next piece. The owner calls this method after other events were handled.
  public mutating func beginPiece(now: Instant) {
    pieceBegan = now
    left = Limits.checksPerPiece
  }

  /// Takes one check from the link's share and from the piece. `holder` is the number of the link (`FairShare`).
  public mutating func take(by holder: Int, now: Instant) -> Answer {
    renew(now)
    guard left > 0 else { return .pieceUsed }
    guard rate.take(by: holder, now: now) else { return .overShare }
    left -= 1
    return .granted
  }

  /// Takes checks of session tables for a link: as many as its share and the piece allow. Returns the number taken.
  /// `Limits.checksSparedByTables` checks of the share are left for advertisements, because nodes cannot find routes
  /// without advertisements.
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

  /// Charges a link for work that was done already, as a number of checks. The link gets no further checks until the
  /// rate has paid for the work.
  public mutating func charge(_ checks: Int, to holder: Int, now: Instant) {
    rate.charge(checks, to: holder, now: now)
    left = max(0, left - checks)
  }

  /// Begins a new piece when none was begun for `Limits.pieceTime`: other events were handled in between.
  private mutating func renew(_ now: Instant) {
    if now - pieceBegan >= Limits.pieceTime { beginPiece(now: now) }
  }
}
