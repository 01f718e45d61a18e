import Primitives
import Testing

@testable import BearerBluetooth

@Test func `an overtaken dial is reported when the peer's stream has had time for a handshake`() {
  var dials = OvertakenDials()
  let start = Instant.zero + .seconds(5)
  #expect(dials.deadline == .never)
  dials.add(7, start)
  dials.add(8, start + .milliseconds(1))
  #expect(dials.deadline == start + OvertakenDials.handshakeTime)
  #expect(dials.next(start + .milliseconds(1_499)) == nil)
  #expect(dials.next(dials.deadline) == 7)
  #expect(dials.next(start + OvertakenDials.handshakeTime) == nil)
  #expect(dials.next(start + .seconds(2)) == 8)
  #expect(dials.next(.never) == nil)
}

@Test func `all overtaken dials are reported when the controller is removed`() {
  var dials = OvertakenDials()
  dials.add(7, .zero)
  dials.add(8, .zero)
  #expect(dials.takeAll() == [7, 8])
  #expect(dials.deadline == .never)
}
