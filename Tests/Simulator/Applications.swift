import Channel
import Frame
import Node
import Primitives

/// What the applications of the machines send and read.
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
    // In a large network each machine has few associations: all pairs would take too much memory.
    let to = machines.count > 16 ? choice[(from * 5) % choice.count] : choice[Int(random.below(UInt64(choice.count)))]
    if isReliable { send(from, to, lane, size) } else { sendUnreliably(from, to, size % 1200) }
  }

  /// An application sends a message of somewhat more than `fillerBytes`. False when its node refused it.
  @discardableResult
  public func send(_ from: Int, _ to: Int, _ lane: Lane, _ fillerBytes: Int) -> Bool {
    guard let node = machines[from].node, machines[from].frozenUntil <= now else { return false }
    let route = MessageLedger.Route(
      from: machines[from].number, life: machines[from].life, to: machines[to].number, lane: lane)
    let bytes = ledger.next(on: route, fillerBytes: fillerBytes)
    let id: MessageID
    do throws(AssociationRefusal) {
      id = try node.send(kind: 7, bytes.span.bytes, to: machines[to].key.id, lane: lane, now: now)
    } catch {
      trace.add(now, .refused, from, to)
      return false
    }
    trace.add(now, .sent, from, to, bytes.count)
    if let wrong = ledger.sent(on: route, id, readerLife: machines[to].life) { fail("machine \(from) \(wrong)") }
    if agreement(from, to) == .refused, !mayHaveLied(to) {
      fail("machine \(from) takes a message for \(to) although they do not agree on encryption")
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

  // MARK: What two machines have agreed on

  /// Computed here independently of the core's table.
  func agreement(_ one: Int, _ other: Int) -> EncryptionPreference.Agreement {
    let wishes = [machines[one].encryption, machines[other].encryption]
    if !wishes.contains(.none) { return .sealed }
    return wishes.contains(.required) ? .refused : .clear
  }

  /// The machine is the dishonest relay and may have stated a preference that it does not have, in its own name.
  private func mayHaveLied(_ machine: Int) -> Bool {
    options.faults.contains(.falseLinks) && machines[machine].number == villain
  }

  /// Whether what `one` says to `other` may leave in clear: both said so, or the other did and this one agrees to it.
  func mayBeClear(_ one: Int, _ other: Int) -> Bool {
    agreement(one, other) == .clear || mayHaveLied(other) && machines[one].encryption != .required
  }

  // MARK: Certificates

  /// The application of `machine` takes a while to decide; while faults happen it also says no.
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

  /// Data passed between two applications: the one of `machine` must have accepted the other's certificate.
  private func checkDecision(_ machine: Int, _ peer: Int) {
    if machines[machine].asksApplication, peer >= 0, !mayBeClear(machine, peer), !mayBeClear(peer, machine),
      !machines[machine].accepted.contains(peer)
    {
      fail("machine \(machine) talks to \(peer), whose certificate its application has not accepted")
    }
  }

  /// Bytes of messages that `machine` has read, all senders together.
  public func bytesRead(by machine: Int) -> Int { machines[machine].bytesRead }

  func completed(_ machine: Int, _ peer: NodeID, _ completion: Completion) {
    let to = number(of: peer)
    trace.add(now, .completed, machine, to, completion.outcome == .delivered ? 1 : 0)
    if claim.completed(machine, machines[machine].life, to, completion) { return }
    if completion.outcome == .delivered { checkDecision(machine, to) }
    // A stream with room takes acknowledgements before the wake-up ends in which the application is told.
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

  /// Takes the messages that wait, if the application reads. True when there was one.
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
