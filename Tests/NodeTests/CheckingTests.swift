import Frame
import Link
import Node
import Primitives
import TestSupport
import Testing

// A node verifies received data in pieces and handles other events between two pieces.

private func stranger(_ number: Int) -> [UInt8] {
  let identity = Identity(UInt64(7000 + number))
  return frame(.advertisement, from: identity.id, advertisement(of: identity, .profile, body: profileBody()))
}

@Suite struct CheckingTests {
  @Test func `advertisements that arrive together are verified three at a time`() {
    let bench = Bench()
    let slot = bench.neighbour(1)
    bench.pass(.milliseconds(100))
    let before = bench.verifyCount
    bench.drains = false
    bench.receive((0..<12).flatMap { stranger($0) }, on: slot)
    var counts = [bench.verifyCount - before]
    // Each piece of the verification belongs to its own pass of the event loop, one microsecond after the piece before.
    while counts.count < 20 {
      bench.now = bench.now + .microseconds(1)
      if bench.node.nextDeadline(now: bench.now) > bench.now { break }
      let last = bench.verifyCount
      bench.node.handle(.timeout, now: bench.now)
      counts.append(bench.verifyCount - last)
    }
    #expect(counts.filter { $0 > 0 } == [3, 3, 3, 3])
    bench.drains = true
    #expect(bench.node.counters.advertisementsAccepted == 12 && bench.refusals(.tooMany) == 0)
  }

  @Test func `an advertisement that finds no room to wait for verification is requested again`() {
    let bench = Bench()
    let slot = bench.neighbour(1)
    bench.pass(.milliseconds(100))
    bench.drains = false
    // The profiles are so long that only eleven of them from one link have room to wait for verification.
    for number in 0..<20 {
      let identity = Identity(UInt64(7000 + number))
      let body = profileBody(pairs: (0..<5).map { _ in [UInt8](repeating: 97, count: 250) + [61] })
      let profile = advertisement(of: identity, .profile, body: body)
      bench.receive(frame(.advertisement, from: identity.id, profile), on: slot)
    }
    #expect(bench.refusals(.tooMany) > 0)
    bench.drains = true
    bench.pass(.milliseconds(1))
    let accepted = bench.node.counters.advertisementsAccepted
    #expect(accepted + bench.refusals(.tooMany) == 20)
    bench.pass(.milliseconds(200))
    #expect(bench.sent(.request, on: slot).count == 1)
  }

  @Test func `advertisements that wait for verification are dropped with their link`() {
    let bench = Bench()
    let slot = bench.neighbour(1)
    bench.pass(.milliseconds(100))
    bench.drains = false
    bench.receive((0..<12).flatMap { stranger($0) }, on: slot)
    bench.node.handle(.linkClosed(slot), now: bench.now)
    let before = bench.verifyCount
    bench.drains = true
    #expect(bench.verifyCount == before)
  }

  @Test func `advertisements that wait for verification survive the parking of their link`() throws {
    let (box, slot) = try ParkingBox.leaf()
    let bench = box.bench
    let before = bench.node.counters.advertisementsAccepted
    bench.drains = false
    bench.receive((0..<12).flatMap { stranger($0) } + box.goodbye(of: 1), on: slot)
    bench.node.handle(.linkClosed(slot), now: bench.now)
    #expect(box.state(1) == .parked)
    bench.drains = true
    bench.pass(.milliseconds(1))
    #expect(bench.node.counters.advertisementsAccepted - before == 12)
  }

  @Test func `advertisements that wait for verification are accepted while a parked link opens again`() throws {
    let (box, slot) = try ParkingBox.leaf()
    let bench = box.bench
    let before = bench.node.counters.advertisementsAccepted
    bench.drains = false
    bench.receive((0..<12).flatMap { stranger($0) } + box.goodbye(of: 1), on: slot)
    bench.node.handle(.linkClosed(slot), now: bench.now)
    #expect(bench.open(1, .bluetoothLE) == slot && box.state(1) == .opening)
    bench.drains = true
    bench.pass(.milliseconds(1))
    #expect(bench.node.counters.advertisementsAccepted - before == 12)
  }

  @Test func `a neighbour that sends a frame byte by byte and answers no ping counts as silent`() {
    for bearer in [BearerKind.ethernet, .bluetoothLE] {
      let bench = Bench()
      let slot = bench.neighbour(1, bearer)
      bench.pass(.milliseconds(10))
      let bytes = stranger(1)
      for index in 0..<100 where bench.node.link(slot).state == .up {
        bench.receive([bytes[index]], on: slot)
        bench.pass(.milliseconds(500))
        #expect(index < 21, "no pong has come for ten seconds")
      }
      #expect(bench.node.link(slot).state == .closed(.timedOut))
    }
  }

  @Test func `a neighbour that sends complete frames counts as alive, however slowly they arrive`() {
    let bench = Bench()
    let slot = bench.neighbour(1, .bluetoothLE)
    for number in 0..<20 {
      let bytes = stranger(number)
      for part in stride(from: 0, to: bytes.count, by: bytes.count / 3 + 1) {
        bench.receive(Array(bytes[part..<min(part + bytes.count / 3 + 1, bytes.count)]), on: slot)
        bench.pass(.milliseconds(600))
      }
    }
    #expect(bench.node.link(slot).state == .up)
  }
}
