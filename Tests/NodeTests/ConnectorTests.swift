import Link
import Primitives
import TestSupport
import Testing

@testable import Node

private let start = Instant.zero + .seconds(1000)

/// A connector under test. The test decides which nodes are linked, and takes the dials that the connector requests.
final class Dialler {
  var connector: Connector
  var now = Instant.zero + .seconds(1000)
  var linked: Set<UInt64> = []
  /// The standing of nodes by hint: whether a link exists, is parked or is called. The default is `.linked` for the
  /// nodes in `linked`, and `.none` for all others.
  var standings: [UInt64: Connector.Standing] = [:] {
    didSet { connector.standingChanged() }
  }
  /// The hints of nodes to which a route through other nodes exists.
  var reached: Set<UInt64> = []

  init(local: UInt64, relays: Bool = true) {
    connector = Connector(local: NodeID(high: local, low: 0), relays: relays)
  }

  func find(
    _ handle: UInt32, hint: UInt64, _ bearer: BearerKind = .ethernet, domain: UInt32 = 0, relays: Bool = true
  ) -> Bool {
    connector.found(FoundCandidate(handle, bearer, domain: domain, hint: hint, relays: relays), now: now)
  }

  /// Closes the links to the nodes with these hints.
  func close(_ hints: Set<UInt64>) {
    linked.subtract(hints)
    for hint in hints {
      connector.linkClosed(9, peer: NodeID(high: hint, low: 0), retryAfterSeconds: 0, now: now)
    }
  }

  func lose(_ handle: UInt32) { connector.lost(handle, now: now) }

  /// Requests all dials that are due now. Returns the handles of the candidates.
  func dials() -> [UInt32] {
    var handles: [UInt32] = []
    let linked = linked
    let standings = standings
    func standing(_ hint: UInt64) -> Connector.Standing { standings[hint] ?? (linked.contains(hint) ? .linked : .none) }
    _ = connector.choose(now: now) { hint, _ in standing(hint) }
    while let handle = connector.nextDial(
      now: now, isLinked: { hint, _ in standing(hint) == .linked }, isReached: reached.contains)
    {
      handles.append(handle)
    }
    return handles
  }

  /// Lets time pass until a candidate is dialled. Returns the handles and the time that passed, or no handle after
  /// `limit`.
  func wait(atMost limit: TimeSpan = .seconds(60)) -> (dials: [UInt32], after: TimeSpan) {
    let began = now
    while now - began < limit {
      now = max(now + TimeSpan(nanoseconds: 1), connector.deadline)
      if connector.deadline == .never { break }
      let handles = dials()
      if !handles.isEmpty { return (handles, now - began) }
    }
    return ([], limit)
  }
}

@Test func `the node with the lower id dials at once`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  #expect(dialler.dials() == [7])
}

@Test func `the node with the higher id dials only if the other does not dial in time`() {
  let dialler = Dialler(local: 3)
  _ = dialler.find(7, hint: 2)
  #expect(dialler.dials() == [])
  #expect(dialler.connector.deadline == start + .seconds(2))
  dialler.now = start + .seconds(2)
  #expect(dialler.dials() == [7])
}

@Test func `the node with the higher id does not dial a linked neighbour`() {
  let dialler = Dialler(local: 3)
  _ = dialler.find(7, hint: 2)
  dialler.linked = [2]
  dialler.now = start + .seconds(2)
  #expect(dialler.dials() == [])
  dialler.close([2])
  #expect(dialler.wait().after <= .seconds(2))
}

@Test func `a candidate of a linked node sets no timer`() {
  let dialler = Dialler(local: 3)
  _ = dialler.find(7, hint: 2)
  dialler.linked = [2]
  dialler.now = start + .seconds(2)
  #expect(dialler.dials() == [])
  #expect(dialler.connector.deadline == .never)
}

@Test func `a second candidate of a node is dialled if the first one fails or reaches another node`() {
  for leadsElsewhere in [false, true] {
    let dialler = Dialler(local: 1)
    _ = dialler.find(7, hint: 2)
    _ = dialler.find(8, hint: 2)
    #expect(dialler.dials() == [7])
    if leadsElsewhere {
      dialler.connector.linkOpened(3, 7, peer: NodeID(high: 5, low: 0), now: dialler.now)
      dialler.linked = [5]
    } else {
      dialler.connector.dialFailed(7, now: dialler.now)
      dialler.lose(7)
    }
    #expect(dialler.wait().dials == [8])
  }
}

@Test func `a lost candidate is replaced by another one of the same node`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.find(8, hint: 2)
  #expect(dialler.dials() == [7])
  dialler.lose(7)
  #expect(dialler.wait().dials == [8])
}

@Test func `a candidate without an id is dialled at once`() {
  let dialler = Dialler(local: .max)
  _ = dialler.find(7, hint: 0)
  #expect(dialler.dials() == [7])
}

@Test func `a node does not dial itself`() {
  let dialler = Dialler(local: 3)
  #expect(dialler.find(7, hint: 3))
  #expect(dialler.dials() == [] && dialler.connector.deadline == .never)
}

@Test func `a candidate is dialled once, however often it is found`() {
  let dialler = Dialler(local: 1)
  for _ in 0..<5 { _ = dialler.find(7, hint: 2) }
  #expect(dialler.dials() == [7])
  _ = dialler.find(7, hint: 2)
  #expect(dialler.dials() == [])
}

@Test func `a node found twice over one bearer is dialled once per bearer`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.find(8, hint: 2)
  _ = dialler.find(9, hint: 2, .bluetoothLE)
  #expect(dialler.dials() == [7, 9])
}

@Test func `a lost candidate is not dialled`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  dialler.lose(7)
  #expect(dialler.dials() == [])
}

@Test func `pauses between failed dials grow to three seconds, and later to half a minute`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.dials()
  var pauses: [UInt64] = []
  for _ in 0..<20 {
    dialler.connector.dialFailed(7, now: dialler.now)
    let waited = dialler.wait()
    #expect(waited.dials == [7])
    pauses.append(waited.after.milliseconds)
  }
  let bases: [UInt64] =
    [500, 1000, 2000] + [UInt64](repeating: 3000, count: 12) + [UInt64](repeating: 30_000, count: 5)
  for (pause, base) in zip(pauses, bases) { #expect((base...base * 5 / 4).contains(pause), "\(pauses)") }
}

@Test func `the spread of pauses differs by dialling node and candidate`() {
  let pauses = (0..<8).map { number in
    let dialler = Dialler(local: 0x1111_2222_3333_4444 &* UInt64(number + 1))
    _ = dialler.find(UInt32(number), hint: 0)
    _ = dialler.dials()
    dialler.connector.dialFailed(UInt32(number), now: dialler.now)
    return dialler.wait().after.nanoseconds
  }
  #expect(Set(pauses).count == 8)
}

@Test func `a proven link clears earlier failures`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.dials()
  for _ in 0..<10 {
    dialler.connector.dialFailed(7, now: dialler.now)
    _ = dialler.wait()
  }
  dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0), now: dialler.now)
  dialler.connector.linkUp(3)
  dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 0, now: dialler.now)
  #expect(dialler.wait().after < .milliseconds(700))
}

@Test func `a link that never came up counts as a failure`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  var pauses: [TimeSpan] = []
  _ = dialler.dials()
  for _ in 0..<4 {
    dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0), now: dialler.now)
    dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 0, now: dialler.now)
    pauses.append(dialler.wait().after)
  }
  #expect(pauses[3] > pauses[0] * 3)
}

@Test func `a neighbour is not dialled for the time that it requested`() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.find(8, hint: 2)
  _ = dialler.dials()
  dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0), now: dialler.now)
  dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 40, now: dialler.now)
  #expect(dialler.wait().after >= .seconds(40))
}

@Test func `a dial shows which node a candidate belongs to`() {
  // The candidate announced no node id. The dial shows that its address belongs to node 2. While node 2 is linked over
  // another address, this address is not dialled.
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 0)
  _ = dialler.dials()
  dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0), now: dialler.now)
  dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 0, now: dialler.now)
  dialler.linked = [2]
  #expect(dialler.wait(atMost: .seconds(10)).dials == [])
}

@Test func `eight dials run at once, and the next one waits for the end of one`() {
  let dialler = Dialler(local: 1)
  for number in 0..<10 { _ = dialler.find(UInt32(number), hint: UInt64(100 + number)) }
  #expect(dialler.dials() == [0, 1, 2, 3, 4, 5, 6, 7])
  dialler.connector.linkOpened(0, 3, peer: NodeID(high: 103, low: 0), now: dialler.now)
  #expect(dialler.dials() == [8])
}

@Test func `no deadline is due while all dials are in use`() {
  let dialler = Dialler(local: 1)
  for number in 0..<10 { _ = dialler.find(UInt32(number), hint: UInt64(100 + number)) }
  _ = dialler.dials()
  #expect(dialler.connector.deadline > dialler.now)
}

@Test func `the number of candidates is limited`() {
  let dialler = Dialler(local: 1)
  for number in 0..<Limits.candidatesMax { #expect(dialler.find(UInt32(number), hint: UInt64(100 + number))) }
  #expect(!dialler.find(9999, hint: 5))
  #expect(dialler.find(3, hint: 103))
  dialler.lose(3)
  #expect(dialler.find(9999, hint: 5))
}

// MARK: Broadcast domains

/// A dialler that has found the candidates 1 … `count` in one broadcast domain. Each number is both handle and hint.
/// The dialler found the last candidate a quarter of a second ago, or half a second ago if there are more than five
/// relays.
private func hall(of count: UInt64, seenBy local: UInt64, relays: Bool = true, othersRelay: Bool = true) -> Dialler {
  let dialler = Dialler(local: local, relays: relays)
  for hint in 1...count where hint != local {
    #expect(dialler.find(UInt32(hint), hint: hint, domain: 3, relays: othersRelay))
  }
  dialler.now = start + .milliseconds(count > 5 && othersRelay ? 500 : 250)
  return dialler
}

@Test func `in a hall of five nodes each node dials every other one`() {
  let highest = hall(of: 5, seenBy: 5)
  #expect(highest.dials() == [])
  highest.now = start + .milliseconds(2_250)
  #expect(highest.dials() == [1, 2, 3, 4])
  #expect(hall(of: 5, seenBy: 1).dials() == [2, 3, 4, 5])
}

@Test func `in a small hall a dial waits until no node has appeared for a quarter of a second`() {
  let dialler = hall(of: 4, seenBy: 1)
  #expect(dialler.find(5, hint: 5, domain: 3) && dialler.dials() == [])
  #expect(dialler.wait().after == .milliseconds(250))
}

@Test func `in a larger hall a node dials four others`() {
  let dialler = hall(of: 40, seenBy: 1)
  #expect(dialler.dials().count == 4)
  #expect(dialler.wait(atMost: .seconds(20)).dials == [])
}

@Test func `in a large hall a dial waits until no node has appeared for half a second`() {
  let dialler = hall(of: 40, seenBy: 1)
  dialler.now = start + .milliseconds(400)
  #expect(dialler.dials() == [])
  #expect(dialler.find(41, hint: 41, domain: 3) && dialler.dials() == [])
  #expect(dialler.wait().after == .milliseconds(500))
}

@Test func `in a large hall where nodes appear all the time a dial waits three seconds`() {
  let dialler = hall(of: 40, seenBy: 1)
  dialler.now = start
  var hint: UInt64 = 100
  while dialler.dials().isEmpty, dialler.now < start + .seconds(10) {
    hint += 1
    // The newcomers are leaves. So no newcomer takes the place of a relay that this node wants to link with.
    #expect(dialler.find(UInt32(hint), hint: hint, domain: 3, relays: false))
    dialler.now = dialler.now + .milliseconds(100)
  }
  #expect(dialler.now == start + .seconds(3))
}

@Test func `nodes outside of a broadcast domain are dialled in addition`() {
  let dialler = hall(of: 40, seenBy: 1)
  _ = dialler.find(99, hint: 99)
  _ = dialler.find(98, hint: 0, domain: 3)
  #expect(Set(dialler.dials()).isSuperset(of: [98, 99]))
}

@Test func `links in two halls are selected separately`() {
  let dialler = hall(of: 5, seenBy: 1)
  for hint in 50...53 as ClosedRange<UInt64> { _ = dialler.find(UInt32(hint), hint: hint, domain: 4) }
  dialler.now = dialler.now + .milliseconds(250)
  #expect(dialler.dials() == [2, 3, 4, 5, 50, 51, 52, 53])
}

@Test func `a node with two addresses counts once in a hall`() {
  let dialler = hall(of: 5, seenBy: 1)
  for hint in 2...5 as ClosedRange<UInt64> { _ = dialler.find(UInt32(100 + hint), hint: hint, domain: 3) }
  dialler.now = dialler.now + .milliseconds(250)
  #expect(dialler.dials() == [2, 3, 4, 5])
}

@Test func `a relay in a hall dials no leaf`() {
  let dialler = hall(of: 3, seenBy: 1, othersRelay: false)
  #expect(dialler.dials() == [] && dialler.connector.deadline == .never)
}

@Test func `a leaf in a hall dials two relays, whichever id is higher`() {
  #expect(hall(of: 12, seenBy: 12, relays: false).dials().count == 2)
}

@Test func `a leaf among leaves dials all of them`() {
  #expect(hall(of: 8, seenBy: 1, relays: false, othersRelay: false).dials().count == 7)
}

@Test func `a node that could not be dialled twice is replaced until it is reachable again`() {
  let dialler = hall(of: 40, seenBy: 1)
  let first = dialler.dials()
  dialler.linked = Set(first.dropFirst().map(UInt64.init))
  for handle in first.dropFirst() {
    dialler.connector.linkOpened(Int(handle), handle, peer: NodeID(high: UInt64(handle), low: 0), now: dialler.now)
  }
  let gone = first[0]
  dialler.connector.dialFailed(gone, now: dialler.now)
  #expect(dialler.wait().dials == [gone])
  dialler.connector.dialFailed(gone, now: dialler.now)
  let instead = dialler.dials()
  #expect(instead.count == 1 && instead != [gone])
  // The connector still dials the unreachable node again.
  #expect(dialler.wait().dials == [gone])
  dialler.connector.linkOpened(50, gone, peer: NodeID(high: UInt64(gone), low: 0), now: dialler.now)
  dialler.linked.insert(UInt64(gone))
  dialler.connector.dialFailed(instead[0], now: dialler.now)
  #expect(dialler.wait(atMost: .seconds(5)).dials == [])
}

@Test func `a node that asks not to be dialled is replaced at once`() {
  let dialler = hall(of: 40, seenBy: 1)
  let first = dialler.dials()
  dialler.connector.linkOpened(3, first[0], peer: NodeID(high: UInt64(first[0]), low: 0), now: dialler.now)
  _ = dialler.dials()
  dialler.connector.linkClosed(
    3, peer: NodeID(high: UInt64(first[0]), low: 0), retryAfterSeconds: 30, now: dialler.now)
  #expect(dialler.dials().count == 1)
}

@Test func `a link that was closed as unnecessary does not count as a failure`() {
  let dialler = hall(of: 40, seenBy: 1)
  let first = dialler.dials()[0]
  for _ in 0..<3 {
    dialler.connector.linkOpened(3, first, peer: NodeID(high: UInt64(first), low: 0), now: dialler.now)
    dialler.connector.linkClosed(
      3, peer: NodeID(high: UInt64(first), low: 0), retryAfterSeconds: 0, isFailure: false, now: dialler.now)
    #expect(dialler.wait(atMost: .seconds(1)).dials == [first])
  }
}

@Test func `a neighbour that connected first is not dialled while its link is up`() {
  let dialler = Dialler(local: 100)
  #expect(dialler.find(7, hint: 200))
  #expect(dialler.dials() == [7])
  dialler.linked = [200]
  dialler.connector.dialOvertaken(7)
  #expect(dialler.dials() == [] && dialler.connector.deadline == .never)
  dialler.close([200])
  #expect(dialler.wait().dials == [7])
  #expect(dialler.connector.candidates[0].failures == 0)
}
