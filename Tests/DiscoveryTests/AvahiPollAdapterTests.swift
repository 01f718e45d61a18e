import CAvahi
import CSystem
import LoopSupport
import Primitives
import Reactor
import Testing

@testable import Discovery

/// Stands in for the Avahi client library. The stand-in has the adapter's table of functions, records the callbacks,
/// and runs the test's closure inside each callback.
private final class Client {
  let loop: EventLoop
  let adapter: AvahiPollAdapter
  var calls: [(descriptor: CInt, events: UInt32)] = []
  var timeouts = 0
  var inWatch: ((OpaquePointer) -> Void)?
  var inTimeout: ((OpaquePointer) -> Void)?

  init() throws {
    loop = try EventLoop()
    adapter = AvahiPollAdapter(loop, screen: nil)
  }

  var api: AvahiPoll { adapter.api.pointee }
  private var userdata: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  func watch(_ descriptor: CInt, _ events: AvahiWatchEvent) -> OpaquePointer {
    let callback: AvahiWatchCallback = { watch, descriptor, events, userdata in
      let client = Unmanaged<Client>.fromOpaque(userdata!).takeUnretainedValue()
      client.calls.append((descriptor, events.rawValue))
      #expect(client.api.watch_get_events(watch).rawValue == events.rawValue)
      client.inWatch?(watch!)
    }
    return api.watch_new(adapter.api, descriptor, events, callback, userdata)!
  }

  func timeout(milliseconds: Int?) -> OpaquePointer {
    var time = timeval()
    let callback: AvahiTimeoutCallback = { timeout, userdata in
      let client = Unmanaged<Client>.fromOpaque(userdata!).takeUnretainedValue()
      client.timeouts += 1
      client.inTimeout?(timeout!)
    }
    guard let milliseconds else { return api.timeout_new(adapter.api, nil, callback, userdata)! }
    gettimeofday(&time, nil)
    time.tv_usec += milliseconds * 1000
    while time.tv_usec >= 1_000_000 {
      time.tv_usec -= 1_000_000
      time.tv_sec += 1
    }
    return api.timeout_new(adapter.api, &time, callback, userdata)!
  }

  func turns(_ count: Int = 3, waiting milliseconds: CInt = 0) {
    for _ in 0..<count { loop.turn(waitMilliseconds: milliseconds) }
  }
}

/// A socket pair, whose ends are closed with this object.
private final class Pair {
  private(set) var near: CInt
  private(set) var far: CInt

  init() {
    var ends: [CInt] = [-1, -1]
    socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends)
    (near, far) = (ends[0], ends[1])
  }

  func send() { _ = write(far, "x", 1) }
  func closeFar() {
    close(far)
    far = -1
  }
  deinit {
    close(near)
    if far >= 0 { close(far) }
  }
}

struct AvahiPollAdapterTests {
  @Test func `two watches on one descriptor each receive the events they asked for`() throws {
    let client = try Client()
    let pair = Pair()
    let reading = client.watch(pair.near, AVAHI_WATCH_IN)
    let writing = client.watch(pair.near, AVAHI_WATCH_OUT)
    pair.send()
    client.turns(1)
    #expect(client.calls.map(\.events).sorted() == [AVAHI_WATCH_IN.rawValue, AVAHI_WATCH_OUT.rawValue])
    client.api.watch_free(reading)
    client.api.watch_free(writing)
    #expect(client.adapter.descriptorCount == 0)
  }

  @Test func `a watch updated to other events receives only those`() throws {
    let client = try Client()
    let pair = Pair()
    let watch = client.watch(pair.near, AVAHI_WATCH_IN)
    client.api.watch_update(watch, AVAHI_WATCH_OUT)
    pair.send()
    client.turns(1)
    #expect(client.calls.map(\.events) == [AVAHI_WATCH_OUT.rawValue])
    client.api.watch_free(watch)
  }

  @Test func `a watch may be freed inside its own callback`() throws {
    let client = try Client()
    let pair = Pair()
    _ = client.watch(pair.near, AVAHI_WATCH_IN)
    client.inWatch = { client.api.watch_free($0) }
    pair.send()
    client.turns()
    #expect(client.calls.count == 1)
    #expect(client.adapter.descriptorCount == 0)
  }

  @Test func `a watch freed in another watch's callback is not called again`() throws {
    let client = try Client()
    let pair = Pair()
    let first = client.watch(pair.near, AVAHI_WATCH_IN)
    let second = client.watch(pair.near, AVAHI_WATCH_IN)
    client.inWatch = { client.api.watch_free($0 == first ? second : first) }
    pair.send()
    client.turns(1)
    #expect(client.calls.count == 1)
    client.inWatch = nil
    client.api.watch_free(first)
  }

  @Test func `a new watch works on the reused number of a closed descriptor`() throws {
    let client = try Client()
    var number: CInt = -1
    do {
      let pair = Pair()
      number = pair.near
      client.api.watch_free(client.watch(pair.near, AVAHI_WATCH_IN))
    }
    let pair = Pair()
    let watch = client.watch(pair.near, AVAHI_WATCH_IN)
    pair.send()
    client.turns(1)
    #expect(client.calls.map(\.descriptor) == [pair.near])
    #expect(number >= 0)
    client.api.watch_free(watch)
  }

  @Test func `a watch without events does not keep the loop awake after a hang-up`() throws {
    let client = try Client()
    let pair = Pair()
    let watch = client.watch(pair.near, AvahiWatchEvent(rawValue: 0))
    pair.closeFar()
    client.turns()
    #expect(client.calls.isEmpty)
    client.api.watch_free(watch)
  }

  @Test func `a watch for writing is notified of a hang-up`() throws {
    let client = try Client()
    let pair = Pair()
    let watch = client.watch(pair.near, AVAHI_WATCH_OUT)
    pair.closeFar()
    client.turns(1)
    #expect((client.calls.first?.events ?? 0) & AVAHI_WATCH_HUP.rawValue != 0)
    client.api.watch_free(watch)
  }

  @Test func `a timeout fires once, not before its time`() throws {
    let client = try Client()
    let start = monotonicNow()
    var firedAt: [Instant] = []
    client.inTimeout = { _ in firedAt.append(monotonicNow()) }
    let timeout = client.timeout(milliseconds: 20)
    serve(client.loop) { !firedAt.isEmpty }
    client.turns(2, waiting: 40)
    try #require(firedAt.count == 1)
    // The limit is 1 ms lower than the timeout, because Avahi measures by the wall clock in microseconds and the loop
    // by the monotonic clock.
    #expect(firedAt[0] - start >= .milliseconds(19))
    client.api.timeout_free(timeout)
  }

  @Test func `a timeout in the past fires at once and may be set again in its callback`() throws {
    let client = try Client()
    let timeout = client.timeout(milliseconds: nil)
    var past = timeval()
    client.inTimeout = { if client.timeouts < 3 { client.api.timeout_update($0, &past) } }
    client.api.timeout_update(timeout, &past)
    client.turns(6, waiting: 10)
    #expect(client.timeouts == 3)
    client.api.timeout_free(timeout)
  }

  private func coarse(_ ahead: Int, afterSilence silence: Int, phase: Int = 0) -> Int {
    let activeAt = Instant.zero + .milliseconds(700)
    let now = activeAt + .milliseconds(UInt64(silence))
    let time = Quiet.coarse(
      now + .milliseconds(UInt64(ahead)), activeAt: activeAt, phase: .milliseconds(UInt64(phase)), now: now)
    return Int((time - .zero).milliseconds)
  }

  @Test func `distant times are rounded to whole seconds, near ones to fiftieths of a second`() {
    for (ahead, expected) in [(0, 700), (1, 720), (20, 720), (1_999, 2_700), (2_000, 3_000), (2_301, 4_000)] {
      #expect(coarse(ahead, afterSilence: 0) == expected)
    }
  }

  @Test func `all times are rounded to seconds after two quiet seconds, and to five seconds after ten`() {
    #expect(coarse(100, afterSilence: 1_999) == 2_800)
    #expect(coarse(100, afterSilence: 2_000) == 3_000)
    #expect(coarse(100, afterSilence: 9_999) == 11_000)
    #expect(coarse(100, afterSilence: 10_000) == 15_000)
    #expect(coarse(0, afterSilence: 10_000) == 10_700)
  }

  @Test func `rounded times have a different phase on each box`() {
    #expect(coarse(100, afterSilence: 0, phase: 4_253) == 807)
    #expect(coarse(100, afterSilence: 2_000, phase: 4_250) == 3_750)
    #expect(coarse(100, afterSilence: 10_000, phase: 4_100) == 10_900)
    #expect(coarse(101, afterSilence: 10_000, phase: 4_200) == 15_800)
  }

  @Test func `a disabled timeout does not fire`() throws {
    let client = try Client()
    let timeout = client.timeout(milliseconds: 5)
    client.api.timeout_update(timeout, nil)
    client.turns(2, waiting: 15)
    #expect(client.timeouts == 0)
    client.api.timeout_free(timeout)
  }

  @Test func `a timeout may be freed inside its own callback`() throws {
    let client = try Client()
    _ = client.timeout(milliseconds: 0)
    client.inTimeout = { client.api.timeout_free($0) }
    client.turns(3, waiting: 5)
    #expect(client.timeouts == 1)
  }

  @Test func `an instant far beyond the clock does not trap`() throws {
    let client = try Client()
    let timeout = client.timeout(milliseconds: nil)
    for seconds in [Int.max, Int.min, -1] {
      var time = timeval(tv_sec: seconds, tv_usec: 999_999)
      client.api.timeout_update(timeout, &time)
    }
    client.turns(1)
    client.api.timeout_free(timeout)
  }
}
