import Channel
import Primitives
import Testing

@testable import Simulator

/// Machines in a row; how many bytes of messages cross the wires in `span` while the first always has more for the last.
private func goodput(_ models: [WireModel], over span: TimeSpan) -> Int {
  let simulation = Simulation(.line(models))
  let last = models.count
  simulation.run(until: simulation.now + .seconds(10))
  let start = simulation.bytesRead(by: last)
  let end = simulation.now + span
  while simulation.now < end {
    while simulation.send(0, last, .bulk, 16_000) {}
    simulation.run(until: simulation.now + .milliseconds(1))
  }
  #expect(simulation.violation == nil)
  return simulation.bytesRead(by: last) - start
}

private let isOptimised = !_isDebugAssertConfiguration()

/// Ways by their wires. Those that take minutes where the build is not optimised are measured where it is.
private let ways: [(name: String, models: [WireModel], isLong: Bool)] = [
  ("LE", [.bluetoothLE], false), ("Wi-Fi", [.wifi], false), ("Ethernet", [.ethernet], true),
  ("LE, LE, LE", [.bluetoothLE, .bluetoothLE, .bluetoothLE], true),
  ("Wi-Fi, Wi-Fi, Wi-Fi", [.wifi, .wifi, .wifi], true),
  ("Ethernet, LE, Wi-Fi", [.ethernet, .bluetoothLE, .wifi], false),
]

/// The clock is the simulation's, so that these are figures of the protocol and not of a machine.
@Test(arguments: [(0, 90), (20, 60)] as [(UInt64, Int)])
func aWayCarriesMostOfWhatItsSlowestWireCouldAlsoIfPacketsAreLost(lossPerThousand: UInt64, percentLeast: Int) {
  for (name, models, isLong) in ways where isOptimised || !isLong {
    let rate = models.map(\.bytesPerSecond.0).min() ?? 1
    let milliseconds: UInt64 = rate > 10_000_000 ? 700 : (rate > 1_000_000 ? 500 : 5_000) * (isOptimised ? 4 : 1)
    let carried = goodput(models.map { $0.losing(perThousand: lossPerThousand) }, over: .milliseconds(milliseconds))
    let percent = carried * 100 / Int(rate * milliseconds / 1_000)
    print("goodput over \(name), \(lossPerThousand / 10) % of packets lost: \(percent) % of \(rate) bytes a second")
    #expect(percent >= percentLeast && percent <= 100, "\(name)")
  }
}

@Test func aFrameTakesItsTimeOnTheWire() {
  #expect(WireModel.bluetoothLE.time(for: 125, from: 0) == .milliseconds(1))
  var model = WireModel.wifi
  model.bytesPerSecond = (1000, 2000)
  #expect(model.time(for: 1000, from: 0) == .seconds(1) && model.time(for: 1000, from: 1) == .milliseconds(500))
}
