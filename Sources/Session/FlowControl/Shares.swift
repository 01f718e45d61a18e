import Primitives

/// The application that owns a session, and its user. The session's use of limits that all sessions of a node share is
/// charged to both application and user.
public struct SessionOwner: Equatable, Sendable {
  public let application: UInt32
  /// The user of the application. All applications of one user are charged together.
  public let user: UInt32
  /// Whether the user is the operator of the box, who may use everything that is free.
  public let isFavoured: Bool

  public init(application: UInt32 = 0, user: UInt32 = 0, isFavoured: Bool = true) {
    self.application = application
    self.user = user
    self.isFavoured = isFavoured
  }
}

extension SessionOwner {
  /// The owner in the form in which `FairSlots` charges slots. The user stands for the link, and the application for
  /// the node. The operator has the class `.pinned`.
  var holder: Holder {
    Holder(
      node: NodeID(high: 0, low: UInt64(application)), ingress: UInt64(user), standing: isFavoured ? .pinned : .stranger
    )
  }
}

/// Slots that all applications of a node share. Each application has `sure` guaranteed slots, which no other
/// application can use. No application gets more of the other slots than are left for all applications, and no user
/// more than twice as many as are left. So one application alone gets half of the other slots, and one user two thirds.
struct Shares {
  /// The maximum of the other slots that a user may hold, as a multiple of the slots that are left.
  static let userFactor = 2

  /// The number of guaranteed slots of each application. `SessionLimits.sessionsMax` applications can have these slots
  /// at the same time.
  let sure: Int
  /// The number of slots beyond the guaranteed ones.
  let rest: Int

  /// The number of all slots.
  var all: Int { sure * SessionLimits.sessionsMax + rest }
}

extension Sessions {
  /// Whether an application can use one more slot. `taken` is the number of all used slots, and `held` returns the
  /// slots of one application. Slots of an application without a session are not counted as guaranteed.
  func mayTake(_ owner: SessionOwner, of shares: Shares, taken: Int, held: (UInt32) -> Int) -> Bool {
    if taken >= shares.all { return false }
    let own = held(owner.application)
    if own < shares.sure { return true }
    var left = shares.rest - taken
    var heldByUser = 0
    for index in sessions.indices {
      let other = sessions[index].owner
      if sessions[..<index].contains(where: { $0.owner.application == other.application }) { continue }
      let held = held(other.application)
      left += min(held, shares.sure)
      if other.user == owner.user { heldByUser += max(held - shares.sure, 0) }
    }
    guard ShareRule.allows(1, held: own - shares.sure, free: left, factor: 1) else { return false }
    return owner.isFavoured || ShareRule.allows(1, held: heldByUser, free: left, factor: Shares.userFactor)
  }
}
