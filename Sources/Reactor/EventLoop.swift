import CSystem
import Primitives

/// An object that reads or writes a descriptor when the loop reports it as ready.
public protocol EventSource: AnyObject {
  /// Called when the descriptor is ready. `events` has the bits EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP and EPOLLRDHUP.
  /// The source moves at most `EventLoop.callBytesMax` bytes and returns. If the descriptor is still ready, `ready` is
  /// called again in the next pass of the event loop.
  func ready(_ events: UInt32)
}

/// The order in which ready sources are served within one pass of the event loop.
public enum Priority: UInt8, Sendable, CaseIterable {
  /// Signals and timers. Signals and timers are first, so that a stop or a retransmission never waits for bulk data.
  case clock
  /// Established links.
  case link
  /// Listening sockets, radios and discovery: streams and datagrams that do not belong to a link yet.
  case admission
  /// The control socket, the socket for applications, and other local descriptors.
  case diagnostics
}

/// The events for which a source waits. EPOLLERR and EPOLLHUP (both directions closed) are always reported.
public struct Interest: OptionSet, Sendable {
  public let rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }
  public static let read = Interest(rawValue: 1)
  public static let write = Interest(rawValue: 2)
  /// The other side has closed its direction (EPOLLRDHUP). `.read` includes this event. The event is reported in each
  /// pass of the event loop until the source closes the descriptor or changes its interest.
  public static let hangUp = Interest(rawValue: 4)

  var mask: UInt32 {
    var bits: UInt32 = 0
    if contains(.read) { bits |= EPOLLIN.rawValue | EPOLLRDHUP.rawValue }
    if contains(.hangUp) { bits |= EPOLLRDHUP.rawValue }
    if contains(.write) { bits |= EPOLLOUT.rawValue }
    return bits
  }
}

/// Identifies one call of `EventLoop.add`: a slot of the table, and the generation of that slot. Each `remove`
/// increases the generation, so a registration that is used after `remove` has no effect.
public struct Registration: Equatable, Sendable {
  let slot: UInt32
  let generation: UInt32
}

/// A single-threaded epoll loop.
///
/// One pass of the loop begins when epoll_wait returns. The loop fires the timers that are due. Then the loop serves at
/// most `wakeEventsMax` ready descriptors, each once, in order of `Priority`. At the end of a pass, the loop calls
/// `batchEnded`, which carries out the core's outputs.
///
/// Descriptors are level-triggered. An event of a descriptor that was removed earlier in the same pass is dropped, even
/// if the descriptor's number is in use again. The event of a removed descriptor can be dropped because the kernel
/// returns slot and generation (`Registration`), not the number.
public final class EventLoop {
  /// The maximum number of ready descriptors that one pass serves.
  public static let wakeEventsMax = 64
  /// The number of bytes that a source should move at most in one call of `ready`: four TLS records of maximum length.
  public static let callBytesMax = 65_536

  private struct Slot {
    var source: (any EventSource)?
    var descriptor: CInt = -1
    var priority: Priority = .diagnostics
    var generation: UInt32 = 0
  }

  /// Called once in each pass, after all ready sources were served.
  public var batchEnded: (() -> Void)?
  /// The monotonic time at which the current pass began.
  public private(set) var now: Instant

  private let epoll: CInt
  private var slots: [Slot] = []
  private var freeSlots: [UInt32] = []
  private var isRunning = false
  var timers: TimerQueue!

  /// Errors: those of epoll_create1 and timerfd_create (EMFILE, ENFILE, ENOMEM).
  public init() throws(SystemError) {
    epoll = epoll_create1(CInt(EPOLL_CLOEXEC))
    if epoll < 0 { throw SystemError.last }
    now = monotonicNow()
    let timers = try TimerQueue()
    self.timers = timers
    _ = try add(timers.descriptor, .read, .clock, timers)
  }

  deinit { close(epoll) }

  /// Watches a descriptor. The source still owns the descriptor, and must call `remove` before it closes the
  /// descriptor. Errors: those of epoll_ctl (EPERM for a regular file, ENOSPC above the user's limit of watches).
  public func add(
    _ descriptor: CInt, _ interest: Interest, _ priority: Priority, _ source: any EventSource
  ) throws(SystemError) -> Registration {
    let slot: UInt32
    if let free = freeSlots.popLast() {
      slot = free
    } else {
      slot = UInt32(slots.count)
      slots.append(Slot())
    }
    let generation = slots[Int(slot)].generation
    var event = epoll_event()
    event.events = interest.mask
    event.data.u64 = UInt64(generation) << 32 | UInt64(slot)
    if epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0 {
      let error = SystemError.last
      freeSlots.append(slot)
      throw error
    }
    slots[Int(slot)] = Slot(source: source, descriptor: descriptor, priority: priority, generation: generation)
    return Registration(slot: slot, generation: generation)
  }

  /// Changes the events for which a source waits. Has no effect after `remove`.
  public func modify(_ registration: Registration, _ interest: Interest) {
    guard isCurrent(registration) else { return }
    var event = epoll_event()
    event.events = interest.mask
    event.data.u64 = UInt64(registration.generation) << 32 | UInt64(registration.slot)
    _ = epoll_ctl(epoll, EPOLL_CTL_MOD, slots[Int(registration.slot)].descriptor, &event)
  }

  /// Stops watching a descriptor. A second call of `remove` has no effect.
  public func remove(_ registration: Registration) {
    guard isCurrent(registration) else { return }
    let index = Int(registration.slot)
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, slots[index].descriptor, nil)
    slots[index] = Slot(generation: slots[index].generation &+ 1)
    freeSlots.append(registration.slot)
  }

  /// Serves events until `stop`.
  public func run() {
    isRunning = true
    while isRunning { turn(waitMilliseconds: -1) }
  }

  /// Makes `run` return after the current pass.
  public func stop() { isRunning = false }

  /// Makes one pass of the loop. Waits at most `waitMilliseconds` for an event; -1 means without limit.
  public func turn(waitMilliseconds: CInt) {
    timers.arm()
    let count = withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Self.wakeEventsMax) { events in
      let count = Int(epoll_wait(epoll, events.baseAddress!, CInt(Self.wakeEventsMax), waitMilliseconds))
      now = monotonicNow()
      guard count > 0 else { return 0 }  // EINTR needs no action: signals arrive by signalfd
      timers.fireDue(now)
      for priority in Priority.allCases {
        for index in 0..<count { serve(events[index], at: priority) }
      }
      return count
    }
    if count > 0 { batchEnded?() }
  }

  private func serve(_ event: epoll_event, at priority: Priority) {
    let slot = Int(event.data.u64 & 0xFFFF_FFFF)
    let generation = UInt32(event.data.u64 >> 32)
    guard slots[slot].generation == generation, slots[slot].priority == priority else { return }
    slots[slot].source?.ready(event.events)
  }

  private func isCurrent(_ registration: Registration) -> Bool {
    let index = Int(registration.slot)
    return index < slots.count && slots[index].generation == registration.generation && slots[index].source != nil
  }
}

/// A failed system call.
public struct SystemError: Error, Equatable {
  /// The value of errno.
  public let code: CInt
  public init(code: CInt) { self.code = code }
  /// The error of the system call that failed last on this thread.
  public static var last: SystemError { SystemError(code: csystem_errno()) }
  /// The error as text (strerror(3)).
  public var text: String { String(cString: strerror(code)) }
}

/// The wall clock (CLOCK_REALTIME), as time since 1970. The wall clock jumps when it is set.
public func wallClockNow() -> Instant {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Instant(nanoseconds: UInt64(max(time.tv_sec, 0)) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}

/// The monotonic clock (CLOCK_MONOTONIC). The monotonic clock never jumps, and does not advance while the machine is
/// suspended.
public func monotonicNow() -> Instant {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Instant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}

/// The processor time that this thread has used (CLOCK_THREAD_CPUTIME_ID). Unlike the time that passes, it does not
/// include the time of other threads and processes.
public func threadTime() -> TimeSpan {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return TimeSpan(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}
