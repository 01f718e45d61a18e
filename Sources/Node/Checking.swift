import Channel
import Frame
import Link
import Mesh
import Primitives
import Session

/// Signature checks that other nodes cause. The checks are made in pieces (`CheckBudget`): a few checks in a row, after
/// which other events are handled. Each link has a share of the rate of checks.
extension Node {
  /// Whether anything waits for the next piece of checks. `nextDeadline` then includes the time when that piece is due.
  var hasChecksWaiting: Bool { !waitingFrames.isEmpty || sessions.inCheckCount > 0 || hasHeldMessages }

  private var hasHeldMessages: Bool { associations.all.contains { $0.heldLanes != 0 } }

  /// Stores a frame until the next piece of checks. Returns false if there is no room for the frame.
  func keepForPiece(_ header: FrameHeader, _ payload: RawSpan, on slot: Int) -> Bool {
    if !hasChecksWaiting { pieceDue = .zero }
    return waitingFrames.append(header, payload, on: slot)
  }

  /// Makes the next piece of checks: waiting frames first, then session tables in turn. Messages that are held back
  /// wait until `nextOutput` receives them.
  func checkPiece(_ now: Instant) {
    checks.beginPiece(now: now)
    let hadFrames = checkFrames(now)
    let hadTables = checkTables(now)
    // If nothing was checked, all links with waiting checks have used their shares, so there is a pause. If something
    // was checked, the next piece is due in the next pass of the event loop.
    pieceDue = now + (hadFrames || hadTables ? Self.untilNextPiece : Limits.checkPause)
  }

  /// The next piece is never due at the same instant as the previous one, so other events are handled between the two
  /// pieces.
  private static let untilNextPiece = TimeSpan(nanoseconds: 1_000)

  /// Handles waiting frames, at most `Limits.checksPerPiece`. Returns true if a frame was handled.
  private func checkFrames(_ now: Instant) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer(rebasing: payloadScratch[..<Limits.waitingFrameBytesEach])
    var taken = 0
    while taken < Limits.checksPerPiece, let slot = waitingFrames.takeFirst(into: buffer) {
      taken += 1
      let frame = UnsafeRawBufferPointer(buffer).bytes
      do throws(FrameError) {
        let header = try FrameHeader(frame)
        let payload = frame.extracting(FrameHeader.byteCount..<header.frameByteCount)
        try receiveFrame(header, payload, on: slot, hasWaited: true, now: now)
      } catch {
        refuse(error, on: slot, now)
      }
    }
    return taken > 0
  }

  /// Checks session tables, within the shares of their links. Returns true if anything was checked.
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

  /// Passes the first message of a lane to the sessions of applications. If its signature checks must wait, the message
  /// is held back: it stays in the channel.
  func receiveFirst(_ lane: Lane, _ association: Association, _ now: Instant) {
    let bit: UInt8 = 1 << lane.rawValue
    guard let pending = association.channel.pendingMessage(lane) else {
      // The message is gone because the peer restarted. The lane's next message is reported again.
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
    receive(message.kind, message.bytes, from: association.peer, over: lane, checks: granted, now)
  }

  private func hold(_ lane: Lane, of association: Association, _ now: Instant) {
    if !hasChecksWaiting { pieceDue = now + Self.untilNextPiece }
    association.heldLanes |= 1 << lane.rawValue
  }

  private func receive(
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
    do throws(SessionMessageError) {
      try sessions.receive(kind, bytes.span.bytes, from: peer, over: lane, allowance: &allowance, now: now)
    } catch {
      count { $0.sessionMessagesRefused &+= 1 }
    }
    checks.giveBack(allowance.left, by: holder)
    if !hadChecksWaiting && hasChecksWaiting { pieceDue = now + Self.untilNextPiece }
  }

  /// Receives an unreliable session message, which has no signed records.
  func receive(_ datagram: ReceivedDatagram, from peer: NodeID, _ now: Instant) {
    receive(datagram.kind, datagram.bytes, from: peer, over: nil, now)
  }

  /// Passes messages that were held back to the sessions of applications, if these sessions may receive such messages
  /// now. Each call starts with another association.
  func receiveHeld(_ now: Instant) {
    guard hasHeldMessages else { return }
    let all = associations.nextRound()
    for association in all {
      for lane in [Lane.interactive, .bulk] where association.heldLanes & 1 << lane.rawValue != 0 {
        receiveFirst(lane, association, now)
      }
    }
  }
}
