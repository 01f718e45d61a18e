import CSystem
import Primitives

/// A one-shot timer of an `EventLoop`. It fires in the loop's thread, at priority `clock`.
public final class Timer {
  /// When it fires; `.never` when it is not set.
  public private(set) var deadline = Instant.never
  private let loop: EventLoop
  fileprivate let fired: () -> Void

  public init(_ loop: EventLoop, _ fired: @escaping () -> Void) {
    self.loop = loop
    self.fired = fired
  }

  /// Sets the timer to `deadline`, and replaces a former deadline. An instant in the past fires at once.
  public func set(_ deadline: Instant) {
    if deadline == self.deadline { return }
    self.deadline = deadline
    loop.timers.changed(self)
  }

  public func set(after span: TimeSpan) { set(loop.now + span) }

  public func cancel() { set(.never) }

  fileprivate func expire() {
    deadline = .never
    fired()
  }
}

/// All set timers, on one timerfd. There are only tens, so a scan is faster than a heap.
final class TimerQueue: EventSource {
  let descriptor: CInt
  private var pending: [Timer] = []
  private var armed = Instant.never

  init() throws(SystemError) {
    descriptor = timerfd_create(CLOCK_MONOTONIC, CInt(TFD_CLOEXEC | TFD_NONBLOCK))
    if descriptor < 0 { throw SystemError.last }
  }

  deinit { close(descriptor) }

  func changed(_ timer: Timer) {
    let index = pending.firstIndex { $0 === timer }
    if timer.deadline == .never {
      if let index { pending.swapAt(index, pending.count - 1); pending.removeLast() }
    } else if index == nil {
      pending.append(timer)
    }
  }

  func ready(_ events: UInt32) {
    var expirations: UInt64 = 0
    _ = read(descriptor, &expirations, 8)
    armed = .never
    let now = monotonicNow()
    let due = pending.filter { $0.deadline <= now }.sorted { $0.deadline < $1.deadline }
    pending.removeAll { $0.deadline <= now }
    // A handler may set, cancel or release any timer, including its own.
    for timer in due where timer.deadline <= now { timer.expire() }
    // A timer that a handler set to a past instant was queued again and has already fired.
    pending.removeAll { $0.deadline == .never }
  }

  /// Sets the timerfd, once before each wait: an event may set timers hundreds of times.
  func arm() {
    var earliest = Instant.never
    for timer in pending where timer.deadline < earliest { earliest = timer.deadline }
    if earliest == armed { return }
    armed = earliest
    var setting = itimerspec()
    if earliest != .never {
      // A zero value would disarm the timerfd, so an instant in the past is set as nanosecond 1.
      let nanoseconds = max(earliest.nanoseconds, 1)
      setting.it_value.tv_sec = Int(nanoseconds / 1_000_000_000)
      setting.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
    }
    timerfd_settime(descriptor, CInt(TFD_TIMER_ABSTIME), &setting, nil)
  }
}
