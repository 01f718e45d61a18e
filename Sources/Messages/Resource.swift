import Primitives

/// The one end of a transfer, seen from either side.
public enum ResourceOutcome: Equatable, Sendable {
  /// Stored by the receiver, with the promised digest.
  case complete
  /// The offer was answered with `declined`, `tooLarge` or `busy`.
  case refused(ResourceStatus, explanation: [UInt8])
  case digestMismatch
  /// The receiver could not store it.
  case storageFailed(explanation: [UInt8])
  /// The sender could not read it, or it changed meanwhile.
  case sourceFailed
  case cancelledHere
  case cancelledByPeer(ResourceCancel.Reason, explanation: [UInt8])
  case timedOut
  /// The peer is gone, or has restarted and forgotten the transfer.
  case peerLost
  /// The peer sent what the transfer does not allow at that point.
  case protocolBroken
}

/// How far a transfer has come, in bytes of the resource.
public struct ResourceProgress: Equatable, Sendable {
  /// At the sender handed over for delivery, at the receiver written.
  public var done: UInt64
  /// At the sender: what the peer is known to have. At the receiver as `done`.
  public var delivered: UInt64
  public var total: UInt64
}

/// Whom a message about a resource is for: a transfer, and the role of the end that it is sent to.
public struct ResourceAddress: Hashable, Sendable {
  public var transfer: UInt32
  public var role: ResourceRole

  public init(transfer: UInt32, role: ResourceRole) {
    self.transfer = transfer
    self.role = role
  }

  /// Nil for a message of another kind, and for one too short to say.
  public init?(_ kind: MessageKind, _ bytes: RawSpan) {
    guard bytes.byteCount >= 4 else { return nil }
    switch kind {
    case .control, .text: return nil
    case .resourceOffer, .resourceChunk, .resourceEnd: role = .receiver
    case .resourceAnswer: role = .sender
    case .resourceCancel:
      guard bytes.byteCount > 4, let canceller = ResourceRole(rawValue: bytes.octet(4)) else { return nil }
      role = canceller == .sender ? .receiver : .sender
    }
    transfer = bytes.word32(0)
  }

  /// What to answer when there is no such transfer here: it was before a restart. Not for a cancellation, nor for
  /// an offer.
  public var unknownTransfer: Message {
    ResourceCancel(transfer: transfer, role: role, reason: .unknownTransfer).message
  }
}
