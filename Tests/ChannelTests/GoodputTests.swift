import Channel
import Primitives
import Testing

private let paths: [(name: String, hops: [Hop], milliseconds: UInt64)] = [
  ("LE", [.bluetooth], 20_000),
  ("LE × 3", [.bluetooth, .bluetooth, .bluetooth], 20_000),
  ("Wi-Fi", [.wifi], 2_000),
  ("Wi-Fi × 3", [.wifi, .wifi, .wifi], 2_000),
  ("restless Wi-Fi", [.restlessWifi], 2_000),
  ("restless Wi-Fi × 3", [.restlessWifi, .restlessWifi, .restlessWifi], 6_000),
  ("Ethernet", [.ethernet], 300),
  ("Ethernet × 3", [.ethernet, .ethernet, .ethernet], 300),
  ("Ethernet, LE", [.ethernet, .bluetooth], 20_000),
  ("Wi-Fi, Ethernet, LE", [.restlessWifi, .ethernet, .bluetooth], 20_000),
  ("Ethernet, Wi-Fi, Ethernet", [.ethernet, .wifi, .ethernet], 2_000),
]

private func padded(_ text: String, _ width: Int) -> String {
  String(repeating: " ", count: max(0, width - text.count)) + text
}

private func oneDecimal(_ value: Double) -> String {
  let tenths = Int((value * 10).rounded())
  return (tenths < 0 ? "-" : "") + "\(abs(tenths) / 10).\(abs(tenths) % 10)"
}

/// Measures which part of the slowest link's raw rate bulk data gets. Also measures the delay that bulk data causes:
/// the 99th percentile of short interactive messages is compared with that on an idle path. The unit is the time of the
/// longest frame on the slowest link. The clock is simulated, so the results are the same on every machine.
@Test func `bulk data uses nine tenths of a clean path, and at least half of a lossy one`() {
  let heads = [
    ("loss", 6), ("goodput", 9), ("p99 busy", 12), ("p99 idle", 12), ("frames", 8), ("queue", 9), ("window", 9),
    ("sent again", 13), ("timeouts", 9), ("dropped", 8),
  ]
  print(heads.reduce("path" + padded("", 22)) { $0 + padded($1.0, $1.1) })
  for (name, hops, milliseconds) in paths {
    let slowest = hops.min { $0.bytesPerSecond < $1.bytesPerSecond } ?? .bluetooth
    let mtu = hops.map(\.mtu).min() ?? 0
    let frameTime = Double(mtu + 48) * 1_000_000 / Double(slowest.bytesPerSecond)
    for (loss, percentLeast) in [(0, 90), (20, 60), (100, 50)] as [(UInt64, Double)] {
      let busy = measure(hops, lossPerThousand: loss, milliseconds: milliseconds)
      let idle = measure(hops, lossPerThousand: loss, milliseconds: milliseconds, withBulk: false)
      let later = (Double(busy.percentile(99)) - Double(idle.percentile(99))) / frameTime
      let percent = busy.bulkBytesPerSecond * 100 / Double(slowest.bytesPerSecond)
      let columns: [(String, Int)] = [
        ("\(loss / 10) %", 6), (oneDecimal(percent) + " %", 9), ("\(busy.percentile(99)) µs", 12),
        ("\(idle.percentile(99)) µs", 12), (oneDecimal(later), 8), ("\(busy.bulkQueueMax)", 9),
        ("\(busy.statistics.windowBytes)", 9),
        ("\(busy.statistics.segmentsRetransmitted)/\(busy.statistics.segmentsSent)", 13),
        ("\(busy.statistics.timeouts)(\(busy.statistics.spuriousTimeouts))", 9), ("\(busy.dropsQueueFull)", 8),
      ]
      print(columns.reduce(name + padded("", 26 - name.count)) { $0 + padded($1.0, $1.1) })
      #expect(percent >= percentLeast, "\(name), \(loss / 10) % of frames lost")
      #expect(busy.refusals == [] && idle.refusals == [])
    }
  }
}
