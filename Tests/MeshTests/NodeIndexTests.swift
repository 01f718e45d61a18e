import Primitives
import TestSupport
import Testing

@testable import Mesh

/// The ids share few home slots of the hash table. So long runs of slots fill up, and removals leave holes inside these
/// runs.
@Test func `every node is found after any insertions and removals`() {
  let memory = Borrowed(Table<NodeRecord, Int>.byteCount(Limits.nodesMax) + NodeIndex.byteCount)
  var arena = Arena(memory.bytes)
  let records = Table<NodeRecord, Int>(count: Limits.nodesMax, in: &arena)
  records.fill(NodeRecord())
  let index = NodeIndex(over: records, in: &arena)
  var random = SeededRandom(seed: 5)
  var held: [Int] = []
  var free = Array(0..<Limits.nodesMax)
  for step in 0..<20_000 {
    if free.isEmpty || (!held.isEmpty && random.chance(perThousand: 500)) {
      let number = held.remove(at: Int(random.below(UInt64(held.count))))
      index.remove(number)
      records[number].id = .none
      free.append(number)
    } else {
      let number = free.removeLast()
      records[number].id = NodeID(high: random.below(40), low: UInt64(step) << 58 | UInt64(step))
      index.insert(number)
      held.append(number)
    }
    let wrong = held.first { index.find(records[$0].id) != $0 }
    if let wrong { Issue.record("step \(step): record \(wrong) is not found") }
    #expect(index.find(NodeID(high: 99, low: UInt64(step))) == nil)
  }
}
