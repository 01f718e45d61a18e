import Link
import Primitives
import TestSupport
import Testing

@testable import Node

private let start = Instant.zero + .seconds(1000)

/// What a connector dials, with the links that a test claims.
private final class Dialler {
  var connector: Connector
  var now = start
  var linked: Set<UInt64> = []

  init(local: UInt64) { connector = Connector(local: NodeID(high: local, low: 0)) }

  func find(_ handle: UInt32, hint: UInt64, _ bearer: BearerKind = .ethernet) -> Bool {
    connector.found(handle, bearer, hint: hint, now: now)
  }

  /// Everything that is dialled now.
  func dials() -> [UInt32] {
    var handles: [UInt32] = []
    let linked = linked
    while let handle = connector.nextDial(now: now, isLinked: { hint, _ in linked.contains(hint) }) {
      handles.append(handle)
    }
    return handles
  }

  /// Let time pass until something is dialled; how long that took.
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

@Test func theLowerNodeDialsAtOnce() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  #expect(dialler.dials() == [7])
}

@Test func theHigherNodeDialsOnlyWhenTheLowerDidNotInTime() {
  let dialler = Dialler(local: 3)
  _ = dialler.find(7, hint: 2)
  #expect(dialler.dials() == [])
  #expect(dialler.connector.deadline == start + .seconds(2))
  dialler.now = start + .seconds(2)
  #expect(dialler.dials() == [7])
}

@Test func theHigherNodeDoesNotDialANeighbourThatIsLinked() {
  let dialler = Dialler(local: 3)
  _ = dialler.find(7, hint: 2)
  dialler.linked = [2]
  dialler.now = start + .seconds(2)
  #expect(dialler.dials() == [])
  dialler.linked = []
  #expect(dialler.wait().after <= .seconds(2))
}

@Test func aCandidateThatNamesNobodyIsDialledAtOnce() {
  let dialler = Dialler(local: .max)
  _ = dialler.find(7, hint: 0)
  #expect(dialler.dials() == [7])
}

@Test func aNodeDoesNotDialItself() {
  let dialler = Dialler(local: 3)
  #expect(dialler.find(7, hint: 3))
  #expect(dialler.dials() == [] && dialler.connector.deadline == .never)
}

@Test func aCandidateIsDialledOnceHoweverOftenItIsFound() {
  let dialler = Dialler(local: 1)
  for _ in 0..<5 { _ = dialler.find(7, hint: 2) }
  #expect(dialler.dials() == [7])
  _ = dialler.find(7, hint: 2)
  #expect(dialler.dials() == [])
}

@Test func oneNodeSeenTwiceOverOneBearerIsDialledOnce() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.find(8, hint: 2)
  _ = dialler.find(9, hint: 2, .bluetoothLE)
  #expect(dialler.dials() == [7, 9])
}

@Test func aCandidateThatIsLostIsNotDialled() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  dialler.connector.lost(7)
  #expect(dialler.dials() == [])
}

@Test func pausesBetweenFailedDialsGrowToThreeSecondsAndThenToHalfAMinute() {
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

@Test func theSpreadOfPausesDependsOnWhoDialsWhat() {
  let pauses = (0..<8).map { number in
    let dialler = Dialler(local: 0x1111_2222_3333_4444 &* UInt64(number + 1))
    _ = dialler.find(UInt32(number), hint: 0)
    _ = dialler.dials()
    dialler.connector.dialFailed(UInt32(number), now: dialler.now)
    return dialler.wait().after.nanoseconds
  }
  #expect(Set(pauses).count == 8)
}

@Test func aLinkThatProvedGoodForgivesFormerFailures() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.dials()
  for _ in 0..<10 {
    dialler.connector.dialFailed(7, now: dialler.now)
    _ = dialler.wait()
  }
  dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0))
  dialler.connector.linkUp(3)
  dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 0, now: dialler.now)
  #expect(dialler.wait().after < .milliseconds(700))
}

@Test func aLinkThatNeverCameUpCountsAsAFailure() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  var pauses: [TimeSpan] = []
  _ = dialler.dials()
  for _ in 0..<4 {
    dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0))
    dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 0, now: dialler.now)
    pauses.append(dialler.wait().after)
  }
  #expect(pauses[3] > pauses[0] * 3)
}

@Test func aNeighbourIsLeftAloneForAsLongAsItAsked() {
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 2)
  _ = dialler.find(8, hint: 2)
  _ = dialler.dials()
  dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0))
  dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 40, now: dialler.now)
  #expect(dialler.wait().after >= .seconds(40))
}

@Test func aDialTellsWhoIsThere() {
  // The id was not announced; once a link has shown it, the other address of the same node is not dialled.
  let dialler = Dialler(local: 1)
  _ = dialler.find(7, hint: 0)
  _ = dialler.dials()
  dialler.connector.linkOpened(3, 7, peer: NodeID(high: 2, low: 0))
  dialler.connector.linkClosed(3, peer: NodeID(high: 2, low: 0), retryAfterSeconds: 0, now: dialler.now)
  dialler.linked = [2]
  #expect(dialler.wait(atMost: .seconds(10)).dials == [])
}

@Test func eightDialsAreUnderWayAtOnceAndTheNextWaitsForAnEnd() {
  let dialler = Dialler(local: 1)
  for number in 0..<10 { _ = dialler.find(UInt32(number), hint: UInt64(100 + number)) }
  #expect(dialler.dials() == [0, 1, 2, 3, 4, 5, 6, 7])
  dialler.connector.linkOpened(0, 3, peer: NodeID(high: 103, low: 0))
  #expect(dialler.dials() == [8])
}

@Test func whileAllDialsAreTakenNoDeadlineIsDue() {
  let dialler = Dialler(local: 1)
  for number in 0..<10 { _ = dialler.find(UInt32(number), hint: UInt64(100 + number)) }
  _ = dialler.dials()
  #expect(dialler.connector.deadline > dialler.now)
}

@Test func theTableOfCandidatesIsBounded() {
  let dialler = Dialler(local: 1)
  for number in 0..<Limits.candidatesMax { #expect(dialler.find(UInt32(number), hint: UInt64(100 + number))) }
  #expect(!dialler.find(9999, hint: 5))
  #expect(dialler.find(3, hint: 103))
  dialler.connector.lost(3)
  #expect(dialler.find(9999, hint: 5))
}
