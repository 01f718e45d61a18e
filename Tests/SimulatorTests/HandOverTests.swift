import Channel
import Primitives
import Testing

@testable import Simulator

/// The network has a sender, a relay and a receiver. The receiver is linked with the relay over Bluetooth and Wi-Fi.
/// Wi-Fi fails, and the receiver notices first. Frames are lost until the relay detects the failure by itself.
@Test func `a transfer continues as soon as a relay has found another route`() {
  let plan = NetworkPlan(
    relays: [true, true, true], wires: [.init(0, 1, .wifi), .init(1, 2, .bluetoothLE), .init(1, 2, .wifi)])
  let simulation = Simulation(plan)
  simulation.run(until: simulation.now + .seconds(20))
  let receiver = simulation.machines[2].key.id
  func run(for span: TimeSpan, until isDone: () -> Bool = { false }) {
    let end = simulation.now + span
    while simulation.now < end, !isDone() {
      while simulation.machines[0].node?.canSend(byteCount: 16_384, to: receiver, lane: .bulk) == true {
        if !simulation.send(0, 2, .bulk, 16_000) { break }
      }
      simulation.run(until: simulation.now + .milliseconds(10))
    }
  }
  run(for: .seconds(2))
  simulation.wires[2].isUp = false
  for index in simulation.streams.indices where simulation.streams[index].wire == 2 {
    simulation.streams[index].isDead = true
    let side = simulation.streams[index][end: 0].machine == 2 ? 0 : 1
    simulation.plan(.streamEnds(stream: index, side: side), after: .seconds(1))
  }
  let cutAt = simulation.now
  run(for: .seconds(1))
  let before = simulation.bytesRead(by: 2)
  run(for: .seconds(30)) { simulation.bytesRead(by: 2) > before }
  let took = simulation.now - cutAt
  print("a link died unnoticed by the relay before the receiver: bytes again after \(took.milliseconds) ms")
  // The relay closes a link after 5 s without a received frame.
  #expect(simulation.violation == nil && took < .seconds(6))
}
