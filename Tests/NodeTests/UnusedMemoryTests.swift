import Node
import Primitives
import TestSupport
import Testing

/// The unused memory of link slots without a link: the number of pieces and their total size in bytes.
private func unused(_ bench: Bench) -> (pieces: Int, byteCount: Int) {
  var found = (pieces: 0, byteCount: 0)
  bench.node.forEachUnusedMemory { memory in
    found.pieces += 1
    found.byteCount += memory.count
  }
  return found
}

@Test func `the memory of a link's slot is unused without a link`() {
  let bench = Bench()
  let all = unused(bench)
  #expect(all.pieces == 1)
  let slots = [bench.neighbour(1), bench.neighbour(2), bench.neighbour(3)]
  let each = all.byteCount / Limits.linksMax
  #expect(slots == [0, 1, 2] && unused(bench) == (1, all.byteCount - 3 * each))
  bench.handle(.linkClosed(1))
  #expect(unused(bench) == (2, all.byteCount - 2 * each))
}

@Test func `a link works in memory that was released in between`() {
  let bench = Bench()
  bench.handle(.linkClosed(bench.neighbour(1)))
  bench.node.forEachUnusedMemory { $0.initializeMemory(as: UInt8.self, repeating: 0xA5) }
  let slot = bench.neighbour(1)
  // The bytes arrive in two parts. So the node assembles the frames in the memory of the slot.
  let bytes = bench.topology(1, [20]) + bench.profile(1, name: "bob")
  bench.receive([UInt8](bytes[..<100]), on: slot)
  bench.receive([UInt8](bytes[100...]), on: slot)
  #expect(bench.peerEvents() == ["found bob 1"])
}
