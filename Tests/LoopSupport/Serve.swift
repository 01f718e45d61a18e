import Primitives
import Reactor

/// Runs the loop until `isDone` returns true, or until `atMost` has passed. A passing test needs only the time until
/// `isDone`. The default limit is long, because other work on the machine can stop a test for seconds.
public func serve(_ loop: EventLoop, atMost: TimeSpan = .seconds(30), until isDone: () -> Bool) {
  let end = monotonicNow() + atMost
  while !isDone(), monotonicNow() < end { loop.turn(waitMilliseconds: 10) }
}

/// Runs the loop for `span`, to show that an event does not occur. The loop makes at least one pass.
public func serve(_ loop: EventLoop, for span: TimeSpan) {
  let end = monotonicNow() + span
  repeat { loop.turn(waitMilliseconds: 10) } while monotonicNow() < end
}
