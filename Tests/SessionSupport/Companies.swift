import Session

/// Groups members whose parts of a session must converge into one. The result holds, for each member, the index of a
/// representative of its group. Two parts of a session can have one id and still never merge: no member that knew both
/// is left.
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
