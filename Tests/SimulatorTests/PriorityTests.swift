import Channel
import Primitives
import Testing

@testable import Node
@testable import Simulator

/// The transit times of small interactive messages from the first machine of a line to the last: in microseconds, in
/// ascending order.
private func pings(_ models: [WireModel], withBulk: Bool) -> [UInt64] {
  let models = models.map { model in
    // Each stream accepts only one frame at a time. Data that is already encrypted or in the kernel is outside of the
    // core, and would hide its scheduling.
    var model = model
    model.bytesBelowMax = 1
    return model
  }
  let simulation = Simulation(.line(models))
  let last = models.count
  simulation.run(until: simulation.now + .seconds(20))
  var took: [UInt64] = []
  let receiver = simulation.machines[last].key.id
  func keepBusy() {
    // `canSend` is called first, because to make a message that is refused costs as much time as one that is accepted.
    while withBulk, simulation.machines[0].node?.canSend(byteCount: 16_384, to: receiver, lane: .bulk) == true {
      if !simulation.send(0, last, .bulk, 16_000) { return }
    }
  }
  func received() -> UInt64 {
    guard let node = simulation.machines[last].node else { return 0 }
    return node.statistics(of: simulation.machines[0].key.id, .interactive)?.bytesReceived ?? 0
  }
  let settled = simulation.now + .seconds(10)
  while simulation.now < settled {
    keepBusy()
    simulation.run(until: simulation.now + .milliseconds(5))
  }
  for number in 0..<200 {
    keepBusy()
    // The length of this pause is unrelated to the transmission time of a frame, so messages arrive at all phases of a
    // frame.
    simulation.run(until: simulation.now + TimeSpan(nanoseconds: 1000 * (50_000 + UInt64(number)) * 1_237 % 40_000))
    keepBusy()
    let before = received()
    let start = simulation.now
    simulation.send(0, last, .interactive, 20)
    while received() == before && simulation.violation == nil && simulation.now < start + .seconds(5) {
      simulation.run(until: simulation.now + TimeSpan(nanoseconds: 1000 * (100)))
      keepBusy()
    }
    took.append((simulation.now - start).nanoseconds / 1000)
  }
  #expect(simulation.violation == nil)
  return took.sorted()
}

@Test(arguments: [
  [WireModel.bluetoothLE], [.wifi], [.bluetoothLE, .wifi], [.ethernet, .bluetoothLE, .wifi],
  [.bluetoothLE, .bluetoothLE],
]) func `a bulk transfer delays a ping by at most two frames of the slowest link`(models: [WireModel]) {
  let idle = pings(models, withBulk: false)
  let busy = pings(models, withBulk: true)
  let frameTime =
    models.map { $0.time(for: Limits.frameHeaderBytes + ($0.bearer == .bluetoothLE ? 4096 : 16_640), from: 0) }
    .max()!.nanoseconds / 1000
  let names = models.map { "\($0.bearer)" }.joined(separator: ", ")
  print("ping over \(names): p99 \(idle[197]) µs at rest, \(busy[197]) µs beside bulk; a frame takes \(frameTime) µs")
  #expect(busy[197] <= idle[197] + 2 * frameTime)
}
