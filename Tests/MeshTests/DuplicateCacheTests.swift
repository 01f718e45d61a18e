import Mesh
import Primitives
import TestSupport
import Testing

private func withCache(_ body: (DuplicateCache) -> Void) {
  let memory = Borrowed(DuplicateCache.byteCount)
  body(DuplicateCache(memory.bytes))
}

private let node = NodeID(high: 1, low: 2)

@Test func aFrameIsSeenForTheFirstTimeOnce() {
  withCache { cache in
    #expect(cache.insert(node, 1))
    #expect(!cache.insert(node, 1))
    #expect(cache.insert(node, 2))
  }
}

@Test func framesOfTwoSourcesWithOneIdentifierAreTwoFrames() {
  withCache { cache in
    #expect(cache.insert(NodeID(high: 1, low: 2), 7))
    #expect(cache.insert(NodeID(high: 1, low: 3), 7))
    #expect(cache.insert(NodeID(high: 2, low: 2), 7))
  }
}

@Test func theLastThousandFramesOfASourceAreRemembered() {
  withCache { cache in
    for identifier in 1...5000 { #expect(cache.insert(node, 9 << 32 | UInt64(identifier))) }
    let known = (4001...5000).filter { !cache.insert(node, 9 << 32 | UInt64($0)) }
    #expect(known.count == 1000)
  }
}

@Test func theOldestGivesWayInAFullSet() {
  withCache { cache in
    for identifier in 1...100_000 { _ = cache.insert(node, UInt64(identifier)) }
    #expect(cache.insert(node, 1))
  }
}
