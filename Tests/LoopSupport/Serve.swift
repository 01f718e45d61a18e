import Primitives
import Reactor

/// Serves the loop until `isDone`. `atMost` ends a test that fails; one that passes waits no longer than it must. It is
/// long because other work on the machine may stop the tests for seconds.
public func serve(_ loop: EventLoop, atMost: TimeSpan = .seconds(30), until isDone: () -> Bool) {
  let end = monotonicNow() + atMost
  while !isDone(), monotonicNow() < end { loop.turn(waitMilliseconds: 10) }
}

/// Serves the loop for a while, to show that nothing happens in it: at least one wake-up.
public func serve(_ loop: EventLoop, for span: TimeSpan) {
  let end = monotonicNow() + span
  repeat { loop.turn(waitMilliseconds: 10) } while monotonicNow() < end
}
