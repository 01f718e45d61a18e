import Frame
import Journal
import Node
import Primitives
import TestSupport
import Testing

@testable import Node

private let now = Instant.zero + .seconds(1000)
private let fresh = TimeSpan.milliseconds(0)

@Test func `a later epoch of this node's key is exceeded at once`() {
  var contest = EpochRecovery()
  #expect(contest.deadline == .never)
  let isRival = contest.receive(9 << 32 | 3, age: fresh, now: now)
  #expect(!isRival && contest.deadline <= now)
  let next = contest.next(current: 5 << 32 | 77, now: now)
  #expect(next == 10 << 32 | 77)
  #expect(contest.deadline == .never)
}

@Test func `the latest one of several later epochs is exceeded`() {
  var contest = EpochRecovery()
  _ = contest.receive(9 << 32, age: fresh, now: now)
  _ = contest.receive(12 << 32, age: fresh, now: now)
  _ = contest.receive(7 << 32, age: fresh, now: now)
  let next = contest.next(current: 1, now: now)
  #expect(next == 13 << 32 | 1)
}

@Test func `a node that keeps answering with later epochs is a duplicate, answered after doubling pauses`() {
  var contest = EpochRecovery()
  _ = contest.receive(1 << 32, age: fresh, now: now)
  _ = contest.next(current: 1, now: now)
  var at = now
  for (round, pause) in ([60, 120, 240, 480, 960, 1920, 3600, 3600] as [UInt64]).enumerated() {
    let rival = UInt64(3 + 2 * round) << 32
    let isRival = contest.receive(rival, age: fresh, now: at)
    #expect(isRival && contest.deadline == at + .seconds(pause))
    let early = contest.next(current: 1, now: at + .milliseconds(pause * 1000 - 1))
    at = at + .seconds(pause)
    let next = contest.next(current: 1, now: at)
    #expect(early == nil && next == rival + 1 << 32 | 1)
  }
}

@Test func `an advertisement older than the last answer is exceeded at once, too`() {
  var contest = EpochRecovery()
  _ = contest.receive(46 << 32, age: .seconds(9), now: now)
  _ = contest.next(current: 1, now: now)
  let later = now + .seconds(1)
  let isRival = contest.receive(86 << 32, age: .milliseconds(501), now: later)
  #expect(!isRival && contest.deadline <= later)
  let next = contest.next(current: 1, now: later)
  #expect(next == 87 << 32 | 1)
}

@Test func `an advertisement newer than the last answer is a duplicate's, even beside an old one`() {
  var contest = EpochRecovery()
  _ = contest.receive(1 << 32, age: fresh, now: now)
  _ = contest.next(current: 1, now: now)
  let later = now + .seconds(1)
  _ = contest.receive(3 << 32, age: .seconds(9), now: later)
  let isRival = contest.receive(4 << 32, age: .milliseconds(500), now: later)
  #expect(isRival && contest.deadline == now + .seconds(60))
}

@Test func `four advertisements older than the last answer are exceeded at once`() {
  var contest = EpochRecovery()
  var answers = 0
  for round in 0..<10 as Range<UInt64> {
    let at = now + .seconds(round)
    _ = contest.receive((3 + 2 * round) << 32, age: .seconds(600), now: at)
    if contest.next(current: 1, now: at) != nil { answers += 1 }
  }
  #expect(answers == 1 + 4)
}

@Test func `after ten minutes one more old advertisement is exceeded at once`() {
  var contest = EpochRecovery()
  var at = now
  // Eight answers to later epochs raise the pause between answers to one hour.
  for round in 0..<8 as Range<UInt64> {
    _ = contest.receive((3 + 2 * round) << 32, age: fresh, now: at)
    at = max(at, contest.deadline)
    _ = contest.next(current: 1, now: at)
  }
  func isAnswered(_ contest: inout EpochRecovery, after milliseconds: UInt64) -> Bool {
    _ = contest.receive(99 << 32, age: .seconds(7200), now: at + .milliseconds(milliseconds))
    return contest.next(current: 1, now: at + .milliseconds(milliseconds)) != nil
  }
  for _ in 0..<4 { #expect(isAnswered(&contest, after: 0)) }
  for (after, expected) in [(599_999, false), (600_000, true)] as [(UInt64, Bool)] {
    var later = contest
    #expect(isAnswered(&later, after: after) == expected)
    #expect(!isAnswered(&later, after: after))
  }
}

/// A neighbour that sends false ages causes more answers over time. A neighbour with false ages cannot hide a second
/// node with this key.
@Test func `after four old advertisements each further one is attributed to a duplicate`() {
  var contest = EpochRecovery()
  _ = contest.receive(1 << 32, age: fresh, now: now)
  _ = contest.next(current: 1, now: now)
  let areRivals = (1...7 as ClosedRange<UInt64>).map { round in
    let at = now + .seconds(700 * round)
    let isRival = contest.receive((3 + 2 * round) << 32, age: .seconds(7200), now: at)
    _ = contest.next(current: 1, now: at)
    return isRival
  }
  #expect(areRivals == [false, false, false, false, true, true, true])
}

@Test func `the maximum epoch cannot be exceeded and is ignored`() {
  var contest = EpochRecovery()
  _ = contest.receive(.max, age: fresh, now: now)
  let next = contest.next(current: 1, now: now)
  #expect(next == nil && contest.deadline == .never)
}

/// The bench has the boot counter 2 in the upper half of its epoch, and the random number 7 in the lower half.
@Test func `a node that lost its epoch advertises a later one at once`() throws {
  let bench = Bench(epoch: 2 << 32 | 7)
  let slot = bench.neighbour(1)
  _ = bench.sent(on: slot)
  bench.receive(bench.profile(20, epoch: 40 << 32 | 5, sequence: 9), on: slot)
  let own = bench.sent(.advertisement, on: slot).filter { $0.header.source == bench.identity.id }
  let epochs = try own.map { try AdvertisementView($0.payload.span.bytes).epoch }
  #expect(Set(epochs) == [41 << 32 | 7] && Set(own.map { $0.payload[0] }) == [1, 2])
  #expect(bench.takeRaisedEpoch() == 41 << 32 | 7)
  #expect(bench.told(.epochRaised) == 1 && bench.told(.identityDuplicated) == 0)
}

@Test func `a hello on a new link contains the later epoch`() throws {
  let bench = Bench(epoch: 2 << 32 | 7)
  bench.receive(bench.profile(20, epoch: 40 << 32, sequence: 9), on: bench.neighbour(1))
  let hello = try #require(bench.sent(.hello, on: bench.open(2)).first)
  #expect(try Hello(bytes: hello.payload).epoch == 41 << 32 | 7)
}

@Test func `another holder of the key causes an alarm`() {
  let bench = Bench(epoch: 2 << 32 | 7)
  let slot = bench.neighbour(1)
  bench.receive(bench.profile(20, epoch: 40 << 32, sequence: 1), on: slot)
  bench.receive(bench.profile(20, epoch: 50 << 32, sequence: 1), on: slot)
  #expect(bench.told(.identityDuplicated) == 1 && bench.told(.epochRaised) == 1)
  bench.pass(.seconds(61))
  #expect(bench.told(.epochRaised) == 2)
}

@Test func `a forged later epoch changes nothing`() {
  let bench = Bench(epoch: 2 << 32 | 7)
  let slot = bench.neighbour(1)
  let forged = bench.profile(20, epoch: 40 << 32).with { $0[$0.count - 1] ^= 1 }
  bench.receive(forged, on: slot)
  #expect(bench.refusals(.wrongSignature) == 1 && bench.told(.epochRaised) == 0)
}
