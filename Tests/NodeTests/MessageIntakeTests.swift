import Channel
import Frame
import Primitives
import TestSupport
import Testing

@testable import Node

/// How many of the received messages one pass of the event loop handles.
@Suite struct MessageIntakeTests {
  @Test func `a wake-up delivers a limited part of the messages of each peer`() throws {
    let bench = Bench()
    let loud = Partner(bench, 1)
    var quiet = Partner(bench, 2)
    try quiet.say("quiet")
    let epochs: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]
    let head = epochs + [0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
    // A segment with 2000 empty probes, which are messages that their receiver drops.
    let probes = (0..<2_000).flatMap { _ in [0, 0, 0, 0, Probe.kind] as [UInt8] }
    bench.drains = false
    bench.receive(
      frame(
        .segment, ttl: 9, priority: .interactive, to: bench.identity.id, from: bench.id(1), identifier: 1,
        head + probes), on: loud.slot)
    bench.receive(quiet.frames(), on: quiet.slot)
    bench.drains = true
    #expect(read(bench) == ["quiet"])
    func isWaiting() -> Bool {
      bench.node.associations.association(with: bench.id(1))?.channel.pendingMessage(.interactive) != nil
    }
    var wakeUps = 1
    while isWaiting() && wakeUps < 20 {
      #expect(bench.node.nextDeadline(now: bench.now) == bench.now + .microseconds(1))
      bench.now = bench.now + .microseconds(1)
      bench.handle(.timeout)
      wakeUps += 1
    }
    #expect(wakeUps == 4)
    bench.pass(.milliseconds(1))
    #expect(bench.node.nextDeadline(now: bench.now) > bench.now)
  }

  @Test func `the limit of a wake-up counts messages and bytes, and applies to each wake-up`() {
    var intake = MessageIntake()
    let now = Instant.zero + .seconds(1)
    for _ in 1..<MessageIntake.messagesMax { intake.took(0, now: now) }
    #expect(!intake.isSpent(now: now) && intake.deadline == .never)
    intake.took(0, now: now)
    #expect(intake.isSpent(now: now) && intake.deadline == now + .microseconds(1))
    let later = now + .microseconds(1)
    #expect(!intake.isSpent(now: later))
    intake.took(MessageIntake.bytesMax - 1, now: later)
    #expect(!intake.isSpent(now: later))
    intake.took(1, now: later)
    #expect(intake.isSpent(now: later))
  }
}
