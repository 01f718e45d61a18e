import Primitives

/// What the sender of a resource asks its owner to do.
public enum ResourceSenderCommand: Equatable, Sendable {
  /// Send the message to the peer by reliable delivery, in the bulk lane, in this order.
  case send(Message)
  /// Read exactly this many bytes of the resource and call `provide`, or `sourceFailed`.
  case read(offset: UInt64, byteCount: Int)
  /// The transfer is over: the last command, exactly once.
  case finish(ResourceOutcome)
}

/// An outgoing resource: offer → answer → chunks → end → final answer.
///
/// **Drain rule.** While the channel accepts messages, and after every call that changes the sender, call `nextCommand`
/// until it returns nil; set a timer to `nextDeadline`, then call `handleTimeout`. The sender holds at most one chunk:
/// when the channel accepts nothing, nothing is read.
public struct ResourceSender: Sendable {
  private enum State {
    case offering
    case awaitingAnswer
    /// `chunk` was read and waits to be sent. `isReading`: a chunk was requested.
    case sending(offset: UInt64, isReading: Bool, chunk: ResourceChunk?)
    case awaitingVerdict
    case finishing(ResourceOutcome, farewell: Message?)
    case finished
  }

  public let offer: ResourceOffer
  private var state = State.offering
  private var resumeOffset: UInt64 = 0
  private var sent: UInt64 = 0
  private var messagesDelivered: UInt64 = 0
  private var deadline = Instant.never

  public init(offer: ResourceOffer) { self.offer = offer }

  public var address: ResourceAddress { ResourceAddress(transfer: offer.transfer, role: .sender) }

  public var isFinished: Bool { if case .finished = state { true } else { false } }

  public var progress: ResourceProgress {
    // The first delivered message is the offer; all others are chunks of full length, except the last.
    let chunks = messagesDelivered - min(messagesDelivered, 1)
    let (bytes, isMore) = chunks.multipliedReportingOverflow(by: UInt64(MessageLimits.chunkBytesMax))
    let delivered = isMore || bytes > sent - resumeOffset ? sent : resumeOffset + bytes
    return ResourceProgress(done: sent, delivered: delivered, total: offer.size)
  }

  public var nextDeadline: Instant { deadline }

  public mutating func nextCommand(now: Instant) -> ResourceSenderCommand? {
    switch state {
    case .offering:
      state = .awaitingAnswer
      deadline = now + .seconds(MessageLimits.answerSecondsMax)
      return .send(offer.message)
    case .awaitingAnswer, .awaitingVerdict, .finished:
      return nil
    case .sending(let offset, let isReading, let chunk):
      if let chunk {
        sent = offset + UInt64(chunk.data.count)
        state = .sending(offset: sent, isReading: false, chunk: nil)
        return .send(chunk.message)
      }
      if isReading { return nil }
      guard offset < offer.size else {
        state = .awaitingVerdict
        deadline = now + .seconds(MessageLimits.answerSecondsMax)
        return .send(ResourceEnd(transfer: offer.transfer).message)
      }
      state = .sending(offset: offset, isReading: true, chunk: nil)
      return .read(offset: offset, byteCount: Self.chunkByteCount(at: offset, of: offer.size))
    case .finishing(let outcome, let farewell):
      if let farewell {
        state = .finishing(outcome, farewell: nil)
        return .send(farewell)
      }
      state = .finished
      return .finish(outcome)
    }
  }

  /// The bytes that the last `.read` requested. Another number of bytes means that the resource has changed.
  public mutating func provide(_ data: [UInt8]) {
    guard case .sending(let offset, true, nil) = state else { return }
    guard data.count == Self.chunkByteCount(at: offset, of: offer.size),
      let chunk = try? ResourceChunk(transfer: offer.transfer, offset: offset, data: data)
    else { return sourceFailed() }
    state = .sending(offset: offset, isReading: false, chunk: chunk)
  }

  /// The resource cannot be read, or differs from the offer.
  public mutating func sourceFailed() { giveUp(.sourceFailed, telling: .sourceFailed) }

  /// Cancels the transfer. The receiver may have stored everything before the cancellation arrives.
  public mutating func cancel() { giveUp(.cancelledHere, telling: .wanted) }

  /// Handles a message for this transfer's sender. A malformed one throws and changes nothing.
  public mutating func handle(_ kind: MessageKind, _ bytes: RawSpan, now: Instant) throws(MessageRefusal) {
    guard ResourceAddress(kind, bytes) == address else { return }
    if kind == .resourceAnswer {
      handle(try ResourceAnswer(bytes), now: now)
    } else {
      let cancel = try ResourceCancel(bytes)
      finish(.cancelledByPeer(cancel.reason, explanation: cancel.explanation))
    }
  }

  /// Another message of this transfer was delivered. Call it in the order of sending.
  public mutating func messageDelivered(now: Instant) {
    messagesDelivered += 1
    if deadline != .never { deadline = now + .seconds(MessageLimits.answerSecondsMax) }
  }

  /// A message of this transfer could not be delivered, or the peer is gone.
  public mutating func peerLost() { finish(.peerLost) }

  public mutating func handleTimeout(now: Instant) {
    if deadline <= now { giveUp(.timedOut, telling: .timedOut) }
  }

  private mutating func handle(_ answer: ResourceAnswer, now: Instant) {
    switch (state, answer.status) {
    case (.awaitingAnswer, .accepted):
      guard answer.resumeOffset <= offer.size else { return giveUp(.protocolBroken, telling: .protocolBroken) }
      (resumeOffset, sent) = (answer.resumeOffset, answer.resumeOffset)
      deadline = .never
      state = .sending(offset: resumeOffset, isReading: false, chunk: nil)
    case (.awaitingAnswer, .declined), (.awaitingAnswer, .tooLarge), (.awaitingAnswer, .busy):
      finish(.refused(answer.status, explanation: answer.explanation))
    case (.awaitingVerdict, .complete): finish(.complete)
    case (.awaitingVerdict, .digestMismatch): finish(.digestMismatch)
    case (.awaitingAnswer, .storageFailed), (.sending, .storageFailed), (.awaitingVerdict, .storageFailed):
      finish(.storageFailed(explanation: answer.explanation))
    case (.finishing, _), (.finished, _): return
    case (.offering, _), (.awaitingAnswer, _), (.sending, _), (.awaitingVerdict, _):
      giveUp(.protocolBroken, telling: .protocolBroken)
    }
  }

  private mutating func giveUp(_ outcome: ResourceOutcome, telling reason: ResourceCancel.Reason) {
    if case .offering = state { return finish(outcome) }
    finish(outcome, ResourceCancel(transfer: offer.transfer, role: .sender, reason: reason).message)
  }

  private mutating func finish(_ outcome: ResourceOutcome, _ farewell: Message? = nil) {
    switch state {
    case .offering, .awaitingAnswer, .sending, .awaitingVerdict:
      state = .finishing(outcome, farewell: farewell)
      deadline = .never
    case .finishing, .finished: return
    }
  }

  private static func chunkByteCount(at offset: UInt64, of size: UInt64) -> Int {
    Int(min(size - offset, UInt64(MessageLimits.chunkBytesMax)))
  }
}
