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

@Test func aWayCarriesNoMoreThanItsSlowestWireAndMostOfThat() {
  let ways: [(name: String, models: [WireModel])] = [
    ("LE", [.bluetoothLE]), ("BR/EDR", [.bluetoothClassic]), ("Wi-Fi", [.wifi]), ("Ethernet", [.ethernet]),
    ("LE, LE, LE", [.bluetoothLE, .bluetoothLE, .bluetoothLE]), ("Wi-Fi, Wi-Fi, Wi-Fi", [.wifi, .wifi, .wifi]),
    ("Ethernet, LE, Wi-Fi", [.ethernet, .bluetoothLE, .wifi]),
  ]
  for (name, models) in ways {
    let rate = models.map(\.bytesPerSecond.0).min() ?? 1
    let milliseconds: UInt64 = rate > 10_000_000 ? 200 : rate > 1_000_000 ? 2_000 : 20_000
    let carried = goodput(models, over: .milliseconds(milliseconds))
    let raw = Int(rate * milliseconds / 1_000)
    print("goodput over \(name): \(carried * 100 / raw) % of \(rate) bytes a second")
    #expect(carried <= raw)
    #expect(carried > raw / 2)
  }
}

@Test func aFrameTakesItsTimeOnTheWire() {
  #expect(WireModel.bluetoothLE.time(for: 125, from: 0) == .milliseconds(1))
  var model = WireModel.wifi
  model.bytesPerSecond = (1000, 2000)
  #expect(model.time(for: 1000, from: 0) == .seconds(1) && model.time(for: 1000, from: 1) == .milliseconds(500))
}
