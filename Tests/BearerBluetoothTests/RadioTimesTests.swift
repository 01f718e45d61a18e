import Primitives
import Testing

@testable import BearerBluetooth

private func at(_ seconds: UInt64) -> Instant { .zero + .seconds(seconds) }

@Test func `the times spent scanning and dialling are summed separately`() {
  var times = RadioTimes()
  times.note(isScanning: true, isDialling: false, at(10))
  times.note(isScanning: true, isDialling: false, at(12))
  #expect(times.total(at(13)).scanning == .seconds(3) && times.total(at(13)).dialling == .seconds(0))
  times.note(isScanning: false, isDialling: true, at(14))
  times.note(isScanning: false, isDialling: false, at(20))
  #expect(times.total(at(100)).scanning == .seconds(4) && times.total(at(100)).dialling == .seconds(6))
}
