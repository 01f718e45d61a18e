import Primitives
import Testing

@testable import BearerBluetooth

private let start = Instant.zero + .seconds(100)

/// The rule that decides whether traffic is load, for which the radio changes its behaviour.
struct TrafficLoadTests {
  private var load = TrafficLoad(bytesMin: 1000, calm: .seconds(3))

  @Test mutating func `load begins when enough bytes pass within a second, in one piece or in many`() {
    for number in 0..<9 { #expect(load.passed(100, start + .milliseconds(UInt64(number) * 100)) == false) }
    #expect(!load.isLoaded(start + .milliseconds(800)))
    #expect(load.passed(100, start + .milliseconds(900)) == true)
    #expect(load.isLoaded(start + .milliseconds(900)))
  }

  @Test mutating func `few bytes per second are no load`() {
    for number in 0..<100 { #expect(load.passed(150, start + .milliseconds(UInt64(number) * 200)) == false) }
  }

  @Test mutating func `load ends one calm period after the last busy second, and begins only once`() {
    #expect(load.passed(5000, start) == true)
    #expect(load.passed(5000, start + .seconds(2)) == false)
    #expect(load.isLoaded(start + .milliseconds(4999)) && !load.isLoaded(start + .seconds(5)))
    #expect(load.passed(5000, start + .seconds(6)) == true)
  }

  @Test mutating func `load ends at once when its cause ends`() {
    #expect(load.passed(5000, start) == true)
    load.ended(start + .seconds(1))
    #expect(!load.isLoaded(start + .seconds(1)))
    load.ended(start + .seconds(9))
    #expect(!load.isLoaded(start + .seconds(2)))
  }
}
