/// Places that all applications of a node share: each has some for sure, and of the rest none gets more than are left for all. So one
/// application alone gets half of the rest, and none can take a place from one that has fewer than its sure ones.
struct Shares {
  /// Places that each application has for sure. As many applications as there may be have them at once.
  let sure: Int
  /// The others.
  let rest: Int

  /// All places.
  var all: Int { sure * SessionLimits.sessionsMax + rest }
}

extension Sessions {
  /// Whether an application may take one more place. `taken` are all that are taken, and `held` says how many of them an
  /// application has. Who has no session any more has none for sure.
  func mayTake(_ owner: UInt32, of shares: Shares, taken: Int, held: (UInt32) -> Int) -> Bool {
    if taken >= shares.all { return false }
    let own = held(owner)
    if own < shares.sure { return true }
    var left = shares.rest - taken
    for index in sessions.indices where !sessions[..<index].contains(where: { $0.owner == sessions[index].owner }) {
      left += min(held(sessions[index].owner), shares.sure)
    }
    return own - shares.sure < left
  }
}
