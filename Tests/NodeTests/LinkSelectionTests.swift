import Primitives
import Testing

@testable import Node

/// Random hints (the upper halves of node ids), distributed like the hints of real nodes.
private func hints(_ count: Int, seed: UInt64 = 1) -> [UInt64] {
  var random = SeededRandom(seed: seed)
  return (0..<count).map { _ in random.next() }
}

private func selection(of local: UInt64, relays: Bool = true, among others: [UInt64]) -> LinkSelection {
  var selection = LinkSelection(local: local, relays: relays)
  for other in others { selection.add(other) }
  return selection
}

/// The relays that each relay wants to link with, by their indices.
private func wishes(_ relays: [UInt64], among usable: [UInt64]? = nil) -> [[Int]] {
  relays.map { local in
    let selection = selection(of: local, among: usable ?? relays)
    return relays.indices.filter { relays[$0] != local && selection.wants(relays[$0], relays: true) }
  }
}

/// The number of relays that can be reached from the first remaining relay, and the greatest distance in hops. The
/// relays in `gone` are left out.
private func reach(_ links: [[Int]], without gone: Set<Int> = []) -> (count: Int, hops: Int) {
  guard let start = links.indices.first(where: { !gone.contains($0) }) else { return (0, 0) }
  var hops = [start: 0]
  var turn = [start]
  while !turn.isEmpty {
    let one = turn.removeFirst()
    for other in links[one] where hops[other] == nil && !gone.contains(other) {
      hops[other] = hops[one, default: 0] + 1
      turn.append(other)
    }
  }
  return (hops.count, hops.values.max() ?? 0)
}

@Test(arguments: 2...5) func `a few relays all link with each other`(count: Int) {
  #expect(wishes(hints(count)).allSatisfy { $0.count == count - 1 })
}

@Test(arguments: [6, 7, 8, 12, 16, 24, 32, 64, 128, 256])
func `a relay wants at most four links, and both ends agree on each`(
  count: Int
) {
  for seed in 1...10 as ClosedRange<UInt64> {
    let links = wishes(hints(count, seed: seed))
    #expect(links.allSatisfy { (2...4).contains($0.count) })
    for one in links.indices { for other in links[one] { #expect(links[other].contains(one)) } }
  }
}

@Test(arguments: [(6, 3), (16, 6), (32, 7), (64, 8), (256, 10)]) func `every relay reaches all others over few links`(
  count: Int, hopsMax: Int
) {
  for seed in 1...20 as ClosedRange<UInt64> {
    let (reached, hops) = reach(wishes(hints(count, seed: seed)))
    #expect(reached == count && hops <= hopsMax, "\(hops) hops")
  }
}

@Test func `the loss of any relay does not partition the others`() {
  for count in [6, 8, 16, 32] {
    let links = wishes(hints(count))
    for gone in 0..<count { #expect(reach(links, without: [gone]).count == count - 1) }
  }
}

@Test func `the rings of the remaining relays close when half of the relays are gone`() {
  let all = hints(64)
  let left = Array(all[32...])
  let links = wishes(left)
  #expect(reach(links).count == 32 && links.allSatisfy { $0.count <= 4 })
  // A relay that is gone keeps its position on the rings while other nodes dial it again. The ring neighbours of a
  // relay that is gone still want to link with it.
  let among = wishes(all, among: left)
  #expect((0..<32).allSatisfy { gone in (32..<64).contains { among[$0].contains(gone) } })
}

@Test func `a new relay changes only the links of its neighbours`() {
  let all = hints(64)
  let before = wishes(Array(all.dropLast()))
  let after = wishes(all)
  let changed = before.indices.count { before[$0] != after[$0] }
  #expect(changed <= 4)
}

@Test func `a node that is added twice counts once`() {
  let all = hints(4)
  let relay = selection(of: hints(1, seed: 2)[0], among: all + all + all)
  #expect(all.allSatisfy { relay.wants($0, relays: true) })
  let leaf = selection(of: hints(1, seed: 3)[0], relays: false, among: all + all)
  #expect(all.count { leaf.wants($0, relays: true) } == 2)
}

@Test func `a relay wants no leaf, and a leaf wants no leaf beside a relay`() {
  let (local, relay, leaf) = (hints(3)[0], hints(3)[1], hints(3)[2])
  #expect(!selection(of: local, among: [relay]).wants(leaf, relays: false))
  #expect(!selection(of: local, relays: false, among: [relay]).wants(leaf, relays: false))
  #expect(selection(of: local, relays: false, among: []).wants(leaf, relays: false))
}

@Test func `leaves are distributed evenly over the relays`() {
  let relays = hints(8)
  var counts = [Int](repeating: 0, count: relays.count)
  for leaf in hints(400, seed: 9) {
    let selection = selection(of: leaf, relays: false, among: relays)
    let wanted = relays.indices.filter { selection.wants(relays[$0], relays: true) }
    #expect(wanted.count == 2)
    for relay in wanted { counts[relay] += 1 }
  }
  #expect(counts.allSatisfy { (60...140).contains($0) }, "\(counts)")
}

@Test func `a leaf still dials preferred relays that are gone`() {
  let (all, leaf) = (hints(8), hints(1, seed: 9)[0])
  let best = all.filter { selection(of: leaf, relays: false, among: all).wants($0, relays: true) }
  let others = all.filter { !best.contains($0) }
  let without = selection(of: leaf, relays: false, among: others)
  #expect(best.allSatisfy { without.wants($0, relays: true) })
  #expect(others.count { without.wants($0, relays: true) } == 2)
}

/// Other implementations must choose the same links (docs/protocol.md).
@Test func `the rings match the protocol document`() {
  // The expected values come from a program that was written from docs/protocol.md alone.
  #expect(
    wishes(Array(1...8)) == [
      [1, 2, 3], [0, 4, 7], [0, 4, 5, 7], [0, 4, 6], [1, 2, 3, 6], [2, 6, 7], [3, 4, 5], [1, 2, 5],
    ])
  let leaf = selection(of: 100, relays: false, among: Array(1...8))
  #expect((1...8 as ClosedRange<UInt64>).filter { leaf.wants($0, relays: true) } == [6, 7])
}
