import Primitives
import Testing

@testable import Node

// Anybody on a network can announce nodes that do not exist.

/// A network in which no announced address answers. Each dial fails after 5 s.
private final class Network {
  let dialler: Dialler
  private var dials: [(handle: UInt32, end: Instant)] = []
  private var inventedCount: UInt32 = 0
  private(set) var dialled: [UInt32] = []

  init(relays: Bool = true) { dialler = Dialler(local: 1 << 63, relays: relays) }

  /// Announces `count` nodes that do not exist. The ids of the invented nodes are distributed like real ids.
  func invent(_ count: UInt32, named: Bool = true) {
    for _ in 0..<count {
      inventedCount += 1
      var hints = SeededRandom(seed: UInt64(inventedCount))
      #expect(dialler.find(inventedCount, hint: named ? hints.next() | 1 : 0, domain: 3))
    }
  }

  /// Lets time pass. Returns the time until `handle` was dialled, or nil if `handle` was not dialled within `span`.
  @discardableResult
  func pass(_ span: TimeSpan, until handle: UInt32 = 0, inventingEverySecond isFlood: Bool = false) -> TimeSpan? {
    let began = dialler.now
    var second = began
    while dialler.now - began < span {
      if isFlood && dialler.now >= second {
        invent(1)
        second = second + .seconds(1)
      }
      for dial in dials where dial.end <= dialler.now { dialler.connector.dialFailed(dial.handle, now: dialler.now) }
      dials.removeAll { $0.end <= dialler.now }
      for new in dialler.dials() {
        if new == handle { return dialler.now - began }
        dialled.append(new)
        dials.append((new, dialler.now + .seconds(5)))
      }
      dialler.now = dialler.now + .milliseconds(50)
    }
    return nil
  }
}

private let real: UInt32 = 70_000

@Test(arguments: [7, 8, 9] as [UInt64]) func `a real node among invented ones is dialled within ten seconds`(
  _ hint: UInt64
) throws {
  let network = Network()
  network.invent(255)
  network.pass(.seconds(20))
  #expect(network.dialler.find(real, hint: hint, domain: 3))
  let time = try #require(network.pass(.seconds(75), until: real, inventingEverySecond: true), "it is not dialled")
  #expect(time <= .seconds(10), "\(time.milliseconds) ms")
}

@Test func `a real node that was found before the flood is dialled within half a minute`() throws {
  let network = Network()
  #expect(network.dialler.find(real, hint: 7, domain: 3))
  network.invent(255)
  let time = try #require(network.pass(.seconds(75), until: real), "it is not dialled")
  #expect(time <= .seconds(30), "\(time.milliseconds) ms")
}

@Test func `a node among announcements without ids is dialled within ten seconds`() throws {
  let network = Network()
  network.invent(255, named: false)
  network.pass(.seconds(20))
  #expect(network.dialler.find(real, hint: 7, domain: 3))
  let time = try #require(network.pass(.seconds(75), until: real), "it is not dialled")
  #expect(time <= .seconds(10), "\(time.milliseconds) ms")
}

@Test func `a leaf finds a relay among invented ones`() throws {
  let network = Network(relays: false)
  network.invent(255)
  network.pass(.seconds(30))
  #expect(network.dialler.find(real, hint: 7, domain: 3))
  let time = try #require(network.pass(.seconds(75), until: real), "it is not dialled")
  #expect(time <= .seconds(10), "\(time.milliseconds) ms")
}

@Test func `two dials are reserved for other domains`() {
  let network = Network()
  network.invent(255)
  network.pass(.seconds(30))
  #expect(network.dialler.find(real, hint: 0, domain: 0), "a configured peer")
  #expect(network.pass(.seconds(1), until: real) != nil)
}

@Test func `a proven node is kept in a domain with many invented ones`() {
  let network = Network()
  #expect(network.dialler.find(real, hint: 7, domain: 3))
  #expect(network.dialler.dials() == [], "the other one has the lower id")
  #expect(network.dialler.wait().dials == [real])
  network.dialler.connector.linkOpened(0, real, peer: NodeID(high: 7, low: 0), now: network.dialler.now)
  network.dialler.linked = [7]
  network.dialler.connector.linkUp(0)
  network.invent(255)
  network.pass(.seconds(30))
  #expect(network.dialler.connector.isDoubtful(3))
  // The link to the proven node closes. The connector dials that node again before all invented nodes.
  network.dialler.linked = []
  network.dialler.connector.linkClosed(0, peer: NodeID(high: 7, low: 0), retryAfterSeconds: 0, now: network.dialler.now)
  #expect((network.pass(.seconds(75), until: real) ?? .seconds(75)) <= .seconds(3))
}

@Test func `a domain whose nodes answer is not doubtful`() {
  let dialler = Dialler(local: 1 << 63)
  for number in 1...40 as ClosedRange<UInt32> { #expect(dialler.find(number, hint: UInt64(number), domain: 3)) }
  for number in 1...3 as ClosedRange<UInt32> {
    for _ in 0..<2 { dialler.connector.dialFailed(number, now: dialler.now) }
  }
  #expect(!dialler.connector.isDoubtful(3))
  for _ in 0..<2 { dialler.connector.dialFailed(4, now: dialler.now) }
  #expect(dialler.connector.isDoubtful(3))
  // An announced node answers.
  dialler.connector.linkOpened(0, 4, peer: NodeID(high: 4, low: 0), now: dialler.now)
  #expect(!dialler.connector.isDoubtful(3))
}

@Test func `a node that has its links dials one invented node at a time`() {
  let dialler = Dialler(local: 1 << 63)
  for number in 1...40 as ClosedRange<UInt32> { #expect(dialler.find(number, hint: UInt64(number), domain: 3)) }
  for number in 1...4 as ClosedRange<UInt32> {
    dialler.connector.linkOpened(Int(number), number, peer: NodeID(high: UInt64(number), low: 0), now: dialler.now)
    dialler.connector.linkUp(Int(number))
    dialler.linked.insert(UInt64(number))
  }
  for number in 5...8 as ClosedRange<UInt32> {
    for _ in 0..<2 { dialler.connector.dialFailed(number, now: dialler.now) }
  }
  dialler.now = dialler.now + .seconds(20)
  #expect(dialler.dials() == [40])
  #expect(dialler.dials() == [])
  dialler.connector.dialFailed(40, now: dialler.now)
  #expect(dialler.dials() == [39])
}
