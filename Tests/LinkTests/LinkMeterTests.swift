import Primitives
import Testing

@testable import Link

private let start = Instant.zero + .seconds(100)

/// Simulates an overloaded link for `span`, on which `bytesPerSecond` leave in steps of 10 ms. Returns the time at the
/// end.
private func run(_ meter: inout LinkMeter, _ bytesPerSecond: Int, from: Instant, for span: TimeSpan) -> Instant {
  var now = from
  while now < from + span {
    _ = meter.sent(bytesPerSecond / 100, isBusy: true, now: now)
    now = now + .milliseconds(10)
  }
  return now
}

@Test(arguments: [BearerKind.ethernet, .wifi, .wifiDirect, .bluetoothLE, .loopback])
func `a link without measurements has the cost of its bearer`(bearer: BearerKind) {
  #expect(LinkMeter(bearer).cost == bearer.cost)
}

@Test(arguments: [(1_300_000, 100), (640_000, 1600), (1_270_000, 800), (80_000, 12_800)])
func `a link that is eight times slower than usual has a higher cost`(bytesPerSecond: Int, cost: UInt16) {
  var meter = LinkMeter(.wifi)
  _ = run(&meter, bytesPerSecond, from: start, for: .seconds(6))
  #expect(meter.cost == cost)
}

@Test func `a link needs eight measurements before its cost rises`() {
  var meter = LinkMeter(.wifi)
  let now = run(&meter, 100_000, from: start, for: .seconds(4))
  #expect(meter.cost == 100)
  _ = run(&meter, 100_000, from: now, for: .seconds(1))
  #expect(meter.cost > 5000)
}

@Test func `a fast link has the usual cost`() {
  var meter = LinkMeter(.wifi)
  _ = run(&meter, 100_000_000, from: start, for: .seconds(20))
  #expect(meter.cost == 100)
}

@Test func `a link that is slow for a short time keeps its cost`() {
  var meter = LinkMeter(.wifi)
  var now = start
  for _ in 0..<20 {
    now = run(&meter, 500_000, from: now, for: .seconds(3))
    now = run(&meter, 10_240_000, from: now, for: .seconds(1))
    #expect(meter.cost == 100)
  }
}

@Test func `a slow link regains the usual cost when its slowness falls below half of its factor`() {
  var meter = LinkMeter(.wifi)
  var now = run(&meter, 1_200_000, from: start, for: .seconds(6))
  #expect(meter.cost == 800)
  // The link is five times slower than usual: its rate has risen, but not enough for the usual cost.
  now = run(&meter, 2_048_000, from: now, for: .seconds(10))
  #expect(meter.cost == 800)
  _ = run(&meter, 2_600_000, from: now, for: .seconds(2))
  #expect(meter.cost == 100)
}

@Test func `a link with idle time between frames is not measured`() {
  var meter = LinkMeter(.wifi)
  for step in 0..<1000 { _ = meter.sent(1000, isBusy: false, now: start + .milliseconds(UInt64(step) * 10)) }
  #expect(meter.cost == 100)
}

@Test func `bytes that fill the buffers below the link are not measured`() {
  var meter = LinkMeter(.bluetoothLE)
  var now = start
  // In each round the buffers below the link accept 200 kB at once. After that, the radio drains these buffers at its
  // real rate of 10 kB/s.
  for _ in 0..<20 {
    _ = meter.sent(1000, isBusy: true, now: now)
    _ = meter.sent(200_000, isBusy: true, now: now + .milliseconds(1))
    now = run(&meter, 10_000, from: now + .milliseconds(10), for: .seconds(4))
    _ = meter.sent(100, isBusy: false, now: now)
  }
  #expect(meter.cost == LinkMeter.costMax)
}

@Test func `an unmeasured slow link regains a lower cost after five minutes`() {
  var meter = LinkMeter(.wifi)
  let end = run(&meter, 102_400, from: start, for: .seconds(10))
  #expect(meter.cost == 6400)
  meter.review(now: end + .seconds(299))
  #expect(meter.cost == 6400)
  meter.review(now: end + .seconds(300))
  #expect(meter.cost == 100)
}

@Test func `a link that proves slow again waits twice as long`() {
  var meter = LinkMeter(.wifi)
  var now = run(&meter, 102_400, from: start, for: .seconds(10)) + .seconds(300)
  meter.review(now: now)
  now = run(&meter, 102_400, from: now, for: .seconds(10))
  meter.review(now: now + .seconds(599))
  #expect(meter.cost == 6400)
  meter.review(now: now + .seconds(600))
  #expect(meter.cost == 100)
}

@Test func `the highest cost is below the cost of a quarantined link`() {
  var meter = LinkMeter(.bluetoothLE)
  _ = run(&meter, 3_000, from: start, for: .seconds(100))
  #expect(meter.cost == LinkMeter.costMax)
}
