import Session

/// Groups the members of a session whose tables must become equal. The result has, for each member, the index of one
/// member of its group.
///
/// Two groups can have the same session id and never merge, if no member that knew both groups is left.
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
