import LocalAPI
import Primitives
import Reactor
import Session
import Transfer

/// A receiver's session with one sender. Each sender has a session of its own, so no sender sees another.
struct SenderRoom {
  let session: UInt32
  /// The daemon's number of the invitation that opened the session.
  let invitation: UInt32
  let node: NodeID
  /// See `IncomingFiles.isOfTrusted`.
  let isTrusted: Bool
  let openedAt: Instant
  var members: [MemberAddress] = []

  /// Until when the sender may keep the session without an offer.
  var keptUntil: Instant { openedAt + FileLimits.roomTime }
}

/// A sender's invitation that waits for a session.
struct WaitingSender {
  let from: MemberAddress
  let invitation: UInt32
  let rules: SessionRules
  let isTrusted: Bool
}

/// Decides which senders get a session, and which must give theirs up.
enum SenderRooms {
  /// The place for one more session with a sender. An unused session gives way first; otherwise `TransferPlaces`
  /// decides.
  static func place(
    for sender: WaitingSender, among rooms: [SenderRoom], _ transfers: [IncomingFiles], now: Instant
  ) -> TransferPlaces<NodeID>.Place {
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
      return TransferPlaces.Entry(
        sender: room.node, isTrusted: room.isTrusted || used.contains { $0.isAccepted },
        stillMilliseconds: (now - lastHeard).milliseconds, mayYield: !used.contains { $0.phase == .ending })
    }
    let place = TransferPlaces(entries, of: FileLimits.sessionsMax).place(
      for: sender.from.node, isTrusted: sender.isTrusted)
    if place == .free { return .free }
    return isUnused.firstIndex(of: true).map { .instead(of: $0) } ?? place
  }
}

extension [IncomingFiles] {
  /// The place for one more transfer of a sender, if these transfers share `capacity` places.
  func place(of capacity: Int, for node: NodeID, isTrusted: Bool) -> TransferPlaces<NodeID>.Place {
    let now = monotonicNow()
    return TransferPlaces(map { $0.entry(now: now) }, of: capacity).place(for: node, isTrusted: isTrusted)
  }

  /// The transfer that gives way to an accepted transfer of a sender when a shared resource is used up; nil if none
  /// does.
  func displaced(by node: NodeID) -> IncomingFiles? {
    guard case .instead(let index) = place(of: 0, for: node, isTrusted: true) else { return nil }
    return self[index]
  }

  /// Whether a transfer's manifest fits into memory beside those that are held.
  func haveMemory(for transfer: IncomingFiles) -> Bool {
    var (bytes, entries) = transfer.manifestSize
    for other in self where other !== transfer && other.holdsManifest {
      bytes += other.manifestSize.bytes
      entries += other.manifestSize.entries
    }
    return bytes <= FileLimits.manifestBytesMax && entries <= FileLimits.entriesMax
  }
}
