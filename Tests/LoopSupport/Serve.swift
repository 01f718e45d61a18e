import Primitives
import Reactor

/// Runs the loop until `isDone` returns true, or until `atMost` has passed. A passing test returns as soon as it is
/// done. The default limit is long because other work on the machine may stop the tests for seconds.
public func serve(_ loop: EventLoop, atMost: TimeSpan = .seconds(30), until isDone: () -> Bool) {
  let end = monotonicNow() + atMost
  while !isDone(), monotonicNow() < end { loop.turn(waitMilliseconds: 10) }
}

/// Runs the loop for `span`, to show that nothing happens in it. The loop turns at least once.
public func serve(_ loop: EventLoop, for span: TimeSpan) {
  let end = monotonicNow() + span
  repeat { loop.turn(waitMilliseconds: 10) } while monotonicNow() < end
}
