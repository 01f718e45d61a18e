import Primitives
import Testing

@testable import Link

private let start = Instant.zero + .seconds(100)

/// A link that is offered more than it takes: `bytesPerSecond` leave it, every 10 ms, for `span`.
private func run(_ meter: inout LinkMeter, _ bytesPerSecond: Int, from: Instant, for span: TimeSpan) -> Instant {
  var now = from
  while now < from + span {
    _ = meter.sent(bytesPerSecond / 100, isBusy: true, now: now)
    now = now + .milliseconds(10)
  }
  return now
}

@Test(arguments: [BearerKind.ethernet, .wifi, .wifiDirect, .bluetoothLE, .loopback])
func aLinkThatWasNotMeasuredCostsWhatItsBearerDoes(bearer: BearerKind) {
  let meter = LinkMeter(bearer)
  #expect(meter.cost == bearer.cost && meter.measuredCost == bearer.cost)
}

@Test func aLinkThatIsBusyCostsWhatOneKiBTakes() {
  var meter = LinkMeter(.wifi)
  _ = run(&meter, 1_024_000, from: start, for: .seconds(5))
  // 1000 µs in steps of an eighth.
  #expect(meter.cost == 960)
}

@Test func aFasterLinkIsStatedAfterTenSecondsAndASlowerAfterTwo() {
  var meter = LinkMeter(.wifi)
  var now = run(&meter, 20_480_000, from: start, for: .milliseconds(10_500))
  #expect(meter.cost == 100)
  now = run(&meter, 20_480_000, from: now, for: .seconds(2))
  #expect(meter.cost == 48)
  now = run(&meter, 1_024_000, from: now, for: .seconds(3))
  #expect(meter.cost == 48)
  now = run(&meter, 1_024_000, from: now, for: .seconds(8))
  #expect(meter.cost > 500)
}

@Test func aMeasurementThatDiffersLittleIsNotStated() {
  var meter = LinkMeter(.wifi)
  _ = run(&meter, 8_192_000, from: start, for: .seconds(60))
  #expect(meter.measuredCost == 120 && meter.cost == 100)
}

@Test func aMeasurementThatTremblesIsNotStated() {
  var meter = LinkMeter(.wifi)
  var now = start
  // A second of congestion, then ten without, repeatedly.
  for _ in 0..<20 {
    now = run(&meter, 2_048_000, from: now, for: .milliseconds(1000))
    now = run(&meter, 10_240_000, from: now, for: .seconds(10))
    #expect(meter.cost == 100)
  }
}

@Test func aLinkThatRestsBetweenFramesIsNotMeasured() {
  var meter = LinkMeter(.wifi)
  for step in 0..<1000 { _ = meter.sent(1000, isBusy: false, now: start + .milliseconds(UInt64(step) * 10)) }
  #expect(meter.goodput == 0 && meter.cost == 100)
}

@Test func whatFillsTheBuffersBelowIsNotMeasured() {
  var meter = LinkMeter(.bluetoothLE)
  // 200 kB at once, then what the radio does.
  _ = meter.sent(1000, isBusy: true, now: start)
  _ = meter.sent(200_000, isBusy: true, now: start + .milliseconds(1))
  _ = run(&meter, 100_000, from: start + .milliseconds(10), for: .seconds(2))
  #expect(meter.goodput >= 98_000 && meter.goodput <= 102_000)
}

@Test func roundTripsOfSecondsMakeALinkCostlyWhenAllAreLong() {
  var meter = LinkMeter(.wifi)
  func ping(_ milliseconds: UInt64, at seconds: UInt64) {
    meter.measured(roundTrip: .milliseconds(milliseconds), now: start + .seconds(seconds))
  }
  for second in 0..<3 { ping(5, at: UInt64(second)) }
  ping(2000, at: 3)
  ping(2000, at: 6)
  #expect(meter.measuredCost == 100)
  ping(2000, at: 9)
  #expect(meter.measuredCost > 3500 && meter.cost == 100)
  ping(2000, at: 12)
  #expect(meter.cost > 3500)
}

@Test func endsThatRunALittleLateDoNotMakeALinkCostly() {
  var meter = LinkMeter(.ethernet)
  for second in stride(from: UInt64(0), through: 60, by: 3) {
    meter.measured(roundTrip: .milliseconds(10), now: start + .seconds(second))
  }
  #expect(meter.measuredCost == BearerKind.ethernet.cost && meter.cost == BearerKind.ethernet.cost)
}

@Test func goodputIsForgottenSoThatALinkThatWasBadGetsItsChance() {
  var meter = LinkMeter(.wifi)
  let end = run(&meter, 102_400, from: start, for: .seconds(10))
  #expect(meter.cost > 9000)
  for second in stride(from: 0, through: 55, by: 5) {
    meter.measured(roundTrip: .milliseconds(3), now: end + .seconds(UInt64(second)))
  }
  #expect(meter.cost > 9000)
  for second in stride(from: 60, through: 75, by: 5) {
    meter.measured(roundTrip: .milliseconds(3), now: end + .seconds(UInt64(second)))
  }
  #expect(meter.cost == 100)
}

@Test func aCostLeavesRoomForQuarantineAboveIt() {
  var meter = LinkMeter(.bluetoothLE)
  _ = run(&meter, 3_000, from: start, for: .seconds(100))
  #expect(meter.cost > 30_000 && meter.cost <= LinkMeter.costMax)
}

@Test(arguments: [(1, 1), (15, 15), (17, 16), (100, 96), (120, 120), (1000, 960), (8000, 7680), (65_535, 61_440)])
func aCostIsStatedInStepsOfAnEighth(value: Int, stated: Int) {
  #expect(LinkMeter.quantised(UInt64(value)) == UInt64(stated))
}
