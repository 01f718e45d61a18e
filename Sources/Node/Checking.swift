import Channel
import Frame
import Link
import Mesh
import Primitives
import Session

/// Checks of signatures that others cause, piece by piece. See `CheckBudget`.
extension Node {
  /// Whether anything waits for a piece. `nextDeadline` then includes its due time.
  var hasChecksWaiting: Bool { !waitingFrames.isEmpty || sessions.inCheckCount > 0 || hasHeldMessages }

  private var hasHeldMessages: Bool { associations.all.contains { $0.heldLanes != 0 } }

  /// Keeps a frame for the next piece. Returns false if there is no room.
  func keepForPiece(_ header: FrameHeader, _ payload: RawSpan, on slot: Int) -> Bool {
    if !hasChecksWaiting { pieceDue = .zero }
    return waitingFrames.append(header, payload, on: slot)
  }

  /// Processes the next piece of the waiting checks: frames first, then session tables in turn. `nextOutput` receives
  /// held messages.
  func checkPiece(_ now: Instant) {
    checks.beginPiece(now: now)
    let hadFrames = checkFrames(now)
    let hadTables = checkTables(now)
    // All links with pending checks may have used their shares. The next piece belongs to another wake-up.
    pieceDue = now + (hadFrames || hadTables ? Self.untilNextPiece : Limits.checkPause)
  }

  /// The next piece is never due at the same instant as the previous one, so other events come between.
  private static let untilNextPiece = TimeSpan(nanoseconds: 1_000)

  /// Returns true if a frame was taken.
  private func checkFrames(_ now: Instant) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer(rebasing: payloadScratch[..<Limits.waitingFrameBytesEach])
    var taken = 0
    while taken < Limits.checksPerPiece, let slot = waitingFrames.takeFirst(into: buffer) {
      taken += 1
      let frame = UnsafeRawBufferPointer(buffer).bytes
      do throws(FrameRefusal) {
        let header = try FrameHeader(frame)
        let payload = frame.extracting(FrameHeader.byteCount..<header.frameByteCount)
        try receiveFrame(header, payload, on: slot, hasWaited: true, now: now)
      } catch {
        refuse(error, on: slot, now)
      }
    }
    return taken > 0
  }

  /// Returns true if anything was checked.
  private func checkTables(_ now: Instant) -> Bool {
    var hasChecked = false
    for _ in 0..<sessions.inCheckCount {
      guard let holder = sessions.nextHolderInCheck() else { break }
      let granted = checks.takeForTables(by: holder, now: now)
      if granted == 0 { continue }
      var allowance = CheckAllowance(holder: holder, checks: granted)
      sessions.check(&allowance, now: now)
      checks.giveBack(allowance.left, by: holder)
      hasChecked = hasChecked || allowance.left < granted
    }
    return hasChecked
  }

  // MARK: Messages of sessions

  /// Receives the first message of a lane, which belongs to sessions, or holds it until it may be received.
  func hearFirst(_ lane: Lane, _ association: Association, _ now: Instant) {
    let bit: UInt8 = 1 << lane.rawValue
    guard let pending = association.channel.pendingMessage(lane) else {
      // The message is gone because the peer restarted. The next one is reported.
      association.heldLanes &= ~bit
      _ = takeMessage(from: association.peer, lane, now: now)
      return
    }
    guard
      sessions.mayReceive(
        pending.kind, byteCount: pending.byteCount, from: association.peer, behind: association.holder)
    else {
      return hold(lane, of: association, now)
    }
    let mayCost = Sessions.mayHaveRecords(pending.kind, byteCount: pending.byteCount)
    let granted = mayCost ? checks.takeForTables(by: association.holder, now: now) : 0
    if mayCost && granted == 0 { return hold(lane, of: association, now) }
    association.heldLanes &= ~bit
    guard let message = takeMessage(from: association.peer, lane, now: now) else {
      return checks.giveBack(granted, by: association.holder)
    }
    hear(message.kind, message.bytes, from: association.peer, over: lane, checks: granted, now)
  }

  private func hold(_ lane: Lane, of association: Association, _ now: Instant) {
    if !hasChecksWaiting { pieceDue = now + Self.untilNextPiece }
    association.heldLanes |= 1 << lane.rawValue
  }

  private func hear(
    _ kind: UInt8, _ bytes: [UInt8], from peer: NodeID, over lane: Lane?, checks granted: Int = 0, _ now: Instant
  ) {
    switch SessionKind(rawValue: kind) {
    case .invite, .meet, .table:
      noteIngress(of: peer)
    case .answer, .welcome, .end, .message, .window, .streamOpen, .streamBytes, .streamEnd, .need, nil: break
    }
    let holder = associations.association(with: peer)?.holder ?? FairShare.ownHolder
    let hadChecksWaiting = hasChecksWaiting
    var allowance = CheckAllowance(holder: holder, checks: granted)
    do throws(SessionRefusal) {
      try sessions.receive(kind, bytes.span.bytes, from: peer, over: lane, allowance: &allowance, now: now)
    } catch {
      count { $0.sessionMessagesRefused &+= 1 }
    }
    checks.giveBack(allowance.left, by: holder)
    if !hadChecksWaiting && hasChecksWaiting { pieceDue = now + Self.untilNextPiece }
  }

  /// Receives an unreliable session message, which has no signed records.
  func hear(_ datagram: ReceivedDatagram, from peer: NodeID, _ now: Instant) {
    hear(datagram.kind, datagram.bytes, from: peer, over: nil, now)
  }

  /// Receives held messages, each time starting with another association.
  func hearHeld(_ now: Instant) {
    guard hasHeldMessages else { return }
    let all = associations.nextRound()
    for association in all {
      for lane in [Lane.interactive, .bulk] where association.heldLanes & 1 << lane.rawValue != 0 {
        hearFirst(lane, association, now)
      }
    }
  }
}
