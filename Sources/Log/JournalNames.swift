import Journal
import Primitives

/// The names of nodes, from the journal's records of `Event.peerNamed`. The last recorded name of a node is used. The
/// log can thus name nodes that have left, and needs no running daemon.
public struct JournalNames {
  /// The maximum number of kept names. When it is reached, the oldest name is removed. A mesh has at most 256 nodes at
  /// a time.
  public static let namesMax = 1024

  private var names: [(node: NodeID, name: ArraySlice<UInt8>)] = []

  public init() {}

  /// Collects the names from all records of a journal.
  public init(_ journal: JournalMapping) {
    var sequence = max(journal.oldest, 1)
    let newest = journal.newest
    while sequence <= newest {
      if let record = journal.record(sequence) { note(record) }
      sequence += 1
    }
  }

  /// Stores the name of a node if the record contains one.
  public mutating func note(_ record: JournalRecord) {
    guard record.event == Event.peerNamed.rawValue else { return }
    names.removeAll { $0.node == record.node }
    if names.count == Self.namesMax { names.removeFirst() }
    names.append((record.node, EventFormatter.wordBytes(record)))
  }

  /// The start of a node's name: untrusted text of up to 24 bytes. Empty if the name is unknown.
  public subscript(_ node: NodeID) -> ArraySlice<UInt8> { names.last { $0.node == node }?.name ?? [] }
}
