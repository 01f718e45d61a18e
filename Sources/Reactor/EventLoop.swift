import CSystem
import Primitives

/// An object that handles the readiness of a descriptor.
public protocol EventSource: AnyObject {
  /// `events` holds EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP and EPOLLRDHUP bits. The source does a bounded amount of work
  /// (at most `EventLoop.callBytesMax`) and returns: the rest is reported again.
  func ready(_ events: UInt32)
}

/// The order in which the sources of one wake-up are served.
public enum Priority: UInt8, Sendable, CaseIterable {
  /// Signals and timers: a stop or a retransmission never waits for a transfer.
  case clock
  /// Established links.
  case link
  /// Listeners, radios, discovery: streams and datagrams that do not belong to a link yet.
  case admission
  /// The control socket.
  case diagnostics
}

/// The events that a source waits for. EPOLLERR and EPOLLHUP (both directions closed) are always reported.
public struct Interest: OptionSet, Sendable {
  public let rawValue: UInt8
  public init(rawValue: UInt8) { self.rawValue = rawValue }
  public static let read = Interest(rawValue: 1)
  public static let write = Interest(rawValue: 2)
  /// The other side has closed its direction (EPOLLRDHUP); `.read` reports it too. It is reported in each wake-up, so
  /// only a source that then acts may wait for it.
  public static let hangUp = Interest(rawValue: 4)

  var mask: UInt32 {
    var bits: UInt32 = 0
    if contains(.read) { bits |= EPOLLIN.rawValue | EPOLLRDHUP.rawValue }
    if contains(.hangUp) { bits |= EPOLLRDHUP.rawValue }
    if contains(.write) { bits |= EPOLLOUT.rawValue }
    return bits
  }
}

/// Identifies one `add`: a slot and its generation, so that a handle used after `remove` is detected.
public struct Registration: Equatable, Sendable {
  let slot: UInt32
  let generation: UInt32
}

/// A single-threaded epoll loop.
///
/// One wake-up takes at most `wakeEventsMax` ready descriptors and serves each once, in order of `Priority`. Then
/// `batchEnded` runs once, which drains the core's outputs. Descriptors are level-triggered. An event of a descriptor
/// that was removed earlier in the same wake-up is dropped, even if its number is already in use again. The kernel
/// returns slot and generation, not the number.
public final class EventLoop {
  /// The most ready descriptors one wake-up serves.
  public static let wakeEventsMax = 64
  /// The most bytes a source should move in one `ready` call: 4 full TLS records.
  public static let callBytesMax = 65_536

  private struct Slot {
    var source: (any EventSource)?
    var descriptor: CInt = -1
    var priority: Priority = .diagnostics
    var generation: UInt32 = 0
  }

  /// Called once after each wake-up's sources have been served.
  public var batchEnded: (() -> Void)?
  /// The monotonic time at which the current wake-up began.
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

  /// Watches a descriptor. The source still owns it, and must call `remove` before it closes it. Errors: epoll_ctl's
  /// (EPERM for a regular file, ENOSPC above the user's watch limit).
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

  /// Changes the events that a source waits for. No effect after `remove`.
  public func modify(_ registration: Registration, _ interest: Interest) {
    guard isCurrent(registration) else { return }
    var event = epoll_event()
    event.events = interest.mask
    event.data.u64 = UInt64(registration.generation) << 32 | UInt64(registration.slot)
    _ = epoll_ctl(epoll, EPOLL_CTL_MOD, slots[Int(registration.slot)].descriptor, &event)
  }

  /// Stops watching. Removing twice is harmless.
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

  /// Makes `run` return after the current wake-up.
  public func stop() { isRunning = false }

  /// Serves one wake-up, and waits at most `waitMilliseconds` for it (-1: no limit).
  public func turn(waitMilliseconds: CInt) {
    timers.arm()
    let count = withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Self.wakeEventsMax) { events in
      let count = Int(epoll_wait(epoll, events.baseAddress!, CInt(Self.wakeEventsMax), waitMilliseconds))
      now = monotonicNow()
      guard count > 0 else { return 0 }  // EINTR: signals arrive by signalfd, so nothing is lost
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
  /// The errno.
  public let code: CInt
  public init(code: CInt) { self.code = code }
  /// The errno of the call that just failed on this thread.
  public static var last: SystemError { SystemError(code: csystem_errno()) }
  /// The text of strerror.
  public var text: String { String(cString: strerror(code)) }
}

/// CLOCK_REALTIME, since 1970. It steps when the clock is set.
public func wallClockNow() -> Instant {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Instant(nanoseconds: UInt64(max(time.tv_sec, 0)) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}

/// CLOCK_MONOTONIC. Does not count suspended time, and never steps.
public func monotonicNow() -> Instant {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Instant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}
