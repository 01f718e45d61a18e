import Channel
import Primitives
import Testing

@testable import Simulator

/// The number of message bytes that a line of machines delivers in `span`, while the first machine always has more to
/// send to the last.
private func goodput(_ models: [WireModel], over span: TimeSpan) -> Int {
  let simulation = Simulation(.line(models))
  let last = models.count
  simulation.run(until: simulation.now + .seconds(10))
  let start = simulation.bytesRead(by: last)
  let end = simulation.now + span
  let receiver = simulation.machines[last].key.id
  while simulation.now < end {
    // `canSend` is called first, because to make a message that is refused costs as much time as one that is accepted.
    while simulation.machines[0].node?.canSend(byteCount: 16_384, to: receiver, lane: .bulk) == true {
      if !simulation.send(0, last, .bulk, 16_000) { break }
    }
    simulation.run(until: simulation.now + .milliseconds(1))
  }
  #expect(simulation.violation == nil)
  return simulation.bytesRead(by: last) - start
}

private let ways: [(name: String, models: [WireModel])] = [
  ("LE", [.bluetoothLE]), ("Wi-Fi", [.wifi]), ("Ethernet", [.ethernet]),
  ("LE, LE, LE", [.bluetoothLE, .bluetoothLE, .bluetoothLE]), ("Wi-Fi, Wi-Fi, Wi-Fi", [.wifi, .wifi, .wifi]),
  ("Ethernet, LE, Wi-Fi", [.ethernet, .bluetoothLE, .wifi]),
]

/// The clock is simulated, so the figures depend on the protocol and not on the computer.
@Test(arguments: [(0, 90), (20, 60)] as [(UInt64, Int)])
func `a route carries most of the rate of its slowest link, even if packets are lost`(
  lossPerThousand: UInt64, percentLeast: Int
) {
  for (name, models) in ways {
    let rate = models.map(\.bytesPerSecond.0).min() ?? 1
    let milliseconds: UInt64 = rate > 10_000_000 ? 500 : rate > 1_000_000 ? 1_500 : 10_000
    let carried = goodput(models.map { $0.losing(perThousand: lossPerThousand) }, over: .milliseconds(milliseconds))
    let percent = carried * 100 / Int(rate * milliseconds / 1_000)
    print("goodput over \(name), \(lossPerThousand / 10) % of packets lost: \(percent) % of \(rate) bytes a second")
    #expect(percent >= percentLeast && percent <= 100, "\(name)")
  }
}

@Test func `a frame occupies the wire for its transmission time`() {
  #expect(WireModel.bluetoothLE.time(for: 125, from: 0) == .milliseconds(1))
  var model = WireModel.wifi
  model.bytesPerSecond = (1000, 2000)
  #expect(model.time(for: 1000, from: 0) == .seconds(1) && model.time(for: 1000, from: 1) == .milliseconds(500))
}
