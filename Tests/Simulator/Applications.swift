import Channel
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
    let size = Int(random.below(random.chance(perThousand: 100) ? 40_000 : 1500))
    if choice.isEmpty { return }
    send(from, choice[Int(random.below(UInt64(choice.count)))], lane, size)
  }

  /// An application sends a message of `fillerBytes` and a few. False when its node did not take it.
  @discardableResult
  public func send(_ from: Int, _ to: Int, _ lane: Lane, _ fillerBytes: Int) -> Bool {
    guard let node = machines[from].node else { return false }
    let route = MessageLedger.Route(from: from, life: machines[from].life, to: to, lane: lane)
    let bytes = ledger.next(on: route, fillerBytes: fillerBytes)
    let id: MessageID
    do throws(DeliveryRefusal) {
      id = try node.send(kind: 7, bytes.span.bytes, to: machines[to].identity.id, lane: lane, now: now)
    } catch {
      trace.add(now, .refused, from, to)
      return false
    }
    trace.add(now, .sent, from, to, bytes.count)
    if let wrong = ledger.sent(on: route, id) { fail("machine \(from) \(wrong)") }
    touched(from)
    return true
  }

  /// Bytes of messages that `machine` has read, all senders together.
  public func bytesRead(by machine: Int) -> Int { machines[machine].bytesRead }

  /// True when something was taken that may have moved the node.
  func drainMessages(_ machine: Int, _ node: Node) -> Bool {
    var hasRead = false
    while let (peer, completion) = node.nextCompletion() {
      let to = number(of: peer)
      trace.add(now, .completed, machine, to, completion.outcome == .delivered ? 1 : 0)
      let wrong = ledger.completed(
        by: machine, life: machines[machine].life, peer: to, completion, readerLife: machines[to].life,
        readerIsSlow: isSlow)
      if let wrong { fail("machine \(machine) \(wrong)") }
    }
    if machines[machine].readsFrom > now { return false }
    while let (peer, message) = node.nextMessage(now: now, { _, _ in true }) {
      hasRead = true
      machines[machine].bytesRead += message.bytes.count
      trace.add(now, .read, machine, number(of: peer), message.bytes.count)
      let wrong = ledger.read(
        by: machine, life: machines[machine].life, from: number(of: peer), lane: message.lane, message.bytes)
      if let wrong { fail("machine \(machine) \(wrong)") }
    }
    return hasRead
  }

  private var isSlow: Bool { options.faults.contains(.slowReader) }
}
