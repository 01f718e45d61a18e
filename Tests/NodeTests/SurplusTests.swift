import Frame
import Link
import Primitives
import TestSupport
import Testing

@testable import Node

/// A node in a broadcast domain of 40 nodes. The node discovers most of these nodes only after it has linked with the
/// first three.
private final class Hall {
  let bench = Bench(20)
  /// The slot of the link to each neighbour.
  private(set) var slots: [Int: Int] = [:]
  private(set) var known: [Int] = []

  /// Discovery finds the nodes `people`.
  func find(_ people: [Int]) {
    for person in people {
      known.append(person)
      bench.handle(
        .candidateFound(FoundCandidate(handle(person), .ethernet, domain: 3, hint: bench.id(person).high)))
    }
  }

  func handle(_ person: Int) -> UInt32 { UInt32(person + 1) }

  /// Brings up a link to the neighbour `person`. The neighbour advertises links to this node and to `others`.
  func link(_ person: Int, isOwn: Bool = true, others: [Int]) {
    let slot = bench.neighbour(person, dialled: isOwn ? handle(person) : nil)
    slots[person] = slot
    bench.receive(bench.topology(person, [20] + others), on: slot)
  }

  func wants(_ person: Int) -> Bool {
    var selection = LinkSelection(local: bench.id(20).high, relays: true)
    for other in known { selection.add(bench.id(other).high) }
    return selection.wants(bench.id(person).high, relays: true)
  }

  /// Lets time pass while all connected neighbours send pings, so that their links stay alive.
  func pass(seconds: Int, every: (Int) -> Void = { _ in }) {
    for second in 0..<seconds {
      if second % 5 == 0 {
        for (person, slot) in slots.sorted(by: { $0.key < $1.key }) where isUp(person) {
          bench.receive(frame(.ping, from: bench.id(person), [UInt8](repeating: 7, count: 8)), on: slot)
        }
        every(second)
      }
      bench.pass(.seconds(1))
    }
  }

  func isUp(_ person: Int) -> Bool { slots[person].map { bench.node.link($0).state == .up } ?? false }
}

/// Links with the first three nodes and discovers all others. After that, also links with one node that the rings want
/// now. Returns those of the first three nodes that the rings no longer want.
private func crowded(isOwn: Bool = true, others: [Int] = [30, 31, 32, 33]) -> (hall: Hall, surplus: [Int]) {
  let hall = Hall()
  hall.find([30, 31, 32])
  for person in 30...32 { hall.link(person, isOwn: isOwn, others: others.filter { $0 != person }) }
  hall.find(Array(0..<20) + Array(33..<40))
  if let wanted = hall.known.first(where: { hall.wants($0) && !(30...32).contains($0) }) {
    hall.link(wanted, others: others)
    // The first three neighbours also list each other and the new neighbour. So a path remains when a surplus link
    // closes.
    for person in 30...32 where !others.isEmpty {
      let list = [20, wanted] + others.filter { $0 != person }
      hall.bench.receive(hall.bench.topology(person, list, sequence: 2), on: hall.slots[person] ?? 0)
    }
  }
  return (hall, (30...32).filter { !hall.wants($0) })
}

@Test func `surplus links are closed together after ten seconds`() throws {
  let (hall, surplus) = crowded()
  #expect(surplus.count >= 2)
  hall.pass(seconds: 9)
  #expect((30...32).allSatisfy(hall.isUp))
  hall.pass(seconds: 2)
  #expect(surplus.allSatisfy { !hall.isUp($0) })
  let slot = try #require(hall.slots[surplus[0]])
  #expect(hall.bench.node.link(slot).state == .closed(.notNeeded))
  let goodbyes = hall.bench.sent(.goodbye, on: slot)
  #expect(goodbyes.map(\.payload) == [[10, 0, 0, 0]])
}

@Test func `eight surplus links are closed at once, and the rest two seconds later`() {
  var links = SurplusLinks()
  var now = Instant.zero + .seconds(100)
  for slot in 0..<11 { links.add(slot, domainChangedAt: .zero, now: now) }
  func closed() -> [Int] {
    var slots: [Int] = []
    while let slot = links.next(now: now) {
      links.remove(slot)
      slots.append(slot)
    }
    return slots
  }
  now = links.deadline
  #expect(now == .zero + .seconds(110) && closed() == Array(0..<8))
  now = links.deadline
  #expect(now == .zero + .seconds(112) && closed() == [8, 9, 10])
  #expect(links.deadline == .never)
}

@Test func `a wanted link is not closed`() {
  let (hall, surplus) = crowded()
  hall.pass(seconds: 60)
  #expect(hall.slots.keys.filter { !surplus.contains($0) }.allSatisfy(hall.isUp))
}

@Test func `a surplus link that the other end dialled is not closed`() {
  let (hall, surplus) = crowded(isOwn: false)
  hall.pass(seconds: 60)
  #expect(surplus.allSatisfy(hall.isUp))
}

@Test func `a surplus link is kept if the neighbour would become unreachable`() {
  let (hall, surplus) = crowded(others: [])
  hall.pass(seconds: 80)
  #expect(!surplus.isEmpty && surplus.allSatisfy(hall.isUp))
}

@Test func `in a changing hall a surplus link is closed after a minute`() {
  let (hall, surplus) = crowded()
  var isThere = false
  func change() {
    let other = FoundCandidate(900, .ethernet, domain: 3, hint: 5, relays: false)
    hall.bench.handle(isThere ? .candidateLost(900) : .candidateFound(other))
    isThere.toggle()
  }
  hall.pass(seconds: 55) { _ in change() }
  #expect(surplus.allSatisfy(hall.isUp))
  hall.pass(seconds: 15) { _ in change() }
  #expect(surplus.allSatisfy { !hall.isUp($0) })
}

@Test func `no link in a small hall is closed`() {
  let hall = Hall()
  hall.find([30, 31, 32, 33])
  for person in 30...33 { hall.link(person, others: (30...33).filter { $0 != person }) }
  hall.pass(seconds: 80)
  #expect((30...33).allSatisfy(hall.isUp))
}

@Test func `a surplus link that the other end closed is dialled again only if it is wanted`() {
  let hall = Hall()
  hall.find([30, 31])
  for person in [30, 31] { hall.link(person, isOwn: false, others: []) }
  _ = hall.bench.takeCommands()
  hall.find(Array(0..<20) + Array(32..<40))
  let dials = hall.bench.takeCommands()
  for person in [30, 31] {
    guard let slot = hall.slots[person] else { continue }
    hall.bench.receive(frame(.goodbye, from: hall.bench.id(person), [10, 0, 0, 0]), on: slot)
    hall.bench.handle(.linkClosed(slot))
  }
  hall.bench.pass(.seconds(4))
  let again = (dials + hall.bench.takeCommands()).filter { [.dial(31), .dial(32)].contains($0) }
  #expect(again == [30, 31].filter(hall.wants).map { .dial(hall.handle($0)) })
  #expect(hall.bench.told(.linkQuarantined) == 0)
}
