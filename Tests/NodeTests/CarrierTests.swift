import Frame
import Link
import Node
import Primitives
import TestSupport
import Testing

/// Lets `seconds` pass. The neighbours of `links` answer every ping.
private func live(_ bench: Bench, _ seconds: Int, _ links: [(person: Int, slot: Int)]) {
  for _ in 0..<seconds * 250 {
    bench.pass(.milliseconds(4))
    for (person, slot) in links where bench.node.link(slot).state == .up {
      for ping in bench.sent(.ping, on: slot) {
        bench.receive(frame(.pong, from: bench.id(person), ping.payload), on: slot)
      }
    }
  }
}

/// Opens a link and completes the hello exchange. The node's first ping on this link stays unanswered. Returns the
/// slot.
private func comeUp(_ bench: Bench, _ person: Int, _ bearer: BearerKind) -> Int {
  let slot = bench.open(person, bearer)
  bench.hello(person, on: slot)
  return slot
}

@Test func `a better bearer is used after a pong and two seconds`() {
  let bench = Bench()
  let slow = comeUp(bench, 1, .bluetoothLE)
  let fast = comeUp(bench, 1, .wifi)
  let silent = Bench()
  _ = comeUp(silent, 1, .bluetoothLE)
  _ = comeUp(silent, 1, .wifi)
  live(bench, 1, [(1, slow), (1, fast)])
  #expect(bench.node.carrier(to: bench.id(1))?.slot == slow)
  live(bench, 2, [(1, slow), (1, fast)])
  #expect(bench.node.carrier(to: bench.id(1))?.slot == fast)
  #expect(bench.node.link(slow).state == .up)
  // A new link on which no pong has arrived never becomes the carrier, the link in use.
  silent.pass(.seconds(6))
  #expect(silent.node.carrier(to: silent.id(1))?.slot == 0)
}

@Test func `frames that wait on the old link are still sent over it`() {
  let bench = Bench()
  let from = bench.neighbour(2)
  let slow = comeUp(bench, 1, .bluetoothLE)
  bench.receive(bench.topology(1, [20]), on: slow)
  _ = bench.sent(on: slow)
  let fast = comeUp(bench, 1, .wifi)
  bench.carriesOutTransmit = false
  func segment(_ number: UInt64) -> [UInt8] {
    frame(.segment, ttl: 5, priority: .bulk, to: bench.id(1), from: bench.id(2), identifier: number, [UInt8(number)])
  }
  bench.receive(segment(1), on: from)
  for ping in bench.sent(.ping, on: fast) { bench.receive(frame(.pong, from: bench.id(1), ping.payload), on: fast) }
  bench.pass(.seconds(2))
  #expect(bench.node.carrier(to: bench.id(1))?.slot == fast)
  bench.receive(segment(2), on: from)
  #expect(bench.sent(.segment, on: slow).map(\.payload) == [[1]])
  #expect(bench.sent(.segment, on: fast).map(\.payload) == [[2]])
}

@Test func `a link that keeps breaking is used only if there is no other route`() {
  let bench = Bench()
  let slow = comeUp(bench, 1, .bluetoothLE)
  for _ in 0..<2 {
    let fast = comeUp(bench, 1, .wifi)
    live(bench, 3, [(1, slow), (1, fast)])
    #expect(bench.node.carrier(to: bench.id(1))?.slot == fast)
    bench.handle(.linkClosed(fast))
    #expect(bench.node.carrier(to: bench.id(1))?.slot == slow)
  }
  let fast = comeUp(bench, 1, .wifi)
  live(bench, 20, [(1, slow), (1, fast)])
  #expect(bench.node.carrier(to: bench.id(1))?.slot == slow)
  live(bench, 10, [(1, slow), (1, fast)])
  #expect(bench.node.carrier(to: bench.id(1))?.slot == fast)
}

@Test func `a quarantined single link is used at a cost above all others`() {
  let bench = Bench()
  for _ in 0..<2 {
    let slot = comeUp(bench, 1, .ethernet)
    bench.handle(.linkClosed(slot))
  }
  let slot = comeUp(bench, 1, .ethernet)
  #expect(bench.node.carrier(to: bench.id(1))?.slot == slot)
  #expect(bench.node.carrier(to: bench.id(1))?.cost == UInt16(32_778))
  live(bench, 31, [(1, slot)])
  #expect(bench.node.carrier(to: bench.id(1))?.cost == 10)
}

@Test func `links that are closed on purpose do not count as flapping`() {
  let bench = Bench()
  for _ in 0..<5 {
    let slot = comeUp(bench, 1, .ethernet)
    bench.receive(frame(.goodbye, from: bench.id(1), [1, 0, 0, 0]), on: slot)
    bench.handle(.linkClosed(slot))
  }
  _ = comeUp(bench, 1, .ethernet)
  #expect(bench.node.carrier(to: bench.id(1))?.cost == 10)
}

@Test func `a link of a former epoch of the neighbour is closed, whatever its bearer`() {
  let bench = Bench(5)
  let old = bench.neighbour(9, .bluetoothLE, epoch: 1)
  let new = bench.neighbour(9, .wifi, epoch: 2)
  #expect(bench.node.link(old).state == .closed(.duplicate) && bench.node.link(new).state == .up)
  #expect(bench.node.carrier(to: bench.id(9))?.slot == new)
}
