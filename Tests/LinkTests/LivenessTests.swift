import Primitives
import Testing

@testable import Link

private let start = Instant.zero + .seconds(100)

/// When a neighbour that is silent from `start` on is pinged and when it is declared dead, in milliseconds after
/// `start`.
private func silence(_ liveness: Liveness) -> (pings: [UInt64], death: UInt64) {
  var liveness = liveness
  var pings: [UInt64] = []
  while pings.count < 10 {
    let now = liveness.deadline
    switch liveness.due(now: now) {
    case .nothing: return (pings, .max)
    case .ping:
      liveness.pingSent(now: now)
      pings.append((now - start).milliseconds)
    case .death: return (pings, (now - start).milliseconds)
    }
  }
  return (pings, .max)
}

/// The liveness state of a neighbour that has answered four pings, each after `milliseconds`.
private func answering(_ bearer: BearerKind, within milliseconds: UInt64) -> Liveness {
  var liveness = Liveness(bearer, now: start)
  for _ in 0..<4 { liveness.answered(after: .milliseconds(milliseconds)) }
  return liveness
}

@Test(arguments: [
  (BearerKind.ethernet, 2200 as UInt64, 2900 as UInt64), (.loopback, 2200, 2900), (.wifi, 3000, 5000),
  (.wifiDirect, 3000, 5000), (.bluetoothLE, 3000, 5000),
]) func `a silent neighbour is pinged once and then counts as dead`(bearer: BearerKind, ping: UInt64, death: UInt64) {
  let (pings, dead) = silence(answering(bearer, within: 5))
  #expect(pings == [ping] && dead == death)
  #expect(Liveness.unnoticedMax(over: bearer) == .milliseconds(death))
}

@Test func `a neighbour that never answered has seven seconds`() {
  #expect(silence(Liveness(.ethernet, now: start)) == ([2200], 9200))
}

@Test func `a slow neighbour has three times its slowest round trip`() {
  var liveness = Liveness(.ethernet, now: start)
  for milliseconds in [10, 900, 10, 10] as [UInt64] { liveness.answered(after: .milliseconds(milliseconds)) }
  #expect(silence(liveness).death == 2200 + 2700)
  // Four fast answers replace the slow round trip, because only the last four round trips are used.
  liveness = answering(.ethernet, within: 900)
  for _ in 0..<4 { liveness.answered(after: .milliseconds(10)) }
  #expect(silence(liveness).death == 2900)
}

@Test func `a neighbour has at most seven seconds to answer`() {
  #expect(silence(answering(.wifi, within: 60_000)).death == 10_000)
}

@Test func `any received bytes count as an answer`() {
  var liveness = answering(.ethernet, within: 5)
  liveness.pingSent(now: start)
  liveness.noteReceived(now: start + .milliseconds(600))
  let due = [2700, 2800].map { liveness.due(now: start + .milliseconds($0)) }
  #expect(due == [.nothing, .ping])
}

@Test func `a neighbour that is never silent is pinged every fifteen seconds`() {
  var liveness = answering(.ethernet, within: 5)
  var pings: [UInt64] = []
  for second in 1...40 as ClosedRange<UInt64> {
    liveness.noteReceived(now: start + .seconds(second))
    if liveness.due(now: start + .seconds(second)) == .ping {
      liveness.pingSent(now: start + .seconds(second))
      pings.append(second)
    }
  }
  #expect(pings == [15, 30])
}

@Test func `a node that was late itself pings once more before it declares the neighbour dead`() {
  var liveness = answering(.ethernet, within: 5)
  liveness.pingSent(now: start)
  let late = start + .milliseconds(700 + 251)
  let first = liveness.due(now: late)
  liveness.pingSent(now: late)
  let then = [699, 700].map { liveness.due(now: late + .milliseconds($0)) }
  #expect(first == .ping && then == [.nothing, .death])
}

@Test func `a node that is always late declares the neighbour dead after three pings`() {
  var liveness = answering(.ethernet, within: 5)
  liveness.pingSent(now: start)
  var now = start
  var pings = 0
  while pings < 10 {
    now = now + .seconds(5)
    guard liveness.due(now: now) == .ping else { break }
    liveness.pingSent(now: now)
    pings += 1
  }
  #expect(pings == 3)
}

@Test func `a ping that is due soon may be sent early`() {
  var liveness = answering(.ethernet, within: 5)
  let span = TimeSpan.milliseconds(300)
  #expect(!liveness.isPingDue(within: span, now: start + .milliseconds(1899)))
  #expect(liveness.isPingDue(within: span, now: start + .milliseconds(1900)))
  liveness.pingSent(now: start + .milliseconds(1900))
  #expect(!liveness.isPingDue(within: span, now: start + .seconds(20)))
}
