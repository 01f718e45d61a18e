import Journal
import Primitives

/// The names that nodes gave themselves, from the records of a journal (`Event.peerNamed`): of each node the last one. So a log
/// names also those who left, and without the daemon.
public struct JournalNames {
  /// Nodes whose names are kept; the oldest gives way. A mesh has at most 256 nodes at a time.
  public static let namesMax = 1024

  private var names: [(node: NodeID, name: ArraySlice<UInt8>)] = []

  public init() {}

  /// The names in all of the journal.
  public init(_ journal: JournalMapping) {
    var sequence = max(journal.oldest, 1)
    let newest = journal.newest
    while sequence <= newest {
      if let record = journal.record(sequence) { hear(record) }
      sequence += 1
    }
  }

  /// Learns a name, if the record tells one.
  public mutating func hear(_ record: JournalRecord) {
    guard record.event == Event.peerNamed.rawValue else { return }
    names.removeAll { $0.node == record.node }
    if names.count == Self.namesMax { names.removeFirst() }
    names.append((record.node, EventFormatter.wordBytes(record)))
  }

  /// The beginning of the node's name, up to 24 bytes: untrusted text. Empty when it is not known.
  public subscript(_ node: NodeID) -> ArraySlice<UInt8> { names.last { $0.node == node }?.name ?? [] }
}
