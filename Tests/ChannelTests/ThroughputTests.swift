import Channel
import Primitives
import Testing

/// Measures the goodput of bulk data from a to b in `seconds` of simulated time. The reader never pauses.
func transfer(
  _ model: PathModel, pathMTU: Int, seconds: UInt64, seed: UInt64 = 1
) -> (goodput: Double, network: Network) {
  let network = Network(model: model, seed: seed, pathMTU: pathMTU)
  let chunk = [UInt8](repeating: 0x55, count: 15_360)
  var arrived = 0
  network.afterEvent = { network in
    while network.a.canSend(byteCount: chunk.count, lane: .bulk) {
      _ = try? network.a.send(chunk, lane: .bulk, now: network.now)
    }
    while let message = network.b.nextMessage(.bulk) { arrived += message.bytes.count }
    while network.a.nextCompletion() != nil {}
  }
  network.run(until: network.now + .seconds(seconds))
  return (Double(arrived) * 8 / Double(seconds) / Double(model.bitsPerSecond), network)
}

private struct Case: CustomTestStringConvertible {
  var name: String
  var model: PathModel
  var pathMTU: Int
  var floor: Double
  var testDescription: String { name }
}

/// The floors are far below the measured rates. The floors detect a collapse of the rate, not a small slowdown.
private let cases: [Case] = [
  Case(
    name: "1 Mbit/s 50 ms", model: PathModel(bitsPerSecond: 1_000_000, delayMilliseconds: 50), pathMTU: 1_400,
    floor: 0.8),
  Case(
    name: "1 Mbit/s 50 ms, 2 % loss",
    model: PathModel(bitsPerSecond: 1_000_000, delayMilliseconds: 50, lossPerThousand: 20), pathMTU: 1_400, floor: 0.4),
  Case(
    name: "50 Mbit/s 5 ms", model: PathModel(bitsPerSecond: 50_000_000, delayMilliseconds: 5), pathMTU: 1_400,
    floor: 0.7),
  Case(
    name: "50 Mbit/s 5 ms, 2 % loss",
    model: PathModel(bitsPerSecond: 50_000_000, delayMilliseconds: 5, lossPerThousand: 20), pathMTU: 1_400, floor: 0.1),
  Case(
    name: "50 Mbit/s 5 ms, MTU 16 640", model: PathModel(bitsPerSecond: 50_000_000, delayMilliseconds: 5),
    pathMTU: 16_640, floor: 0.5),
  Case(
    name: "200 kbit/s 50 ms (LE), deep queue",
    model: PathModel(bitsPerSecond: 200_000, delayMilliseconds: 50, queueBytesMax: 1_000_000), pathMTU: 480, floor: 0.7),
  Case(
    name: "200 kbit/s 50 ms (LE), deep queue, MTU 16 640",
    model: PathModel(bitsPerSecond: 200_000, delayMilliseconds: 50, queueBytesMax: 1_000_000), pathMTU: 16_640,
    floor: 0.7),
]

@Test(arguments: cases) private func `bulk data fills the path`(_ one: Case) {
  let (goodput, network) = transfer(
    one.model, pathMTU: one.pathMTU, seconds: one.model.bitsPerSecond > 10_000_000 ? 5 : 20)
  let statistics = network.a.statistics(.bulk)
  print(
    "goodput \(one.name): \(Int(goodput * 100 + 0.5)) %, \(statistics.segmentsRetransmitted) of"
      + " \(statistics.segmentsSent) segments sent again, \(statistics.fastRecoveries) recoveries,"
      + " \(statistics.timeouts) timeouts (\(statistics.spuriousTimeouts) spurious),"
      + " round trip \(statistics.roundTripMicroseconds) µs, window \(statistics.windowBytes)")
  #expect(goodput > one.floor)
  let frameMicroseconds = UInt64(one.pathMTU + Network.frameHeaderBytes) * 8_000_000 / one.model.bitsPerSecond
  #expect(statistics.roundTripMicroseconds < max(500_000, 5 * frameMicroseconds), "a long queue stands on the way")
}
