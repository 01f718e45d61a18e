import Frame
import Node
import Primitives
import TestSupport
import Testing

/// Records the frames that the tap receives.
private final class Witness: FrameTap {
  var seen: [(passage: FramePassage, header: [UInt8], payload: [UInt8])] = []
  func passed(_ passage: FramePassage, _ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer) {
    seen.append((passage, Array(header), Array(payload)))
  }
}

@Test func `a tap records a forwarded frame as it arrives and as it leaves`() {
  let bench = Bench(relays: true)
  let left = bench.neighbour(1)
  let right = bench.neighbour(2)
  bench.receive(bench.topology(1, [20]), on: left)
  bench.receive(bench.topology(2, [20]), on: right)
  _ = bench.sent(on: left)
  _ = bench.sent(on: right)
  let witness = Witness()
  bench.node.tap = witness
  bench.receive(
    frame(.segment, ttl: 5, priority: .bulk, to: bench.id(2), from: bench.id(1), identifier: 1, [1, 2, 3]), on: left)
  _ = bench.sent(on: right)
  #expect(witness.seen.map(\.passage.slot) == [left, right])
  #expect(witness.seen.map(\.passage.neighbour) == [bench.id(1), bench.id(2)])
  #expect(witness.seen.map(\.passage.isSent) == [false, true])
  // Byte 3 of the header is the number of remaining hops.
  #expect(witness.seen.map { $0.header[3] } == [5, 4])
  #expect(witness.seen.allSatisfy { $0.header.count == 48 && $0.payload == [1, 2, 3] })
}

@Test func `a tap records refused frames`() {
  let bench = Bench()
  let slot = bench.neighbour(1)
  let witness = Witness()
  bench.node.tap = witness
  bench.receive(
    frame(.ping, priority: .control, to: .none, from: bench.id(1), identifier: 0, [1, 2, 3]).with { $0[3] = 0 },
    on: slot)
  #expect(witness.seen.count == 1 && bench.refusals(.ttlZero) == 1)
}
