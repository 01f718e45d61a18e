import Bearer
import Primitives
import Testing

@testable import BearerBluetooth

private let start = Instant.zero + .seconds(100)
private let bob = BluetoothEndpoint(address: 1, isRandom: false)
private let carol = BluetoothEndpoint(address: 2, isRandom: false)

/// The connection intervals that the central chooses under load and without load.
struct ConnectionPaceTests {
  private var pace = ConnectionPace(bob, start)

  @Test mutating func `a new connection keeps its intervals for ten seconds and then becomes slow`() {
    #expect(pace.next(start) == nil && pace.deadline == start + ConnectionPace.calm)
    #expect(pace.next(start + .milliseconds(9999)) == nil)
    #expect(pace.next(start + .seconds(10)) == .slow)
  }

  @Test mutating func `each change is sent twice, one second apart`() {
    #expect(pace.next(start + .seconds(10)) == .slow)
    #expect(pace.next(start + .seconds(10)) == nil && pace.deadline == start + .seconds(11))
    #expect(pace.next(start + .seconds(11)) == .slow)
    #expect(pace.next(start + .seconds(12)) == nil && pace.deadline == .never)
  }

  @Test mutating func `load makes a connection fast at once, and ten seconds without load make it slow`() {
    _ = pace.next(start + .seconds(10))
    let loaded = start + .seconds(60)
    #expect(pace.passed(ConnectionPace.loadBytes, loaded) == true)
    #expect(pace.next(loaded) == .fast)
    #expect(pace.passed(ConnectionPace.loadBytes, loaded + .seconds(5)) == false)
    #expect(pace.next(loaded + .seconds(14)) == .fast)
    #expect(pace.next(loaded + .milliseconds(14_999)) == nil)
    #expect(pace.next(loaded + .seconds(15)) == .slow)
  }

  @Test mutating func `pings and chat messages leave a connection slow`() {
    _ = pace.next(start + .seconds(10))
    _ = pace.next(start + .seconds(11))
    for second in 20..<120 {
      #expect(pace.passed(300, start + .seconds(UInt64(second))) == false)
      #expect(pace.next(start + .seconds(UInt64(second))) == nil)
    }
  }

  @Test mutating func `intermittent load changes the intervals at most twice in ten seconds`() {
    var changes = 0
    var parameters = pace.parameters
    for tenth in 0..<1200 {
      let now = start + .milliseconds(UInt64(tenth) * 100)
      if tenth % 40 < 20 { _ = pace.passed(2000, now) }
      _ = pace.next(now)
      if pace.parameters != parameters { changes += 1 }
      parameters = pace.parameters
    }
    #expect(changes == 1)
  }

  @Test func `each connection has its own pace, except those that the peer initiated`() {
    var paces = ConnectionPaces()
    paces.linked(bob, start)
    #expect(paces.passed(carol, 10_000, start) == false)
    paces.linked(carol, start)
    #expect(paces.passed(carol, 10_000, start) == true)
    let next = paces.next(start)
    #expect(next?.endpoint == carol && next?.parameters == .fast)
    #expect(paces.next(start) == nil && paces.fast == 1 && paces.slow == 0)
    #expect(paces.deadline == start + ConnectionPace.repeatTime)
    paces.unlinked(carol)
    #expect(paces.deadline == start + ConnectionPace.calm && paces.fast == 0)
  }
}
