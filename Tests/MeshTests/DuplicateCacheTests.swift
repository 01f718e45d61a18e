import Mesh
import Primitives
import TestSupport
import Testing

private func withCache(_ body: (_ insert: (NodeID, UInt64) -> Bool) -> Void) {
  let memory = Borrowed(DuplicateCache.byteCount)
  var cache = DuplicateCache(memory.bytes)
  body { cache.insert($0, $1) }
}

private let node = NodeID(high: 1, low: 2)

@Test func aFrameIsSeenForTheFirstTimeOnce() {
  withCache { insert in
    #expect(insert(node, 1))
    #expect(!insert(node, 1))
    #expect(insert(node, 2))
  }
}

@Test func framesOfTwoSourcesWithOneIdentifierAreTwoFrames() {
  withCache { insert in
    #expect(insert(NodeID(high: 1, low: 2), 7))
    #expect(insert(NodeID(high: 1, low: 3), 7))
    #expect(insert(NodeID(high: 2, low: 2), 7))
  }
}

@Test func theLastThousandFramesOfASourceAreRemembered() {
  withCache { insert in
    for identifier in 1...5000 { #expect(insert(node, 9 << 32 | UInt64(identifier))) }
    let known = (4001...5000).filter { !insert(node, 9 << 32 | UInt64($0)) }
    #expect(known.count == 1000)
  }
}

@Test func theOldestGivesWayInAFullSet() {
  withCache { insert in
    for identifier in 1...100_000 { _ = insert(node, UInt64(identifier)) }
    #expect(insert(node, 1))
  }
}
