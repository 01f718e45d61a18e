import Primitives

/// The application that owns a session, and its user. Both have a share of the limits of all sessions of a node.
public struct SessionOwner: Equatable, Sendable {
  public let application: UInt32
  /// The user. All applications of a user count together.
  public let user: UInt32
  /// Whether the user may take everything that is free: the operator of the box.
  public let isFavoured: Bool

  public init(application: UInt32 = 0, user: UInt32 = 0, isFavoured: Bool = true) {
    self.application = application
    self.user = user
    self.isFavoured = isFavoured
  }
}

extension SessionOwner {
  /// The owner as a holder of `FairPlaces`. The user stands for the link and the application for the node; the operator
  /// counts as pinned.
  var holder: Holder {
    Holder(
      node: NodeID(high: 0, low: UInt64(application)), ingress: UInt64(user), standing: isFavoured ? .pinned : .stranger
    )
  }
}

/// Places that all applications of a node share. Each application has some guaranteed places. No application gets more
/// of the rest than are left for all, and no user more than twice as many as are left. So one application alone gets
/// half of the rest, and one user two thirds. No guaranteed place can be taken by another application.
struct Shares {
  /// The part of the rest that a user may hold, as a multiple of what is left.
  static let userFactor = 2

  /// The guaranteed places of each application. As many applications as there may be have them at once.
  let sure: Int
  /// The places beyond the guaranteed ones.
  let rest: Int

  /// All places.
  var all: Int { sure * SessionLimits.sessionsMax + rest }
}

extension Sessions {
  /// Whether an application may take one more place. `taken` is the number of all taken places, and `held` returns
  /// those of an application. An application without a session has no guaranteed places.
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
