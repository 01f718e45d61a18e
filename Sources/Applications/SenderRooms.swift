import Primitives
import Session
import Transfer

/// A receiver's session with one sender. Each sender has a session of its own, so that senders do not see each other.
struct SenderRoom {
  let session: UInt32
  /// The daemon's number of the invitation for which the session was opened.
  let invitation: UInt32
  let node: NodeID
  /// Whether the sender's key is verified, or the sender is accepted without a question.
  let isTrusted: Bool
  let openedAt: Instant
  var members: [MemberAddress] = []

  /// The time until which the sender may keep the session without an offer.
  var keptUntil: Instant { openedAt + FileLimits.roomTime }
}

/// An invitation from a sender that waits until there is a session for it.
struct WaitingSender {
  let from: MemberAddress
  let invitation: UInt32
  let rules: SessionRules
  let isTrusted: Bool
}

/// Decides which senders get one of the `sessionsMax` sessions, and which senders lose theirs.
enum SenderRooms {
  /// The slot for one more session with a sender: a free slot, or that of a session that is closed. Sessions without
  /// an offer after `FileLimits.roomTime` are closed first. Among the others `TransferSlots` chooses.
  static func choose(
    for sender: WaitingSender, among rooms: [SenderRoom], _ transfers: [IncomingFiles], now: Instant
  ) -> TransferSlots<NodeID>.Choice {
    func used(in room: SenderRoom) -> [IncomingFiles] {
      transfers.filter { $0.session == room.session && $0.phase != .away }
    }
    let isUnused = rooms.map { $0.keptUntil <= now && used(in: $0).isEmpty }
    let own = rooms.indices.filter { rooms[$0].node == sender.from.node }
    if own.count >= SessionLimits.invitationsPerNodeMax {
      return own.first { isUnused[$0] }.map { .instead(of: $0) } ?? .none
    }
    let entries = rooms.map { room in
      let used = used(in: room)
      let lastHeard = used.reduce(room.openedAt) { max($0, $1.lastHeard) }
      return TransferSlots.Entry(
        sender: room.node, isTrusted: room.isTrusted || used.contains { $0.isAccepted },
        stillMilliseconds: (now - lastHeard).milliseconds, mayYield: !used.contains { $0.phase == .ending })
    }
    let choice = TransferSlots(entries, of: FileLimits.sessionsMax).choose(
      for: sender.from.node, isTrusted: sender.isTrusted)
    if choice == .free { return .free }
    return isUnused.firstIndex(of: true).map { .instead(of: $0) } ?? choice
  }
}

extension [IncomingFiles] {
  /// The slot for one more transfer of a sender, if these transfers share `capacity` slots: a free slot, or that of
  /// another transfer.
  func choose(of capacity: Int, for node: NodeID, isTrusted: Bool, now: Instant) -> TransferSlots<NodeID>.Choice {
    TransferSlots(map { $0.entry(now: now) }, of: capacity).choose(for: node, isTrusted: isTrusted)
  }

  /// The transfer that gives way to an accepted transfer of `node` when a shared resource is used up; nil if none gives
  /// way.
  func displaced(by node: NodeID, now: Instant) -> IncomingFiles? {
    guard case .instead(let index) = choose(of: 0, for: node, isTrusted: true, now: now) else { return nil }
    return self[index]
  }

  /// Whether a transfer's manifest fits into the limits together with the manifests of the other transfers.
  func haveMemory(for transfer: IncomingFiles) -> Bool {
    var (bytes, entries) = transfer.manifestSize
    for other in self where other !== transfer && other.holdsManifest {
      bytes += other.manifestSize.bytes
      entries += other.manifestSize.entries
    }
    return bytes <= FileLimits.manifestBytesMax && entries <= FileLimits.entriesMax
  }
}
