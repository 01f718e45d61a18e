import CSystem
import Primitives

/// A one-shot timer of an `EventLoop`. The timer fires on the loop's thread, before all other work of a pass of the
/// loop.
public final class Timer {
  /// The slack for periodic checks that run every 30 s or less often. The daemon's maintenance wakes the loop every 10
  /// s in any case.
  public static let choreSlack = TimeSpan.seconds(10)

  /// The time at which the timer is due; `.never` while it is not set.
  public private(set) var deadline = Instant.never
  /// The time at which the timer fires at the latest: `deadline` plus the slack.
  fileprivate private(set) var latest = Instant.never
  private let loop: EventLoop
  fileprivate let fired: () -> Void

  public init(_ loop: EventLoop, _ fired: @escaping () -> Void) {
    self.loop = loop
    self.fired = fired
  }

  /// Sets the timer to `deadline`, which replaces an earlier deadline. A deadline in the past fires in the next pass.
  /// With a `slack`, the loop does not wake up at the deadline. The timer fires in the first pass after the deadline
  /// that has another cause, and at the latest at the end of the slack.
  public func set(_ deadline: Instant, slack: TimeSpan = .seconds(0)) {
    latest = deadline + slack
    if deadline == self.deadline { return }
    self.deadline = deadline
    loop.timers.changed(self)
  }

  public func set(after span: TimeSpan, slack: TimeSpan = .seconds(0)) { set(loop.now + span, slack: slack) }

  public func cancel() { set(.never) }

  fileprivate func expire() {
    deadline = .never
    fired()
  }
}

/// All timers that are set, which share one timerfd. There are only tens of timers, so a linear search is faster than a
/// heap.
final class TimerQueue: EventSource {
  let descriptor: CInt
  private var pending: [Timer] = []
  private var armed = Instant.never
  /// How much earlier than the next deadline the timerfd may expire. With this tolerance, a deadline that moves a
  /// little with each event does not need a system call each time.
  private static let earlyMax = TimeSpan.milliseconds(20)

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
  }

  /// Fires all timers that are due.
  func fireDue(_ now: Instant) {
    if !pending.contains(where: { $0.deadline <= now }) { return }
    let due = pending.filter { $0.deadline <= now }.sorted { $0.deadline < $1.deadline }
    pending.removeAll { $0.deadline <= now }
    // A closure can set, cancel or release any timer, including its own. So the deadline is checked again.
    for timer in due where timer.deadline <= now { timer.expire() }
    // A closure may have set a timer of `due` to an instant in the past. A timer that was set in this way was added to
    // `pending` again, and has fired in this loop.
    pending.removeAll { $0.deadline == .never }
  }

  /// Sets the timerfd. This method is called only once before each wait, because timers may be set hundreds of times in
  /// one pass.
  func arm() {
    var earliest = Instant.never
    for timer in pending where timer.latest < earliest { earliest = timer.latest }
    if armed <= earliest && earliest <= armed + Self.earlyMax { return }
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
