import Synchronization
internal import Transfer

/// A bounded number of slots for incoming transfers. Sending members share the slots by the rules of `TransferSlots`.
/// A connection has slots for all its transfers, and each session has slots for its unanswered offers.
final class IncomingSlots: Sendable {
  private struct Held {
    let run: IncomingTransferTask
    var movedAt = ContinuousClock.now
  }
  private let held = Mutex<[Held]>([])
  private let capacity: Int
  /// Whether a quarter of the slots is reserved for trusted transfers. Trusted are transfers that the application has
  /// accepted, and transfers from members whose node's key is pinned.
  private let hasReserve: Bool

  init(_ capacity: Int, hasReserve: Bool) {
    self.capacity = capacity
    self.hasReserve = hasReserve
  }

  /// Takes a slot for a transfer. If no slot is free, another transfer may lose its slot by the rules of
  /// `TransferSlots`, and its streams are reset. Returns false if the transfer gets no slot.
  func enter(_ run: IncomingTransferTask) -> Bool {
    let (hasSlot, other) = held.withLock { held -> (Bool, IncomingTransferTask?) in
      if held.contains(where: { $0.run === run }) { return (true, nil) }
      let now = ContinuousClock.now
      let entries = held.map { held in
        TransferSlots.Entry(
          sender: held.run.sender.address.node, isTrusted: isTrusted(held.run),
          stillMilliseconds: UInt64(max(0, (now - held.movedAt) / .milliseconds(1))))
      }
      let choice = TransferSlots(entries, of: capacity).choose(for: run.sender.address.node, isTrusted: isTrusted(run))
      var other: IncomingTransferTask?
      switch choice {
      case .free: break
      case .instead(let index): other = held.remove(at: index).run
      case .none: return (false, nil)
      }
      held.append(Held(run: run))
      return (true, other)
    }
    other?.giveWay()
    return hasSlot
  }

  /// Records that bytes of the transfer have arrived.
  func moved(_ run: IncomingTransferTask) {
    held.withLock { held in
      guard let index = held.firstIndex(where: { $0.run === run }) else { return }
      held[index].movedAt = .now
    }
  }

  func leave(_ run: IncomingTransferTask) { held.withLock { $0.removeAll { $0.run === run } } }

  private func isTrusted(_ run: IncomingTransferTask) -> Bool {
    !hasReserve || run.isAccepted || run.sender.peer.isVerified
  }
}
