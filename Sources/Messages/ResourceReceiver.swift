import Primitives

/// What the receiver of a resource asks its owner to do.
public enum ResourceReceiverCommand: Equatable, Sendable {
  /// Send the message to the peer by reliable delivery, in the bulk lane, in this order.
  case send(Message)
  /// Write the bytes at this offset of the unfinished file; call `storageFailed` if that fails.
  case write(offset: UInt64, [UInt8])
  /// All bytes are written: compute the file's digest and call `digestComputed`, or `storageFailed`.
  case computeDigest
  /// The digest is right: move the file to its destination and call `stored`, or `storageFailed`.
  case store
  /// The transfer is over: the last command, exactly once. Unless complete, delete the unfinished file; after
  /// `timedOut`, `peerLost` or a cancellation it may be kept to resume with the same digest.
  case finish(ResourceOutcome)
}

/// An incoming resource: offer → answer → chunks → end → digest → final answer.
///
/// **Drain rule.** After every call that changes the receiver, call `nextCommand` until it returns nil; set a timer to
/// `nextDeadline`, then call `handleTimeout`. Pass a chunk only after the previous one was returned as `.write`: the
/// receiver holds at most one. Back-pressure is to read no further messages.
///
/// The offered name is not trusted: create files as `safeName`.
public struct ResourceReceiver: Sendable {
  private enum State {
    case deciding
    case receiving(expected: UInt64, chunk: ResourceChunk?, isEnded: Bool)
    case verifying
    case verified(isStoring: Bool)
    case finishing(ResourceOutcome, farewell: Message?)
    case finished
  }

  public let offer: ResourceOffer
  /// The offered name, made safe for a file.
  public let safeName: [UInt8]
  private var state = State.deciding
  private var answer: Message?
  private var written: UInt64 = 0
  private var deadline = Instant.never

  /// An offer of more than `acceptedBytesMax` bytes is refused with `.tooLarge`.
  public init(offer: ResourceOffer, acceptedBytesMax: UInt64 = MessageLimits.acceptedBytesMaxDefault) {
    self.offer = offer
    safeName = ResourceName.sanitised(offer.name)
    if offer.size > acceptedBytesMax { refuse(.tooLarge) }
  }

  public var address: ResourceAddress { ResourceAddress(transfer: offer.transfer, role: .receiver) }

  public var isFinished: Bool { if case .finished = state { true } else { false } }

  public var progress: ResourceProgress {
    ResourceProgress(done: written, delivered: written, total: offer.size)
  }

  public var nextDeadline: Instant { deadline }

  /// Accepts the offer. `resumeOffset`: the length of the unfinished file of an earlier attempt with the same digest;
  /// at most the offered size counts.
  public mutating func accept(resumeOffset: UInt64 = 0, now: Instant) {
    guard case .deciding = state else { return }
    written = min(resumeOffset, offer.size)
    answer = ResourceAnswer(transfer: offer.transfer, status: .accepted, resumeOffset: written).message
    state = .receiving(expected: written, chunk: nil, isEnded: false)
    deadline = now + .seconds(MessageLimits.chunkSecondsMax)
  }

  /// Refuses the offer with `declined`, `tooLarge` or `busy`; any other status becomes `declined`.
  public mutating func refuse(_ status: ResourceStatus = .declined, explanation: [UInt8] = []) {
    guard case .deciding = state else { return }
    let status = status == .tooLarge || status == .busy ? status : .declined
    let answer = ResourceAnswer(transfer: offer.transfer, status: status, explanation: explanation)
    finish(.refused(status, explanation: answer.explanation), answer.message)
  }

  public mutating func nextCommand() -> ResourceReceiverCommand? {
    if let answer {
      self.answer = nil
      return .send(answer)
    }
    switch state {
    case .deciding, .verifying, .finished:
      return nil
    case .receiving(let expected, let chunk, let isEnded):
      if let chunk {
        written = expected
        state = .receiving(expected: expected, chunk: nil, isEnded: isEnded)
        return .write(offset: chunk.offset, chunk.data)
      }
      guard isEnded else { return nil }
      state = .verifying
      return .computeDigest
    case .verified(let isStoring):
      if isStoring { return nil }
      state = .verified(isStoring: true)
      return .store
    case .finishing(let outcome, let farewell):
      if let farewell {
        state = .finishing(outcome, farewell: nil)
        return .send(farewell)
      }
      state = .finished
      return .finish(outcome)
    }
  }

  /// Handles a message for this transfer's receiver. A malformed one throws and changes nothing.
  public mutating func handle(_ kind: MessageKind, _ bytes: RawSpan, now: Instant) throws(MessageRefusal) {
    guard ResourceAddress(kind, bytes) == address else { return }
    switch kind {
    case .resourceChunk: handle(try ResourceChunk(bytes), now: now)
    case .resourceEnd:
      _ = try ResourceEnd(bytes)
      handleEnd()
    case .resourceCancel:
      let cancel = try ResourceCancel(bytes)
      finish(.cancelledByPeer(cancel.reason, explanation: cancel.explanation))
    case .resourceOffer: giveUp(.protocolBroken, telling: .protocolBroken)
    case .control, .text, .resourceAnswer: return
    }
  }

  /// The digest of the whole file, in reply to `.computeDigest`.
  public mutating func digestComputed(_ digest: ResourceDigest) {
    guard case .verifying = state else { return }
    guard digest == offer.digest else {
      return finish(.digestMismatch, ResourceAnswer(transfer: offer.transfer, status: .digestMismatch).message)
    }
    state = .verified(isStoring: false)
  }

  /// The file is at its destination, in reply to `.store`.
  public mutating func stored() {
    guard case .verified(true) = state else { return }
    finish(.complete, ResourceAnswer(transfer: offer.transfer, status: .complete).message)
  }

  /// Writing, reading back or moving the file failed; `explanation` is a text for the sender.
  public mutating func storageFailed(explanation: [UInt8]) {
    let answer = ResourceAnswer(transfer: offer.transfer, status: .storageFailed, explanation: explanation)
    finish(.storageFailed(explanation: answer.explanation), answer.message)
  }

  public mutating func cancel() { giveUp(.cancelledHere, telling: .wanted) }

  /// The peer is gone.
  public mutating func peerLost() { finish(.peerLost) }

  public mutating func handleTimeout(now: Instant) {
    if deadline <= now { giveUp(.timedOut, telling: .timedOut) }
  }

  private mutating func handle(_ chunk: ResourceChunk, now: Instant) {
    switch state {
    case .receiving(let expected, let held, let isEnded):
      precondition(held == nil, "the previous chunk was not taken: see the drain rule")
      guard !isEnded, chunk.offset == expected, UInt64(chunk.data.count) <= offer.size - expected else {
        return giveUp(.protocolBroken, telling: .protocolBroken)
      }
      state = .receiving(expected: expected + UInt64(chunk.data.count), chunk: chunk, isEnded: false)
      deadline = now + .seconds(MessageLimits.chunkSecondsMax)
    case .deciding, .verifying, .verified: giveUp(.protocolBroken, telling: .protocolBroken)
    case .finishing, .finished: return
    }
  }

  private mutating func handleEnd() {
    switch state {
    case .receiving(let expected, let chunk, false) where expected == offer.size:
      state = .receiving(expected: expected, chunk: chunk, isEnded: true)
      deadline = .never
    case .receiving, .deciding, .verifying, .verified: giveUp(.protocolBroken, telling: .protocolBroken)
    case .finishing, .finished: return
    }
  }

  private mutating func giveUp(_ outcome: ResourceOutcome, telling reason: ResourceCancel.Reason) {
    finish(outcome, ResourceCancel(transfer: offer.transfer, role: .receiver, reason: reason).message)
  }

  private mutating func finish(_ outcome: ResourceOutcome, _ farewell: Message? = nil) {
    switch state {
    case .deciding, .receiving, .verifying, .verified:
      state = .finishing(outcome, farewell: farewell)
      deadline = .never
    case .finishing, .finished: return
    }
  }
}
