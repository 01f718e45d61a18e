import Primitives
import Session

extension Sessions {
  /// Describes the state of a session at this node as text, with node numbers instead of ids. The text helps a
  /// developer who replays a seed.
  public func report(_ handle: SessionHandle, number: (NodeID) -> Int) -> [String] {
    guard let table = table(of: handle) else { return [] }
    let members = members(of: handle).map { "\(number($0.address.node)) \($0.state)" }
    var lines = ["session \(table.id.high % 10_000) slots \(table.membersMax): \(members)"]
    for record in table.records {
      lines.append(
        "  \(record.session.high % 10_000): \(number(record.address.node)) version \(record.ticket.version)"
          + " depth \(record.ticket.depth) by \(number(record.ticket.admitter.node))"
          + " \(record.departure.map { $0.isEjection ? "ejected" : "left, \($0.reason)" } ?? "joined")")
    }
    return lines
  }
}
