import Session

/// The parts of sessions that must be whole: for each of these members the first one of its part. Two parts of one session
/// of which nobody is left that knew both do not meet, although they have one id.
public func companies(
  of members: [(address: MemberAddress, table: SessionTable)], mayMeet: (Int, Int) -> Bool
) -> [Int] {
  var companies = Array(members.indices)
  for one in members.indices {
    for other in members.indices
    where members[one].table.id == members[other].table.id && mayMeet(one, other)
      && members[one].table.isJoined(members[other].address)
    {
      let first = companies[one], second = companies[other]
      for member in members.indices where companies[member] == second { companies[member] = first }
    }
  }
  return companies
}
