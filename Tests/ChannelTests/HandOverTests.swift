import Channel
import Primitives
import Testing

private let chunk = [UInt8](repeating: 0x55, count: 15_360)

/// A path that always has bulk data to send. `arrived` is the number of messages that arrived.
private final class Transfer {
  let path: Path
  private(set) var arrived = 0
  var sent = 0

  init(_ hops: [Hop], lossPerThousand: UInt64 = 0, seed: UInt64 = 1, messages: Int = .max) {
    path = Path(hops, lossPerThousand: lossPerThousand, seed: seed)
    path.afterEvent = { [unowned self] path in
      while sent < messages, path.a.canSend(byteCount: chunk.count, lane: .bulk) {
        guard (try? path.a.send(chunk, lane: .bulk, now: path.now)) != nil else { return }
        sent += 1
      }
      while path.b.nextMessage(.bulk) != nil { arrived += 1 }
      while path.a.nextCompletion() != nil {}
    }
  }

  func run(milliseconds: UInt64) { path.run(until: path.now + .milliseconds(milliseconds)) }
  var sentAgain: UInt64 { path.a.statistics(.bulk).segmentsRetransmitted }
}

@Suite struct HandOverTests {
  @Test func `a handover from Bluetooth to Wi-Fi with both links up resends nothing`() {
    let transfer = Transfer([.bluetooth])
    transfer.run(milliseconds: 5_000)
    transfer.path.handOver(to: [.wifi], oldPathLives: true)
    transfer.run(milliseconds: 1_000)
    #expect(transfer.sentAgain == 0)
    let before = transfer.arrived
    transfer.run(milliseconds: 1_000)
    #expect((transfer.arrived - before) * chunk.count > 5_000_000, "Wi-Fi carries 6.25 MB a second")
    #expect(transfer.path.refusals == [])
  }

  @Test func `a handover from Wi-Fi to Bluetooth with both links up resends at most one segment`() {
    let transfer = Transfer([.wifi])
    transfer.run(milliseconds: 2_000)
    transfer.path.handOver(to: [.bluetooth], oldPathLives: true)
    transfer.run(milliseconds: 5_000)
    #expect(transfer.sentAgain <= 1)
    #expect(transfer.path.a.statistics(.bulk).windowBytes < 60_000)
    let before = transfer.arrived
    transfer.run(milliseconds: 2_000)
    #expect((transfer.arrived - before) * chunk.count > 200_000)
  }

  @Test func `unacknowledged data is sent over the new path at once if the old path has failed`() {
    let transfer = Transfer([.wifi])
    transfer.run(milliseconds: 2_000)
    let before = transfer.arrived
    transfer.path.handOver(to: [.wifi], oldPathLives: false)
    transfer.run(milliseconds: 100)
    #expect(transfer.sentAgain > 0)
    #expect(transfer.path.a.statistics(.bulk).timeouts == 0)
    #expect((transfer.arrived - before) * chunk.count > 250_000)
  }

  @Test func `bytes lost on a path that seemed alive are retransmitted`() {
    let transfer = Transfer([.wifi], messages: 2_000)
    transfer.run(milliseconds: 1_000)
    transfer.path.cut()
    transfer.path.a.routeChanged(pathMTU: 16_640, oldPathLives: true, now: transfer.path.now)
    transfer.path.run(until: transfer.path.now + .seconds(20)) { transfer.arrived == 2_000 }
    #expect(transfer.arrived == 2_000)
  }
}

@Suite struct LossTests {
  /// Each argument has a path, the loss in thousandths, and a limit in seconds. Within this limit, one megabyte must
  /// arrive; the limit is many times the measured time.
  @Test(
    arguments: [
      ([Hop.bluetooth], 20, 20), ([.bluetooth], 100, 40), ([.bluetooth, .bluetooth, .bluetooth], 100, 60),
      ([.wifi], 20, 2), ([.restlessWifi, .restlessWifi, .restlessWifi], 100, 10), ([.ethernet], 100, 1),
      ([.wifi, .ethernet, .bluetooth], 100, 40), ([.bluetooth], 300, 300),
    ] as [([Hop], UInt64, UInt64)])
  func `a lossy path delivers all messages in time`(hops: [Hop], lossPerThousand: UInt64, seconds: UInt64) {
    for seed: UInt64 in 1...5 {
      let transfer = Transfer(hops, lossPerThousand: lossPerThousand, seed: seed, messages: 68)
      let end = transfer.path.now + .seconds(seconds)
      transfer.path.run(until: end) { transfer.arrived == 68 }
      #expect(transfer.arrived == 68, "seed \(seed)")
      #expect(transfer.path.refusals == [])
    }
  }

  @Test func `throughput recovers soon after half a second of total loss`() {
    let transfer = Transfer([.wifi])
    transfer.run(milliseconds: 1_000)
    for _ in 0..<5 {
      transfer.path.lossPerThousand = 1_000
      transfer.run(milliseconds: 500)
      transfer.path.lossPerThousand = 0
      let before = transfer.arrived
      transfer.run(milliseconds: 1_500)
      #expect((transfer.arrived - before) * chunk.count > 3_000_000)
    }
  }

  @Test func `a relay with a fast incoming and a slow outgoing link builds up no long queue`() {
    let transfer = Transfer([.ethernet, .bluetooth])
    transfer.run(milliseconds: 20_000)
    #expect(transfer.path.dropsQueueFull == 0)
    #expect(transfer.path.bulkQueueMax < 100_000)
    #expect(transfer.sentAgain == 0)
  }
}
