import CAvahi
import CSystem
import Primitives
import Reactor

/// Implements Avahi's main-loop interface (`AvahiPoll`, avahi-common/watch.h) on an `EventLoop`.
///
/// Avahi may register several watches for one descriptor: libdbus registers a watch for reading and a watch for
/// writing. But epoll accepts a descriptor only once, so watches are grouped by descriptor. Avahi may free a watch or
/// timeout inside any callback, even inside the callback of that watch or timeout. The owner frees the Avahi object
/// first and calls `close` afterwards.
final class AvahiPollAdapter {
  /// The function table to pass to the constructors of Avahi's objects; valid until `close`.
  let api: UnsafeMutablePointer<AvahiPoll>
  fileprivate let loop: EventLoop
  fileprivate let screen: PacketScreen?
  fileprivate var descriptors: [WatchedDescriptor] = []
  /// The time of the last packet, of the last request to Avahi, or of the start, whichever is latest.
  fileprivate var activeAt: Instant
  /// A random offset of rounded times, below `Quiet.longGrain`. Without the offset, boxes that started together would
  /// send their questions at the same moment.
  fileprivate let phase: TimeSpan

  /// If `screen` is not nil, it checks the datagrams of UDP sockets before Avahi reads them.
  init(_ loop: EventLoop, screen: PacketScreen?) {
    self.loop = loop
    self.screen = screen
    activeAt = loop.now
    phase = TimeSpan(nanoseconds: kernelRandom() % Quiet.longGrain.nanoseconds)
    api = .allocate(capacity: 1)
    api.initialize(
      to: AvahiPoll(
        userdata: nil, watch_new: watchNew, watch_update: watchUpdate, watch_get_events: watchGetEvents,
        watch_free: watchFree, timeout_new: timeoutNew, timeout_update: timeoutUpdate, timeout_free: timeoutFree))
    api.pointee.userdata = Unmanaged.passUnretained(self).toOpaque()
  }

  /// Call this at a request to Avahi. For the next seconds, times are rounded less (see `Quiet`).
  func stir() { activeAt = loop.now }

  /// The number of descriptors that have at least one watch.
  var descriptorCount: Int { descriptors.count }

  /// Frees the function table. The Avahi object that used the function table must have been freed before.
  func close() {
    for descriptor in descriptors { descriptor.abandon(loop) }
    descriptors = []
    api.deinitialize(count: 1)
    api.deallocate()
  }

  fileprivate func watch(
    _ descriptor: CInt, _ events: UInt32, _ callback: @escaping AvahiWatchCallback, _ userdata: UnsafeMutableRawPointer?
  ) -> Watch {
    let group: WatchedDescriptor
    if let index = descriptors.firstIndex(where: { $0.descriptor == descriptor }) {
      group = descriptors[index]
    } else {
      group = WatchedDescriptor(self, descriptor)
      descriptors.append(group)
    }
    let watch = Watch(group, events, callback, userdata)
    group.watches.append(watch)
    group.refresh()
    return watch
  }

  fileprivate func unwatch(_ watch: Watch) {
    guard let group = watch.group else { return }
    watch.group = nil
    group.watches.removeAll { $0 === watch }
    group.refresh()
    if group.watches.isEmpty { descriptors.removeAll { $0 === group } }
  }
}

/// A descriptor and all Avahi watches on this descriptor.
private final class WatchedDescriptor: EventSource {
  let descriptor: CInt
  let adapter: AvahiPollAdapter
  var watches: [Watch] = []
  private let isScreened: Bool
  private var registration: Registration?
  private var interest: Interest = []

  init(_ adapter: AvahiPollAdapter, _ descriptor: CInt) {
    self.adapter = adapter
    self.descriptor = descriptor
    isScreened = adapter.screen != nil && isInternetDatagramSocket(descriptor)
  }

  /// Registers the descriptor in epoll for all events that any of its watches requests. If no watch requests an event,
  /// the descriptor is removed from epoll, which would otherwise report a hang-up of the descriptor again and again.
  func refresh() {
    var wanted: Interest = []
    for watch in watches {
      if watch.requested & AVAHI_WATCH_IN.rawValue != 0 { wanted.insert(.read) }
      if watch.requested & AVAHI_WATCH_OUT.rawValue != 0 { wanted.formUnion([.write, .hangUp]) }
    }
    if wanted == interest { return }
    interest = wanted
    if wanted.isEmpty {
      if let registration { adapter.loop.remove(registration) }
      registration = nil
    } else if let registration {
      adapter.loop.modify(registration, wanted)
    } else {
      registration = try? adapter.loop.add(descriptor, wanted, .admission, self)
    }
  }

  func abandon(_ loop: EventLoop) {
    if let registration { loop.remove(registration) }
    registration = nil
    for watch in watches { watch.group = nil }
    watches = []
  }

  func ready(_ events: UInt32) {
    adapter.stir()
    var bits: UInt32 = 0
    if events & EPOLLIN.rawValue != 0 { bits |= AVAHI_WATCH_IN.rawValue }
    if events & EPOLLOUT.rawValue != 0 { bits |= AVAHI_WATCH_OUT.rawValue }
    if events & EPOLLERR.rawValue != 0 { bits |= AVAHI_WATCH_ERR.rawValue }
    // A stream that the other side has half closed is reported as a hang-up, because a watch for writing alone would
    // not notice the end.
    if events & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { bits |= AVAHI_WATCH_HUP.rawValue }
    if isScreened, bits & AVAHI_WATCH_IN.rawValue != 0, let screen = adapter.screen, !screen.admitsNext(of: descriptor)
    {
      return
    }
    defer { adapter.screen?.handled() }
    for watch in watches where watch.group != nil {
      let happened = bits & (watch.requested | AVAHI_WATCH_ERR.rawValue | AVAHI_WATCH_HUP.rawValue)
      if happened == 0 { continue }
      watch.happened = happened
      watch.callback(watch.handle, descriptor, AvahiWatchEvent(rawValue: happened), watch.userdata)
      watch.happened = 0
    }
  }
}

/// One `AvahiWatch`, to which Avahi has one reference from `watch_new` to `watch_free`.
private final class Watch {
  /// nil once Avahi has freed the watch.
  var group: WatchedDescriptor?
  var requested: UInt32
  var happened: UInt32 = 0
  let callback: AvahiWatchCallback
  let userdata: UnsafeMutableRawPointer?

  init(
    _ group: WatchedDescriptor, _ requested: UInt32, _ callback: @escaping AvahiWatchCallback,
    _ userdata: UnsafeMutableRawPointer?
  ) {
    self.group = group
    self.requested = requested
    self.callback = callback
    self.userdata = userdata
  }

  var handle: OpaquePointer { OpaquePointer(Unmanaged.passUnretained(self).toOpaque()) }
}

/// One `AvahiTimeout`, to which Avahi has one reference from `timeout_new` to `timeout_free`.
private final class Timeout {
  private let adapter: AvahiPollAdapter
  private var timer: Timer?
  private let callback: AvahiTimeoutCallback
  private let userdata: UnsafeMutableRawPointer?
  private var isFiring = false
  /// Whether the callback must be called again at once. True only if, during a callback, Avahi sets a time that has
  /// already come.
  private var isDue = false
  /// The maximum number of consecutive callbacks, after which the event loop serves other sources first.
  private static let callsMax = 64

  init(
    _ adapter: AvahiPollAdapter, _ callback: @escaping AvahiTimeoutCallback, _ userdata: UnsafeMutableRawPointer?
  ) {
    self.adapter = adapter
    self.callback = callback
    self.userdata = userdata
    timer = Timer(adapter.loop) { [self] in fire() }
  }

  /// Avahi handles one event per callback and then sets the time of its next event. If the next event is already due,
  /// the callback is called again in the same pass of the event loop.
  private func fire() {
    isFiring = true
    var calls = 0
    repeat {
      isDue = false
      calls += 1
      callback(OpaquePointer(Unmanaged.passUnretained(self).toOpaque()), userdata)
    } while isDue && calls < Self.callsMax
    isFiring = false
    if isDue { timer?.set(monotonicNow()) }
  }

  /// Sets the timeout to `time`, a wall-clock instant. nil disables the timeout.
  func set(_ time: UnsafePointer<timeval>?) {
    isDue = false
    guard let time else {
      timer?.cancel()
      return
    }
    var wall = timeval()
    gettimeofday(&wall, nil)
    let (seconds, overflow) = Int64(time.pointee.tv_sec).subtractingReportingOverflow(Int64(wall.tv_sec))
    let microseconds = Int64(time.pointee.tv_usec) &- Int64(wall.tv_usec)
    // The wait is limited to one year, so that the product cannot overflow, even if the clock was never set.
    let ahead = overflow ? 0 : min(seconds, 31_536_000) &* 1_000_000 &+ microseconds
    let now = monotonicNow()
    let due = now + TimeSpan(nanoseconds: UInt64(max(ahead, 0)) &* 1000)
    if isFiring && due <= now {
      isDue = true
      timer?.cancel()
    } else {
      timer?.set(Quiet.coarse(due, activeAt: adapter.activeAt, phase: adapter.phase, now: now))
    }
  }

  func free() {
    isDue = false
    timer?.cancel()
    timer = nil
  }
}

/// Rounds Avahi's times up, so that events that are due at nearly the same time need only one pass of the event loop.
///
/// Soon after a packet, Avahi sets delays of 20 ms and more for its answers. Avahi also sets a time at which each
/// record of the packet is forgotten. While no packets arrive, only the lifetimes of cached records remain. Each cached
/// record has five lifetime checks. Without rounding, a box with many neighbours would wake up for each check.
enum Quiet {
  /// The unit to which a time within the next `short` is rounded, if a packet or request came within the last `short`.
  static let fineGrain = TimeSpan.milliseconds(20)
  static let short = TimeSpan.seconds(2)
  /// The unit to which all other times are rounded.
  static let grain = TimeSpan.seconds(1)
  /// The unit to which all times are rounded if no packet or request came for `long`.
  static let longGrain = TimeSpan.seconds(5)
  static let long = TimeSpan.seconds(10)

  /// Rounds `time` up. Returns `time` unchanged if it is not in the future. `activeAt` is the time of the last packet
  /// or request.
  static func coarse(_ time: Instant, activeAt: Instant, phase: TimeSpan, now: Instant) -> Instant {
    if time <= now { return time }
    let silence = now - activeAt
    let isNear = time - now < short && silence < short
    let grain = (isNear ? fineGrain : silence < long ? grain : longGrain).nanoseconds
    let phase = phase.nanoseconds % grain
    return Instant(nanoseconds: (time.nanoseconds + phase + grain - 1) / grain * grain - phase)
  }
}

private func isInternetDatagramSocket(_ descriptor: CInt) -> Bool {
  var type: CInt = 0
  var domain: CInt = 0
  var size = socklen_t(MemoryLayout<CInt>.size)
  guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 else { return false }
  size = socklen_t(MemoryLayout<CInt>.size)
  guard getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 else { return false }
  return type == CInt(SOCK_DGRAM.rawValue) && (domain == AF_INET || domain == AF_INET6)
}

// The functions of the AvahiPoll table.

private func watchNew(
  _ api: UnsafePointer<AvahiPoll>?, _ descriptor: CInt, _ events: AvahiWatchEvent, _ callback: AvahiWatchCallback?,
  _ userdata: UnsafeMutableRawPointer?
) -> OpaquePointer? {
  guard let adapter = adapter(of: api), let callback else { return nil }
  let watch = adapter.watch(descriptor, events.rawValue, callback, userdata)
  return OpaquePointer(Unmanaged.passRetained(watch).toOpaque())
}

private func watchUpdate(_ handle: OpaquePointer?, _ events: AvahiWatchEvent) {
  guard let watch = watch(handle) else { return }
  watch.requested = events.rawValue
  watch.group?.refresh()
}

private func watchGetEvents(_ handle: OpaquePointer?) -> AvahiWatchEvent {
  AvahiWatchEvent(rawValue: watch(handle)?.happened ?? 0)
}

private func watchFree(_ handle: OpaquePointer?) {
  guard let handle else { return }
  let watch = Unmanaged<Watch>.fromOpaque(UnsafeRawPointer(handle)).takeRetainedValue()
  watch.group?.adapter.unwatch(watch)
}

private func timeoutNew(
  _ api: UnsafePointer<AvahiPoll>?, _ time: UnsafePointer<timeval>?, _ callback: AvahiTimeoutCallback?,
  _ userdata: UnsafeMutableRawPointer?
) -> OpaquePointer? {
  guard let adapter = adapter(of: api), let callback else { return nil }
  let timeout = Timeout(adapter, callback, userdata)
  timeout.set(time)
  return OpaquePointer(Unmanaged.passRetained(timeout).toOpaque())
}

private func timeoutUpdate(_ handle: OpaquePointer?, _ time: UnsafePointer<timeval>?) {
  guard let handle else { return }
  Unmanaged<Timeout>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue().set(time)
}

private func timeoutFree(_ handle: OpaquePointer?) {
  guard let handle else { return }
  Unmanaged<Timeout>.fromOpaque(UnsafeRawPointer(handle)).takeRetainedValue().free()
}

private func adapter(of api: UnsafePointer<AvahiPoll>?) -> AvahiPollAdapter? {
  guard let userdata = api?.pointee.userdata else { return nil }
  return Unmanaged<AvahiPollAdapter>.fromOpaque(userdata).takeUnretainedValue()
}

private func watch(_ handle: OpaquePointer?) -> Watch? {
  guard let handle else { return nil }
  return Unmanaged<Watch>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
}
