import Node
import Primitives
import TestSupport
import Testing

@testable import Session

/// A restarted application may have been a member of an auto-join session. The session can invite the application again
/// only if the application's service is reported again.
@Test func `a service of a node that restarts at once is found again, even if it is unchanged`() throws {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let body = try #require(Service.advertisementBody([Service(endpoint: 5, type: [UInt8]("chat".utf8))]))
  bench.receive(bench.topology(1, [20, 2]) + bench.profile(1), on: slot)
  func life(_ epoch: UInt64) -> Int {
    bench.drains = false
    bench.receivePaced(bench.topology(2, [1], epoch: epoch) + bench.profile(2, epoch: epoch), on: slot)
    bench.receivePaced(bench.advertise(2, .services, body, epoch: epoch), on: slot)
    bench.drains = true
    bench.pass(.seconds(2))
    var found = 0
    while let event = bench.nextSessionEvent() {
      if case .serviceFound(let address, _) = event, address.node == bench.id(2) { found += 1 }
    }
    return found
  }
  #expect(life(1) == 1)
  #expect(life(2) >= 1)
  #expect(bench.node.sessions.services.all.count == 1)
}
