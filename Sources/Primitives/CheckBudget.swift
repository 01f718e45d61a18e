/// The signatures that this node checks because another one sent them: of advertisements, deny-lists and session tables.
///
/// Two bounds hold for all of them together. The rate is shared by the links over which they came (`FairRate`). A piece is what
/// is checked between two looks at other events (`Limits.checksPerPiece`); the owner begins the next one in a wake-up of its own.
/// The unit is the check of one signature; other work counts as so many checks as it takes time.
public struct CheckBudget {
  /// The answer to a request for a check.
  public enum Answer {
    case granted
    /// The link has its share already.
    case overShare
    /// The piece is used up: ask again in the next one.
    case pieceUsed
  }

  private var rate = FairRate(burst: Limits.checksAtOnceMax, perSecond: Limits.checksPerSecond)
  private var left = Limits.checksPerPiece
  private var pieceBegan = Instant.zero

  public init() {}

  /// Begins the next piece. The caller has looked at other events since the last one.
  public mutating func beginPiece(now: Instant) {
    pieceBegan = now
    left = Limits.checksPerPiece
  }

  /// Asks for one check for a link.
  public mutating func take(by holder: Int, now: Instant) -> Answer {
    renew(now)
    guard left > 0 else { return .pieceUsed }
    guard rate.take(by: holder, now: now) else { return .overShare }
    left -= 1
    return .granted
  }

  /// Takes what may be checked of session tables for a link now, at most a piece. A table leaves the link some of its share for
  /// advertisements, without which nobody finds a way.
  public mutating func takeForTables(by holder: Int, now: Instant) -> Int {
    renew(now)
    let taken = rate.take(upTo: left, by: holder, sparing: Limits.checksSparedByTables, now: now)
    left -= taken
    return taken
  }

  /// Gives back what was taken for tables and not used.
  public mutating func giveBack(_ checks: Int, by holder: Int) {
    rate.giveBack(checks, by: holder)
    left += checks
  }

  /// Takes a check of the piece alone: for what another rule bounds. False when the piece is used up.
  public mutating func takeOfPiece(now: Instant) -> Bool {
    renew(now)
    guard left > 0 else { return false }
    left -= 1
    return true
  }

  /// After a while without a check there were other events.
  private mutating func renew(_ now: Instant) {
    if now - pieceBegan >= Limits.pieceTime { beginPiece(now: now) }
  }
}
