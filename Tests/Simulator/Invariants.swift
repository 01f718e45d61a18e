import Frame
import Link
import Node
import Primitives

/// The properties that every node must have after every drain.
extension Simulation {
  /// Checks after a drain that no queue of the node exceeds its limit, and that no counter has decreased.
  func checkNode(_ machine: Int, _ node: Node) {
    for slot in machines[machine].streams.indices where machines[machine].streams[slot] != nil {
      checkQueues(node.link(slot), machine)
    }
    let counters = node.counters
    if let before = machines[machine].counted, isBelow(counters, before) {
      fail("machine \(machine) decreases a counter")
    }
    let seen = observer.forwardCount(of: machine, life: machines[machine].life)
    if seen > counters.framesForwarded {
      fail("machine \(machine) counts \(counters.framesForwarded) forwarded frames, but has sent \(seen)")
    }
    machines[machine].counted = counters
    if counters.sessionsRefused > 0 { hadRefusal = true }
  }

  private func isBelow(_ counters: NodeCounters, _ before: NodeCounters) -> Bool {
    counters.framesForwarded < before.framesForwarded || counters.bytesForwarded < before.bytesForwarded
      || counters.dropsNoRoute < before.dropsNoRoute || counters.dropsTooLong < before.dropsTooLong
      || counters.advertisementsAccepted < before.advertisementsAccepted
  }

  private func checkQueues(_ link: Link, _ machine: Int) {
    let control = link.queuedByteCount(.control)
    if control > Limits.queueBytesMaxControl || link.queuedByteCount - control > Limits.linkQueueBytesMax {
      fail("machine \(machine) exceeds the limits of a queue")
    }
  }

  /// Checks that a link's byte counters equal the numbers of bytes that its stream carried.
  func checkBytes(_ stream: Int, _ side: Int) {
    let end = streams[stream][end: side]
    guard !end.isGone, let slot = end.slot, let node = machines[end.machine].node,
      machines[end.machine].streams[slot] == stream
    else { return }
    let link = node.link(slot)
    guard link.isReceiving || link.state == .opening else { return }
    if link.bytesOut != end.bytesOut {
      fail("machine \(end.machine) counts \(link.bytesOut) sent bytes instead of \(end.bytesOut)")
    }
    if link.bytesIn != end.bytesIn {
      fail("machine \(end.machine) counts \(link.bytesIn) received bytes instead of \(end.bytesIn)")
    }
  }
}
