import Frame
import Node
import Primitives
import TestSupport
import Testing

/// A node that is linked with nodes 1 and 2. The two neighbours list the node in their topologies.
private func between(relays: Bool = true, payloadBytesMax: Int = 16_640) -> (bench: Bench, left: Int, right: Int) {
  let bench = Bench(relays: relays)
  let left = bench.neighbour(1)
  let right = bench.neighbour(2, payloadBytesMax: payloadBytesMax)
  bench.receive(bench.topology(1, [20]), on: left)
  bench.receive(bench.topology(2, [20]), on: right)
  _ = bench.sent(on: left)
  _ = bench.sent(on: right)
  return (bench, left, right)
}

private func segment(_ bench: Bench, _ payload: [UInt8] = [1, 2, 3], identifier: UInt64 = 1) -> [UInt8] {
  frame(.segment, ttl: 5, priority: .bulk, to: bench.id(2), from: bench.id(1), identifier: identifier, payload)
}

@Test func `a frame is forwarded unread with one hop less`() {
  let (bench, left, right) = between()
  bench.receive(segment(bench), on: left)
  let sent = bench.sent(on: right)
  #expect(sent.count == 1 && sent[0].payload == [1, 2, 3])
  let expected = FrameHeader(
    type: .segment, ttl: 4, priority: .bulk, payloadByteCount: 3, destination: bench.id(2), source: bench.id(1),
    identifier: 1)
  #expect(sent.first?.header == expected)
  #expect(bench.node.counters.framesForwarded == 1 && bench.node.counters.bytesForwarded == 51)
}

@Test func `a routed frame of an unknown type is forwarded, too`() {
  let (bench, left, right) = between()
  bench.receive(
    segment(bench).with {
      $0[1] = 0xfe; $0[2] = 1
    }, on: left)
  let sent = bench.sent(on: right)
  #expect(sent.count == 1 && sent[0].header.type == 0xfe && sent[0].header.flags == 1)
}

@Test func `a node that does not relay forwards nothing`() {
  let (bench, left, right) = between(relays: false)
  bench.receive(segment(bench), on: left)
  #expect(bench.sent(on: right).isEmpty && bench.refusals(.unexpected) == 1)
}

@Test func `a frame without a route is counted`() {
  let (bench, left, _) = between()
  bench.receive(segment(bench).with { $0[8] ^= 1 }, on: left)
  #expect(bench.node.counters.dropsNoRoute == 1)
}

@Test func `a frame is not sent back over the link that brought it`() {
  let (bench, left, right) = between()
  bench.receive(segment(bench), on: right)
  #expect(bench.sent(on: left).isEmpty && bench.sent(on: right).isEmpty)
  #expect(bench.node.counters.dropsNoRoute == 1)
}

@Test func `a frame is not sent back to the neighbour over another link`() {
  let (bench, _, right) = between()
  let second = bench.neighbour(2, .wifi)
  let carrier = bench.node.route(to: bench.id(2))?.link
  let other = carrier == UInt8(right) ? second : right
  bench.receive(segment(bench), on: other)
  #expect(bench.sent(.segment, on: right).isEmpty && bench.sent(.segment, on: second).isEmpty)
  #expect(bench.node.counters.dropsNoRoute == 1)
}

@Test func `the hop limit of a forwarded frame is reduced to the maximum`() {
  let (bench, left, right) = between()
  bench.receive(segment(bench).with { $0[3] = 255 }, on: left)
  #expect(bench.sent(on: right).first?.header.ttl == Limits.hopsMax - 1)
}

@Test func `frames sent in the name of another node do not suppress the frames of that node`() {
  // Node 3 sends frames in the name of node 1, with all identifiers that node 1 uses afterwards.
  let (bench, left, right) = between()
  let third = bench.neighbour(3)
  for identifier in 1...60 { bench.receive(segment(bench, identifier: UInt64(identifier)), on: third) }
  _ = bench.sent(on: right)
  for identifier in 1...60 { bench.receive(segment(bench, [7], identifier: UInt64(identifier)), on: left) }
  #expect(bench.sent(.segment, on: right).count { $0.payload == [7] } == 60)
}

@Test func `a frame longer than the next link accepts is dropped and counted`() {
  let (bench, left, right) = between(payloadBytesMax: 4000)
  bench.receive(segment(bench, [UInt8](repeating: 1, count: 4001), identifier: 1), on: left)
  #expect(bench.node.counters.dropsTooLong == 1 && bench.sent(on: right).isEmpty)
  bench.receive(segment(bench, [UInt8](repeating: 1, count: 4000), identifier: 2), on: left)
  #expect(bench.sent(on: right).count == 1)
}

@Test func `a neighbour that floods leaves another neighbour its room`() {
  // Node 1 fills its share of the queue to node 2. A frame from node 3 still finds room, and the two neighbours take
  // turns.
  let (bench, left, right) = between()
  let third = bench.neighbour(3)
  bench.carriesOutTransmit = false
  for identifier in 1...500 {
    bench.receive(segment(bench, [UInt8](repeating: 1, count: 4000), identifier: UInt64(identifier)), on: left)
  }
  bench.receive(
    frame(.segment, ttl: 5, priority: .bulk, to: bench.id(2), from: bench.id(3), identifier: 1, [9]), on: third)
  let sent = bench.sent(.segment, on: right).map { $0.payload[0] }
  #expect(sent.count == 65 && (sent.firstIndex(of: 9) ?? 99) <= 5)
}

@Test func `a neighbour that does not read uses at most its queue`() {
  let (bench, left, right) = between()
  bench.carriesOutTransmit = false
  for identifier in 1...200 {
    bench.receive(segment(bench, [UInt8](repeating: 1, count: 4048), identifier: UInt64(identifier)), on: left)
  }
  #expect(bench.node.link(right).queuedByteCount(.bulk) == 64 * 4096)
  #expect(bench.node.counters.framesForwarded == 64 && bench.node.queueDrops[.flowQuota] == 136)
}

@Test func `a hundred flows behind a relay pass beside a neighbour that opens a thousand more`() {
  let bench = Bench()
  let slots = (1...3).map { bench.neighbour($0) }
  for person in 1...3 { bench.receive(bench.topology(person, [20]), on: slots[person - 1]) }
  for slot in slots { _ = bench.sent(on: slot) }
  bench.carriesOutTransmit = false
  func begin(_ flows: Range<UInt64>, on slot: Int) {
    for flow in flows {
      let source = NodeID(high: flow, low: 1)
      let payload = [UInt8](repeating: 0, count: 1000)
      bench.receive(frame(.segment, ttl: 5, priority: .bulk, to: bench.id(2), from: source, payload), on: slot)
    }
  }
  begin(1000..<2000, on: slots[2])
  begin(1..<101, on: slots[0])
  let sources = bench.sent(.segment, on: slots[1]).map(\.header.source.high)
  #expect(sources.count { $0 < 1000 } == 100)
  // The two neighbours take turns, although all frames of the flooding neighbour arrived first.
  #expect(sources.prefix(240).count { $0 < 1000 } == 100)
}
