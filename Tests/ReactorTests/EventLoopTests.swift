import CSystem
import Primitives
import Reactor
import Testing

/// An event source that counts its events and runs a closure for each.
final class Probe: EventSource {
  var count = 0
  var events: UInt32 = 0
  var action: () -> Void = {}

  func ready(_ events: UInt32) {
    count += 1
    self.events = events
    action()
  }
}

func makePipe() throws -> (read: CInt, write: CInt) {
  var ends: [CInt] = [-1, -1]
  try #require(pipe2(&ends, CInt(O_NONBLOCK | O_CLOEXEC)) == 0)
  return (ends[0], ends[1])
}

func put(_ descriptor: CInt) {
  var byte: UInt8 = 1
  #expect(write(descriptor, &byte, 1) == 1)
}

@Test func `one batch serves sources in order of priority`() throws {
  let loop = try EventLoop()
  var order: [Priority] = []
  var ends: [(read: CInt, write: CInt)] = []
  defer { for end in ends { close(end.read); close(end.write) } }
  // The pipes become readable in the order opposite to their priorities. So the order of the calls cannot be that of
  // the kernel.
  for priority in Priority.allCases.reversed() {
    let end = try makePipe()
    ends.append(end)
    let probe = Probe()
    probe.action = { order.append(priority) }
    _ = try loop.add(end.read, .read, priority, probe)
    put(end.write)
  }
  loop.turn(waitMilliseconds: 0)
  #expect(order == [.clock, .link, .admission, .diagnostics])
}

@Test func `an event of a descriptor removed in the same batch is dropped`() throws {
  let loop = try EventLoop()
  let (first, second) = (try makePipe(), try makePipe())
  defer { for end in [first.read, first.write, second.read, second.write] { close(end) } }
  let victim = Probe()
  let registration = try loop.add(second.read, .read, .diagnostics, victim)
  let killer = Probe()
  killer.action = { loop.remove(registration) }
  _ = try loop.add(first.read, .read, .link, killer)
  put(first.write)
  put(second.write)
  loop.turn(waitMilliseconds: 0)
  #expect(killer.count == 1)
  #expect(victim.count == 0)
}

@Test func `an event does not reach the new owner of a reused descriptor and slot`() throws {
  let loop = try EventLoop()
  let (first, second) = (try makePipe(), try makePipe())
  let victim = Probe()
  let newcomer = Probe()
  let registration = try loop.add(second.read, .read, .diagnostics, victim)
  var reused: CInt = -1
  let killer = Probe()
  killer.action = {
    loop.remove(registration)
    close(second.read)
    // An idle pipe gets the descriptor number, the slot and the priority of the pipe that was closed.
    var ends: [CInt] = [-1, -1]
    _ = pipe2(&ends, CInt(O_NONBLOCK | O_CLOEXEC))
    reused = dup2(ends[0], second.read)
    _ = try? loop.add(reused, .read, .diagnostics, newcomer)
  }
  _ = try loop.add(first.read, .read, .link, killer)
  put(first.write)
  put(second.write)
  loop.turn(waitMilliseconds: 0)
  #expect(reused == second.read)
  #expect(victim.count == 0)
  #expect(newcomer.count == 0)
  for end in [first.read, first.write, second.read, second.write] { close(end) }
}

@Test func `a handle that was kept after its removal changes nothing`() throws {
  let loop = try EventLoop()
  let (first, second) = (try makePipe(), try makePipe())
  defer { for end in [first.read, first.write, second.read, second.write] { close(end) } }
  let old = try loop.add(first.read, .read, .link, Probe())
  loop.remove(old)
  let probe = Probe()
  _ = try loop.add(second.read, .read, .link, probe)  // gets the slot that `old` had
  loop.modify(old, [])
  loop.remove(old)
  put(second.write)
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 1)
}

@Test func `a source without any interest is not called`() throws {
  let loop = try EventLoop()
  let end = try makePipe()
  defer { close(end.read); close(end.write) }
  let probe = Probe()
  let registration = try loop.add(end.read, .read, .link, probe)
  put(end.write)
  loop.modify(registration, [])
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 0)
  loop.modify(registration, .read)
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 1)
}

@Test func `unread data is reported again`() throws {
  let loop = try EventLoop()
  let end = try makePipe()
  defer { close(end.read); close(end.write) }
  let probe = Probe()
  _ = try loop.add(end.read, .read, .link, probe)
  put(end.write)
  loop.turn(waitMilliseconds: 0)
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 2)
}

@Test func `the end of a batch is reported once after all sources, and not for an empty wake-up`() throws {
  let loop = try EventLoop()
  let (first, second) = (try makePipe(), try makePipe())
  defer { for end in [first.read, first.write, second.read, second.write] { close(end) } }
  var story: [String] = []
  let probe = Probe()
  probe.action = { story.append("ready") }
  _ = try loop.add(first.read, .read, .link, probe)
  _ = try loop.add(second.read, .read, .diagnostics, probe)
  loop.batchEnded = { story.append("ended") }
  loop.turn(waitMilliseconds: 0)
  #expect(story == [])
  put(first.write)
  put(second.write)
  loop.turn(waitMilliseconds: 0)
  #expect(story == ["ready", "ready", "ended"])
}

@Test func `adding a closed descriptor is an error and uses no slot`() throws {
  let loop = try EventLoop()
  #expect(throws: SystemError(code: EBADF)) { try loop.add(-1, .read, .link, Probe()) }
  let end = try makePipe()
  defer { close(end.read); close(end.write) }
  let probe = Probe()
  _ = try loop.add(end.read, .read, .link, probe)
  put(end.write)
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 1)
}

@Test func `stop ends the loop after the current wake-up`() throws {
  let loop = try EventLoop()
  var fired = 0
  let timer = Timer(loop) {
    fired += 1
    loop.stop()
  }
  timer.set(after: .milliseconds(1))
  loop.run()
  #expect(fired == 1)
}

@Test func `a half-closed stream wakes only a source that waits for it`() throws {
  let loop = try EventLoop()
  var ends: [CInt] = [-1, -1]
  try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
  defer { for end in ends { close(end) } }
  shutdown(ends[1], CInt(SHUT_WR))
  let probe = Probe()
  let registration = try loop.add(ends[0], [], .admission, probe)
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 0)
  loop.modify(registration, .hangUp)
  loop.turn(waitMilliseconds: 0)
  #expect(probe.count == 1 && probe.events & EPOLLRDHUP.rawValue != 0)
}
