import Bearer
import BearerIP
import Explain
import Primitives

/// The last failure with each node or address over each bearer, for `causeway explain`. Failures of inbound streams use
/// at most half of the table, because a peer can create any number of keys.
///
/// Each failure is charged to a holder: the address that dialled this node, or the bearer over which this node dialled.
/// A full table evicts the oldest failure of the holder with the most entries, including the new failure. Failures with
/// nodes that the operator pinned are evicted last.
struct ContactFailures {
  static let entriesMax = 64
  /// The maximum length of a reason in bytes; a longer reason is truncated.
  static let reasonBytesMax = 120
  /// The memory of one entry with its text, in bytes.
  static let byteCount = MemoryLayout<Entry>.stride + reasonBytesMax + 48

  private struct Entry {
    var node: NodeID
    var bearer: BearerKind
    var remote: RemoteAddress
    var isInbound: Bool
    var isPinned: Bool
    var cause: ContactCause
    var at: Instant
    var count: UInt32 = 1

    /// Whether two entries have the same holder. All Bluetooth addresses that dialled are one holder, because a device
    /// can change its Bluetooth address at will.
    func hasHolder(of other: Entry) -> Bool {
      guard isInbound == other.isInbound else { return false }
      if isInbound, case .ip = remote { return remote.source == other.remote.source }
      return bearer == other.bearer
    }
  }

  /// The recorded failures, oldest first.
  private var entries: [Entry] = []

  /// Records a failure. `node` may contain only the upper half of the id (see `ContactFailure`). `isPinned` states
  /// whether the operator pinned the node. A failure of an inbound stream without a proven key is not recorded, because
  /// its address proves nothing.
  mutating func note(
    _ node: NodeID, _ bearer: BearerKind, _ remote: RemoteAddress, isInbound: Bool, isPinned: Bool = false,
    _ cause: ContactCause, now: Instant
  ) {
    if isInbound && node == .none { return }
    var entry = Entry(
      node: node, bearer: bearer, remote: remote, isInbound: isInbound, isPinned: isPinned, cause: Self.bounded(cause),
      at: now)
    let known = entries.firstIndex {
      $0.bearer == bearer && ($0.node.mayBe(node) || !isInbound && !$0.isInbound && $0.remote == remote)
    }
    if let known {
      let former = entries.remove(at: known)
      if former.cause == entry.cause { entry.count = former.count &+ 1 }
      if node == .none || node.low == 0 && former.node.mayBe(node) {
        entry.node = former.node
        entry.isPinned = former.isPinned
      }
    } else if isInbound && entries.count(where: { $0.isInbound }) >= Self.entriesMax / 2 {
      entries.remove(at: leaver(for: entry, among: entries.indices.filter { entries[$0].isInbound }))
    } else if entries.count == Self.entriesMax {
      entries.remove(at: leaver(for: entry, among: Array(entries.indices)))
    }
    entries.append(entry)
  }

  /// The index of the entry to evict for `newcomer`, by the rule of `ContactFailures`. `choice` are the indexes of the
  /// entries that may be evicted.
  private func leaver(for newcomer: Entry, among choice: [Int]) -> Int {
    let unpinned = choice.filter { !entries[$0].isPinned }
    var leaver = 0
    var most = 0
    for index in unpinned.isEmpty ? choice : unpinned {
      let held =
        entries.count { $0.hasHolder(of: entries[index]) } + (newcomer.hasHolder(of: entries[index]) ? 1 : 0)
      if held > most { (leaver, most) = (index, held) }
    }
    return leaver
  }

  /// All recorded failures, latest first.
  func all(now: Instant) -> [ContactFailure] {
    entries.reversed().map {
      ContactFailure(
        node: $0.node, bearer: $0.bearer, address: $0.remote.text, cause: $0.cause,
        secondsAgo: (now - $0.at).milliseconds / 1000, count: $0.count)
    }
  }

  private static func bounded(_ cause: ContactCause) -> ContactCause {
    func cut(_ text: String) -> String {
      text.utf8.count <= reasonBytesMax ? text : String(decoding: text.utf8.prefix(reasonBytesMax), as: UTF8.self)
    }
    return switch cause {
    case .dialFailed(let text): .dialFailed(cut(text))
    case .handshakeFailed(let text): .handshakeFailed(cut(text))
    case .broken(let text): .broken(cut(text))
    case .protocolFault(let text): .protocolFault(cut(text))
    case .refusedHere(.certificate(let text)): .refusedHere(.certificate(cut(text)))
    case .refusedHere, .refusedThere, .handshakeTimedOut, .ownKey, .keyHeldElsewhere, .fullHere, .fullThere, .silent,
      .stopped:
      cause
    }
  }
}
