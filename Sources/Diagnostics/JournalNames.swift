import Journal
import Primitives

/// The names of nodes, from the journal's records of `Event.peerNamed`. The last name of each node counts. A log can
/// thus name nodes that have left, and works without the daemon.
public struct JournalNames {
  /// The maximum number of kept names; the oldest is evicted. A mesh has at most 256 nodes at a time.
  public static let namesMax = 1024

  private var names: [(node: NodeID, name: ArraySlice<UInt8>)] = []

  public init() {}

  /// Collects the names in the whole journal.
  public init(_ journal: JournalMapping) {
    var sequence = max(journal.oldest, 1)
    let newest = journal.newest
    while sequence <= newest {
      if let record = journal.record(sequence) { hear(record) }
      sequence += 1
    }
  }

  /// Stores the name if the record contains one.
  public mutating func hear(_ record: JournalRecord) {
    guard record.event == Event.peerNamed.rawValue else { return }
    names.removeAll { $0.node == record.node }
    if names.count == Self.namesMax { names.removeFirst() }
    names.append((record.node, EventFormatter.wordBytes(record)))
  }

  /// The start of the node's name: untrusted text of up to 24 bytes. Empty if it is unknown.
  public subscript(_ node: NodeID) -> ArraySlice<UInt8> { names.last { $0.node == node }?.name ?? [] }
}
