import Frame
import Link
import Node
import Primitives
import TestSupport
import Testing

/// Opens two links between the nodes `here` and `there`. Returns whether `here` dialled the link that stays, or nil if
/// both close.
private func keptIsDialled(here: Int, there: Int, ownFirst: Bool) -> Bool? {
  let bench = Bench(here)
  let first = bench.neighbour(there, dialled: ownFirst ? 1 : nil)
  let second = bench.neighbour(there, dialled: ownFirst ? nil : 1)
  ping(bench, there, on: first)
  ping(bench, there, on: second)
  let up = [first, second].filter { bench.node.link($0).state == .up }
  #expect(up.count == 1)
  return up.first.map { !bench.node.link($0).isInbound }
}

/// Lets the neighbour send a ping on a link. The ping shows that the link is up at the neighbour's end.
private func ping(_ bench: Bench, _ person: Int, on slot: Int) {
  bench.receive(frame(.ping, from: bench.id(person), [0, 0, 0, 0, 0, 0, 0, 1]), on: slot)
}

@Test(arguments: [true, false]) func `both sides keep the link that the lower id dialled, in either order`(
  ownFirst: Bool
) {
  #expect(keptIsDialled(here: 5, there: 9, ownFirst: ownFirst) == true)
  #expect(keptIsDialled(here: 9, there: 5, ownFirst: ownFirst) == false)
}

@Test func `a duplicate link is closed with that reason`() throws {
  let bench = Bench(5)
  let own = bench.neighbour(9, dialled: 1)
  let other = bench.neighbour(9)
  ping(bench, 9, on: own)
  #expect(bench.takeCommands() == [.close(other)])
  #expect(bench.node.link(own).state == .up && bench.node.link(other).state == .closed(.duplicate))
}

@Test func `one of two crossing links is closed only when the other one is up at the neighbour`() {
  let bench = Bench(5)
  let other = bench.neighbour(9)
  let own = bench.open(9, dialled: 1)
  bench.hello(9, on: own)
  // The node pings the neighbour, because the neighbour itself may have nothing to send.
  #expect(bench.sent(.ping, on: own).count == 1)
  ping(bench, 9, on: other)
  #expect(bench.node.link(own).state == .up && bench.node.link(other).state == .up)
  ping(bench, 9, on: own)
  #expect(bench.node.link(own).state == .up && bench.node.link(other).state == .closed(.duplicate))
}

@Test func `a crossing link is kept if the preferred one breaks`() {
  let bench = Bench(5)
  let other = bench.neighbour(9)
  let own = bench.neighbour(9, dialled: 1)
  bench.handle(.linkClosed(own))
  #expect(bench.node.link(other).state == .up && bench.takeCommands() == [])
}

@Test func `the newer one of two links dialled by one side is kept`() {
  let bench = Bench(5)
  let old = bench.neighbour(9)
  let new = bench.neighbour(9)
  #expect(bench.node.link(old).state == .closed(.duplicate) && bench.node.link(new).state == .up)
}

@Test func `the link of the neighbour's later epoch is kept, in either order`() {
  for laterFirst in [true, false] {
    // The node with the lower id dialled the link of the former epoch. With equal epochs, that link would stay.
    let bench = Bench(9)
    let first = bench.neighbour(5, dialled: laterFirst ? 1 : nil, epoch: laterFirst ? 2 : 1)
    let second = bench.neighbour(5, dialled: laterFirst ? nil : 1, epoch: laterFirst ? 1 : 2)
    let later = laterFirst ? first : second
    let up = [first, second].filter { bench.node.link($0).state == .up }
    #expect(up == [later], "later life first: \(laterFirst)")
  }
}

@Test func `links over two bearers are both kept`() {
  let bench = Bench(5)
  let slots = [bench.neighbour(9, .wifi), bench.neighbour(9, .bluetoothLE)]
  #expect(slots.allSatisfy { bench.node.link($0).state == .up })
}

@Test func `a link to this node itself is refused`() {
  let bench = Bench(5)
  #expect(bench.node.openLink(peer: bench.identity.id, bearer: .ethernet, dialled: nil, now: bench.now) == nil)
}

@Test func `link 65 is refused, and a closed link frees its slot`() {
  let bench = Bench(5)
  for _ in 0..<Limits.linksMax { _ = bench.open(9) }
  #expect(bench.node.openLink(peer: bench.id(8), bearer: .ethernet, dialled: nil, now: bench.now) == nil)
  bench.handle(.linkClosed(17))
  #expect(bench.node.openLink(peer: bench.id(8), bearer: .ethernet, dialled: nil, now: bench.now) == 17)
}

@Test func `a closed stream is asked neither to close nor to send`() {
  let bench = Bench(5)
  bench.carriesOutTransmit = false
  let slot = bench.open(9)
  bench.node.handle(.linkClosed(slot), now: bench.now)
  var outputs: [Node.Output] = []
  while let output = bench.node.nextOutput(now: bench.now) { outputs.append(output) }
  #expect(outputs == [])
}

@Test func `the link of a silent neighbour is closed, and its routes are removed`() {
  let bench = Bench(5)
  let slot = bench.neighbour(9)
  bench.receive(bench.topology(9, [5]) + bench.profile(9), on: slot)
  #expect(bench.node.peers.count == 1)
  bench.pass(.seconds(10))
  #expect(bench.takeCommands() == [.close(slot)])
  #expect(bench.node.link(slot).state == .closed(.timedOut))
  bench.pass(.seconds(3))
  #expect(bench.node.peers.isEmpty)
}

@Test func `a shutdown sends a goodbye on every link`() throws {
  let bench = Bench(5)
  let slots = [bench.neighbour(9), bench.neighbour(8), bench.open(7)]
  bench.node.shutDown(now: bench.now)
  bench.drain()
  #expect(Set(bench.takeCommands().map { "\($0)" }) == Set(slots.map { "\(Node.Output.close($0))" }))
  for slot in slots {
    let goodbye = try Goodbye(bytes: #require(bench.sent(.goodbye, on: slot).first).payload)
    #expect(goodbye.reason == .shutdown)
  }
}
