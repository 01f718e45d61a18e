import Primitives

/// The result of a transfer, at either end.
public enum ResourceOutcome: Equatable, Sendable {
  /// Stored by the receiver, with the promised digest.
  case complete
  /// The offer was answered with `declined`, `tooLarge` or `busy`.
  case refused(ResourceStatus, explanation: [UInt8])
  case digestMismatch
  /// The receiver could not write it.
  case storageFailed(explanation: [UInt8])
  /// The sender could not read it, or it changed during the transfer.
  case sourceFailed
  case cancelledHere
  case cancelledByPeer(ResourceCancel.Reason, explanation: [UInt8])
  case timedOut
  /// The peer is gone, or has restarted and does not know the transfer.
  case peerLost
  /// The peer sent a message that is illegal in the current state.
  case protocolBroken
}

/// Progress of a transfer, in bytes of the resource.
public struct ResourceProgress: Equatable, Sendable {
  /// At the sender: passed on for delivery. At the receiver: written.
  public var done: UInt64
  /// At the sender: delivered to the peer. At the receiver: same as `done`.
  public var delivered: UInt64
  public var total: UInt64
}

/// The destination of a message about a resource: the transfer, and the role of the end that receives the message.
public struct ResourceAddress: Hashable, Sendable {
  public var transfer: UInt32
  public var role: ResourceRole

  public init(transfer: UInt32, role: ResourceRole) {
    self.transfer = transfer
    self.role = role
  }

  /// Nil for a message of another kind, and for one that is too short.
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

  /// The reply when the transfer is not known here, because it began before a restart. Do not send it in reply to a
  /// cancellation or an offer.
  public var unknownTransfer: Message {
    ResourceCancel(transfer: transfer, role: role, reason: .unknownTransfer).message
  }
}
