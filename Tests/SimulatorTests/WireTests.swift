import Channel
import Primitives
import Testing

@testable import Simulator

/// Two machines and one wire; how many bytes of messages cross it in `span` while the sender always has more.
private func goodput(_ model: WireModel, over span: TimeSpan) -> Int {
  let simulation = Simulation(.line([model]))
  simulation.run(until: simulation.now + .seconds(10))
  let start = simulation.bytesRead(by: 1)
  let end = simulation.now + span
  while simulation.now < end {
    while simulation.send(0, 1, .bulk, 16_000) {}
    simulation.run(until: simulation.now + .milliseconds(5))
  }
  #expect(simulation.violation == nil)
  return simulation.bytesRead(by: 1) - start
}

@Test func aWireCarriesNoMoreThanItsRate() {
  for (name, model) in [("LE", WireModel.bluetoothLE), ("BR/EDR", .bluetoothClassic), ("Wi-Fi", .wifi)] {
    let seconds: UInt64 = model.bytesPerSecond.0 > 1_000_000 ? 2 : 20
    let carried = goodput(model, over: .seconds(seconds))
    let raw = Int(model.bytesPerSecond.0 * seconds)
    print("goodput over \(name): \(carried * 100 / raw) % of \(model.bytesPerSecond.0) bytes a second")
    #expect(carried <= raw)
    #expect(carried > raw / 4)
  }
}

@Test func aFrameTakesItsTimeOnTheWire() {
  #expect(WireModel.bluetoothLE.time(for: 125, from: 0) == .milliseconds(1))
  var model = WireModel.wifi
  model.bytesPerSecond = (1000, 2000)
  #expect(model.time(for: 1000, from: 0) == .seconds(1) && model.time(for: 1000, from: 1) == .milliseconds(500))
}
