import Primitives

/// The cause of a record, to which the journal charges the record (`RepeatFilter`). A cause is proven, never claimed:
/// the interface that carried the bytes, the user that the kernel reports, a node that has proved its key.
public struct RecordCause: Equatable, Sendable {
  /// The number of holders besides the box itself. Interfaces or users whose numbers are equal modulo this count are
  /// one holder.
  static let holders = FairShare.holders - 1

  /// The holder to which the record is charged (`FairShare`).
  let holder: Int
  /// The node about which the record is, if the operator has decided on that node; otherwise `.none`.
  let decided: NodeID

  private init(holder: Int, decided: NodeID = .none) {
    self.holder = holder
    self.decided = decided
  }

  /// The box itself, or nobody in particular.
  public static let box = RecordCause(holder: FairShare.ownHolder)

  /// All senders on the network interface with this index. 0 stands for Bluetooth, and for an unknown interface. Within
  /// one interface a stranger can have any number of addresses, so addresses are not distinguished.
  public static func interface(_ index: UInt32) -> RecordCause { RecordCause(holder: Int(index) % holders) }

  /// A user of this machine.
  public static func user(_ number: UInt32) -> RecordCause { RecordCause(holder: Int(number) % holders) }

  /// The same cause, for a record about a node that has proved its key and on which the operator has decided: the
  /// operator has pinned or revoked its key. With `.none` the record is about no such node.
  public func about(_ node: NodeID) -> RecordCause { RecordCause(holder: holder, decided: node) }

  /// The holder of the reserve to which the record is charged; nil if the record must not use the reserve.
  var reserveHolder: Int? {
    if decided != .none { return Int(truncatingIfNeeded: mixed(decided.high) ^ decided.low) & (Self.holders - 1) }
    return holder == FairShare.ownHolder ? holder : nil
  }
}
