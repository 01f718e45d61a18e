import Channel
import Frame
import Node
import Primitives

/// The messages that the applications of the machines send and read.
extension Simulation {
  func message() {
    if now >= faultsEnd { return }
    plan(.message, after: span(.milliseconds(1), options.messagePause * 2))
    let from = Int(random.below(UInt64(machines.count)))
    let choice = machines[from].found.sorted()
    let lane: Lane = random.chance(perThousand: 600) ? .interactive : .bulk
    let size = Int(random.below(random.chance(perThousand: options.isBusy ? 500 : 100) ? 60_000 : 1500))
    let isReliable = random.chance(perThousand: 850)
    if choice.isEmpty { return }
    // In a network of more than 16 machines each machine sends to few others, because channels between all pairs would
    // take too much memory.
    let to = machines.count > 16 ? choice[(from * 5) % choice.count] : choice[Int(random.below(UInt64(choice.count)))]
    if isReliable { send(from, to, lane, size) } else { sendUnreliably(from, to, size % 1200) }
  }

  /// Sends a message with `fillerBytes` bytes after its head, from the application of machine `from` to that of machine
  /// `to`. Returns false if the sender's node refused the message.
  @discardableResult
  public func send(_ from: Int, _ to: Int, _ lane: Lane, _ fillerBytes: Int) -> Bool {
    guard let node = machines[from].node, machines[from].frozenUntil <= now else { return false }
    let route = MessageLedger.Route(
      from: machines[from].number, life: machines[from].life, to: machines[to].number, lane: lane)
    let bytes = ledger.next(on: route, fillerBytes: fillerBytes)
    let id: MessageID
    do throws(AssociationError) {
      id = try node.send(kind: 7, bytes.span.bytes, to: machines[to].key.id, lane: lane, now: now)
    } catch {
      trace.add(now, .refused, from, to)
      return false
    }
    trace.add(now, .sent, from, to, bytes.count)
    if let wrong = ledger.sent(on: route, id, readerLife: machines[to].life) { fail("machine \(from) \(wrong)") }
    if agreement(from, to) == .refused, !mayHaveLied(to) {
      fail("machine \(from) accepts a message to \(to) without an agreement on encryption")
    }
    touched(from)
    return true
  }

  private func sendUnreliably(_ from: Int, _ to: Int, _ fillerBytes: Int) {
    guard let node = machines[from].node, machines[from].frozenUntil <= now else { return }
    let bytes = ledger.nextUnreliable(
      from: machines[from].number, life: machines[from].life, to: machines[to].number, fillerBytes: fillerBytes)
    let isSent = try? node.sendUnreliable(kind: 8, bytes.span.bytes, to: machines[to].key.id, now: now)
    trace.add(now, isSent == true ? .sent : .refused, from, to, bytes.count)
    touched(from)
  }

  // MARK: Agreed encryption

  /// The encryption that two machines agree on. This function computes the agreement without the core's table of
  /// agreements.
  func agreement(_ one: Int, _ other: Int) -> EncryptionPreference.Agreement {
    let wishes = [machines[one].encryption, machines[other].encryption]
    if !wishes.contains(.none) { return .sealed }
    return wishes.contains(.required) ? .refused : .clear
  }

  /// Whether the machine is the relay that misbehaves in this run. This relay may have advertised a false encryption
  /// preference of its own.
  private func mayHaveLied(_ machine: Int) -> Bool {
    options.faults.contains(.falseLinks) && machines[machine].number == villain
  }

  /// Whether data from `one` to `other` may be sent unencrypted: if one machine does not encrypt and neither requires
  /// encryption. Unencrypted data is also allowed if `other` may have advertised a false preference and `one` does not
  /// require encryption.
  func mayBeClear(_ one: Int, _ other: Int) -> Bool {
    agreement(one, other) == .clear || mayHaveLied(other) && machines[one].encryption != .required
  }

  // MARK: Certificates

  /// Lets the application of `machine` decide on a peer's certificate after up to two seconds. While faults happen, the
  /// application rejects some certificates.
  func decisionWanted(_ machine: Int, _ peer: NodeID, _ chain: [[UInt8]]) {
    let from = number(of: peer)
    trace.add(now, .asked, machine, from, chain.count)
    machines[machine].asked.insert(from)
    let isAccepted = isHealed || random.chance(perThousand: 850)
    plan(
      .decision(machine: machine, life: machines[machine].life, peer: from, isAccepted: isAccepted),
      after: span(.milliseconds(0), .seconds(2)))
  }

  func decide(_ machine: Int, _ peer: Int, _ isAccepted: Bool) {
    trace.add(now, .decided, machine, peer, isAccepted ? 1 : 0)
    if isAccepted { machines[machine].accepted.insert(peer) }
    machines[machine].node?.decide(machines[peer].key.id, isAccepted: isAccepted, now: now)
    touched(machine)
  }

  /// Called when data passes between the applications of `machine` and `peer`. Checks that the application of `machine`
  /// has accepted the certificate of `peer`.
  private func checkDecision(_ machine: Int, _ peer: Int) {
    if machines[machine].asksApplication, peer >= 0, !mayBeClear(machine, peer), !mayBeClear(peer, machine),
      !machines[machine].accepted.contains(peer)
    {
      fail("machine \(machine) exchanges messages with \(peer), whose certificate its application has not accepted")
    }
  }

  /// The bytes of all messages that `machine` has read, from all senders.
  public func bytesRead(by machine: Int) -> Int { machines[machine].bytesRead }

  func completed(_ machine: Int, _ peer: NodeID, _ completion: Completion) {
    let to = number(of: peer)
    trace.add(now, .completed, machine, to, completion.outcome == .delivered ? 1 : 0)
    if claim.completed(machine, machines[machine].life, to, completion) { return }
    if completion.outcome == .delivered { checkDecision(machine, to) }
    // The receiver's node acknowledges a message as soon as its buffer has space. The node notifies the application
    // only at its next drain.
    let isYetToRead = to >= 0 && machines[to].eventsSinceDrain > 0
    let wrong = ledger.completed(
      by: machines[machine].number, life: machines[machine].life, peer: to, completion, readerLife: machines[to].life,
      readerIsSlow: isSlow || isYetToRead || holdsMessages)
    if let wrong { fail("machine \(machine) \(wrong)") }
  }

  func datagramCame(_ machine: Int, _ peer: NodeID, _ bytes: [UInt8]) {
    trace.add(now, .read, machine, number(of: peer), bytes.count)
    checkDecision(machine, number(of: peer))
    let wrong = ledger.readUnreliable(by: machines[machine].number, from: number(of: peer), bytes)
    if let wrong { fail("machine \(machine) \(wrong)") }
  }

  /// Lets the application read its waiting messages, unless it pauses reading. Returns whether messages were waiting.
  func takeMessages(_ machine: Int, _ node: Node) -> Bool {
    if machines[machine].readsFrom > now { return false }
    let waiting = machines[machine].waiting
    machines[machine].waiting = []
    for (peer, lane) in waiting {
      guard let message = node.takeMessage(from: peer, lane, now: now) else { continue }
      machines[machine].bytesRead += message.bytes.count
      trace.add(now, .read, machine, number(of: peer), message.bytes.count)
      checkDecision(machine, number(of: peer))
      let wrong = ledger.read(
        by: machines[machine].number, life: machines[machine].life, from: number(of: peer), lane: message.lane,
        message.bytes)
      if let wrong { fail("machine \(machine) \(wrong)") }
    }
    return !waiting.isEmpty
  }

  private var isSlow: Bool { options.faults.contains(.slowReader) || options.faults.contains(.noReader) }
}
