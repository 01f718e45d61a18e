import Primitives
import Reactor
import Testing

/// Runs the loop until no event has occurred for `quiet` milliseconds, but at most one hundred passes.
func settle(_ loop: EventLoop, quiet: CInt = 20) {
  var isBusy = true
  let before = loop.batchEnded
  for _ in 0..<100 where isBusy {
    isBusy = false
    loop.batchEnded = { isBusy = true }
    loop.turn(waitMilliseconds: quiet)
  }
  loop.batchEnded = before
}

@Test func `a timer fires once and not before its time`() throws {
  let loop = try EventLoop()
  var firedAt: [Instant] = []
  let timer = Timer(loop) { firedAt.append(monotonicNow()) }
  let deadline = monotonicNow() + .milliseconds(5)
  timer.set(deadline)
  settle(loop)
  #expect(firedAt.count == 1)
  #expect(firedAt.allSatisfy { $0 >= deadline })
  #expect(timer.deadline == .never)
}

@Test func `a timer set to the past fires at once`() throws {
  let loop = try EventLoop()
  var fired = 0
  let timer = Timer(loop) { fired += 1 }
  timer.set(.zero)
  loop.turn(waitMilliseconds: 50)
  #expect(fired == 1)
}

@Test func `a cancelled timer does not fire`() throws {
  let loop = try EventLoop()
  var fired = 0
  let timer = Timer(loop) { fired += 1 }
  timer.set(after: .milliseconds(2))
  timer.cancel()
  settle(loop)
  #expect(fired == 0)
}

@Test func `a timer that is set again has the new deadline`() throws {
  let loop = try EventLoop()
  var order: [Int] = []
  let first = Timer(loop) { order.append(1) }
  let second = Timer(loop) { order.append(2) }
  first.set(after: .milliseconds(1))
  second.set(after: .milliseconds(5))
  first.set(after: .milliseconds(10))
  settle(loop)
  #expect(order == [2, 1])
}

@Test func `a timer may cancel another timer that is due in the same wake-up`() throws {
  let loop = try EventLoop()
  var fired: [Int] = []
  var second: Timer?
  let first = Timer(loop) {
    fired.append(1)
    second?.cancel()
  }
  second = Timer(loop) { fired.append(2) }
  first.set(.zero)
  second?.set(Instant(nanoseconds: 1))
  settle(loop)
  #expect(fired == [1])
}

@Test func `a timer may set itself again from its own handler`() throws {
  let loop = try EventLoop()
  var fired = 0
  var timer: Timer?
  timer = Timer(loop) {
    fired += 1
    if fired < 3 { timer?.set(after: .milliseconds(1)) }
  }
  timer?.set(after: .milliseconds(1))
  settle(loop)
  #expect(fired == 3)
  timer = nil
}

private final class Token {}

@Test func `timers that are due together fire in order of their deadlines`() throws {
  let loop = try EventLoop()
  var order: [Int] = []
  let timers = (0..<4).map { number in Timer(loop) { order.append(number) } }
  for (timer, deadline) in zip(timers, [4, 2, 3, 1] as [UInt64]) { timer.set(Instant(nanoseconds: deadline)) }
  settle(loop)
  #expect(order == [3, 1, 2, 0])
}

@Test func `a timer that another one sets to the past fires once and is released`() throws {
  let loop = try EventLoop()
  var fired = 0
  weak var token: Token?
  do {
    let kept = Token()
    token = kept
    let second = Timer(loop) {
      _ = kept
      fired += 1
    }
    let first = Timer(loop) { second.set(Instant(nanoseconds: 7)) }
    first.set(Instant(nanoseconds: 1))
    second.set(Instant(nanoseconds: 2))
    settle(loop)
  }
  #expect(fired == 1)
  #expect(token == nil, "the queue keeps no timer that has fired")
}

@Test func `a timer with slack fires together with the next one that is due`() throws {
  let loop = try EventLoop()
  var order: [Int] = []
  var wakeUps = 0
  loop.batchEnded = { wakeUps += 1 }
  let timers = (0..<3).map { number in Timer(loop) { order.append(number) } }
  timers[0].set(after: .milliseconds(1), slack: .seconds(9))
  timers[1].set(after: .milliseconds(2), slack: .seconds(9))
  timers[2].set(after: .milliseconds(4))
  loop.turn(waitMilliseconds: 1000)
  #expect(order == [0, 1, 2] && wakeUps == 1)
}

@Test func `a timer with slack fires at the end of its slack if no other timer is due`() throws {
  let loop = try EventLoop()
  var firedAt = Instant.zero
  let timer = Timer(loop) { firedAt = monotonicNow() }
  let start = monotonicNow()
  timer.set(start + .milliseconds(1), slack: .milliseconds(30))
  loop.turn(waitMilliseconds: 1000)
  #expect(firedAt >= start + .milliseconds(31) && firedAt < start + .milliseconds(500))
}

@Test func `a timer with slack does not fire early`() throws {
  let loop = try EventLoop()
  var fired = 0
  let late = Timer(loop) { fired += 1 }
  let soon = Timer(loop) {}
  late.set(after: .seconds(5), slack: .seconds(5))
  soon.set(after: .milliseconds(1))
  loop.turn(waitMilliseconds: 1000)
  #expect(fired == 0 && soon.deadline == .never)
}
