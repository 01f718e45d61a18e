import Primitives
import Testing

@Test func `the time span to a later instant is zero`() {
  #expect(Instant(nanoseconds: 5) - Instant(nanoseconds: 9) == TimeSpan(nanoseconds: 0))
  #expect(Instant(nanoseconds: 9) - Instant(nanoseconds: 5) == TimeSpan(nanoseconds: 4))
}

@Test func `an instant beyond the range of the clock is never reached`() {
  #expect(Instant.never + .seconds(1) == .never)
  #expect(Instant(nanoseconds: .max - 1) + .milliseconds(1) == .never)
}

@Test func `a time span that overflows saturates`() {
  #expect(TimeSpan(nanoseconds: .max / 2) * 3 == TimeSpan(nanoseconds: .max))
  #expect(TimeSpan.milliseconds(3) * 3 == .milliseconds(9))
}

@Test func `time spans are created from seconds, milliseconds and nanoseconds`() {
  #expect(TimeSpan.seconds(2) == .milliseconds(2000))
  #expect(TimeSpan.milliseconds(1).nanoseconds == 1_000_000)
  #expect(TimeSpan.seconds(3).milliseconds == 3000)
}
