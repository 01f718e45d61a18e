import Primitives
import Testing

@testable import WiFiDirect

@Suite struct PushButtonTurnsTests {
  let first = MACAddress(0x4200_0000_0100)
  let second = MACAddress(0x4200_0000_0200)
  let beginning = Instant.zero + .seconds(1)

  /// Requests a turn for `device`, this number of seconds after the beginning.
  private func request(_ turns: inout PushButtonTurns, _ device: MACAddress, after seconds: UInt64 = 0) -> Bool {
    turns.request(by: device, at: beginning + .seconds(seconds))
  }

  @Test func `the device that asks first gets the turn to join`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    #expect(turns.isTaken(at: beginning))
  }

  @Test func `a repeated request starts no other turn`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    #expect(!request(&turns, first, after: 7))
    #expect(turns.isTaken(at: beginning + .seconds(7)))
  }

  @Test func `another device gets no turn while the turn lasts`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    #expect(!request(&turns, second, after: 14))
  }

  @Test func `another device gets the turn as soon as the first device has joined`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    turns.end()
    #expect(request(&turns, second))
  }

  @Test func `a request does not prolong the turn`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    #expect(!request(&turns, first, after: 14))
    #expect(!turns.isTaken(at: beginning + .seconds(15)))
    #expect(request(&turns, second, after: 15))
  }

  @Test func `a device that wasted its turn gets no turn for another 15 seconds`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    #expect(!request(&turns, first, after: 15))
    #expect(!request(&turns, first, after: 29))
    #expect(request(&turns, first, after: 30))
  }

  @Test func `a device that wasted its turn leaves the next turn to another device`() {
    var turns = PushButtonTurns()
    #expect(request(&turns, first))
    #expect(!request(&turns, first, after: 20))
    #expect(request(&turns, second, after: 21))
  }
}
