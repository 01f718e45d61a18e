import Primitives
import Testing

@Suite struct RadioRecoveryTests {
  private var recovery = RadioRecovery()
  private var now = Instant.zero + .seconds(1000)

  init() { recovery.handle(.present(true), now) }

  /// Waits for the next step. Returns as text the step and the seconds until that step.
  private mutating func next() -> String {
    let began = now
    if recovery.deadline == .never { return "never" }
    now = max(now, recovery.deadline)
    guard let step = recovery.nextStep(now) else { return "nothing" }
    return "\((now - began).milliseconds / 1000) s \(step)"
  }

  @Test mutating func `a failing radio gets stronger recovery steps, and is tried again after the last one`() {
    var story = [next()]
    for _ in 1...9 {
      recovery.handle(.failed, now)
      story.append(next() + (recovery.isHopeless ? ", hopeless" : ""))
    }
    #expect(
      story == [
        "0 s arm", "1 s arm", "2 s arm", "4 s powerCycle", "8 s powerCycle", "16 s reset", "32 s reset",
        "60 s powerCycle, hopeless", "60 s reset, hopeless", "60 s powerCycle, hopeless",
      ])
  }

  @Test mutating func `endless failures keep the longest pause`() {
    for _ in 1...1000 {
      _ = next()
      recovery.handle(.failed, now)
    }
    let last = [
      next(),
      {
        recovery.handle(.failed, now); return next()
      }(),
    ]
    #expect(last.sorted() == ["60 s powerCycle", "60 s reset"])
  }

  @Test mutating func `a radio that has worked for a long time starts with the first step`() {
    for _ in 1...4 {
      _ = next()
      recovery.handle(.failed, now)
    }
    _ = next()
    recovery.handle(.works, now)
    now = now + RadioRecovery.stableTime
    recovery.handle(.failed, now)
    #expect(recovery.failures == 1)
    #expect(next() == "1 s arm")
  }

  @Test mutating func `a radio that works only briefly continues with the next step`() {
    for _ in 1...2 {
      _ = next()
      recovery.handle(.failed, now)
    }
    _ = next()
    recovery.handle(.works, now)
    now = now + .seconds(29)
    recovery.handle(.failed, now)
    #expect(next() == "4 s powerCycle")
  }

  @Test mutating func `a blocked radio is left alone, and started at once when it is unblocked`() {
    _ = next()
    recovery.handle(.failed, now)
    recovery.handle(.blocked(true), now)
    #expect(next() == "never")
    recovery.handle(.failed, now)
    #expect(next() == "never")
    recovery.handle(.blocked(false), now)
    #expect(next() == "0 s arm")
    #expect(recovery.failures == 0)
  }

  @Test mutating func `an absent and blocked radio waits for both conditions to end`() {
    recovery.handle(.present(false), now)
    recovery.handle(.blocked(true), now)
    recovery.handle(.present(true), now)
    #expect(next() == "never")
    recovery.handle(.blocked(false), now)
    #expect(next() == "0 s arm")
  }

  @Test mutating func `repeated reports of the same state change nothing`() {
    _ = next()
    recovery.handle(.works, now)
    let before = recovery
    recovery.handle(.present(true), now)
    recovery.handle(.blocked(false), now)
    #expect(recovery == before)
    #expect(next() == "never")
  }

  @Test mutating func `a new driver of the radio starts it at once`() {
    for _ in 1...5 {
      _ = next()
      recovery.handle(.failed, now)
    }
    recovery.handle(.renewed, now)
    #expect(next() == "0 s arm")
    recovery.handle(.failed, now)
    #expect(next() == "1 s arm")
  }

  @Test mutating func `a failure that is reported twice counts once`() {
    _ = next()
    recovery.handle(.failed, now)
    recovery.handle(.failed, now)
    #expect(recovery.failures == 1)
  }

  @Test mutating func `a recovery step is returned once`() {
    #expect(recovery.nextStep(now) == .arm)
    #expect(recovery.nextStep(now) == nil)
    #expect(recovery.deadline == .never)
  }

  @Test mutating func `a radio that does not respond is power-cycled first`() {
    _ = next()
    recovery.handle(.silent, now)
    #expect(next() == "4 s powerCycle")
    recovery.handle(.silent, now)
    #expect(next() == "8 s powerCycle")
    recovery.handle(.silent, now)
    #expect(next() == "16 s reset")
  }
}
