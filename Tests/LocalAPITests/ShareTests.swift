import LocalAPI
import Primitives
import Session
import SessionSupport
import Testing
import TestSupport

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let chat = bytes("chat")

/// The shares of users. A user takes as much as possible, and the number of its clients makes no difference.
@Suite struct ShareTests {
  let house = House(1)

  private func attach(_ user: UInt32) -> Int? {
    house.boxes[0].clients.attach(user: user, isOperator: user == 0, groups: [], now: house.now)
  }

  /// Attaches clients until the user gets no more. Returns their number.
  private func attachAll(_ user: UInt32) -> Int {
    var count = 0
    while attach(user) != nil { count += 1 }
    return count
  }

  /// Attaches up to eight clients of a user, in sequence. Each client repeats a request until the request is refused.
  /// Returns the number of accepted requests.
  private func takeAll(_ user: UInt32, _ request: (Int) -> LocalRequest.Body) -> Int {
    var count = 0
    for number in 0..<8 {
      let client = Application(house, 0, user: user, isOperator: user == 0, name: "client \(number)")
      while client.outcome(request(count)) == .done { count += 1 }
    }
    return count
  }

  @Test func `a user with its maximum of connections leaves some to others and to the operator`() {
    #expect(attachAll(1000) == 38)
    #expect(attachAll(1001) == 12)
    #expect(attachAll(1002) == 4)
    for user in UInt32(2000)..<2010 { _ = attachAll(user) }
    #expect(attach(3000) == nil)
    #expect(attachAll(0) == 8)
  }

  @Test func `users that alternate get equal shares`() {
    var counts: [UInt32: Int] = [1000: 0, 1001: 0]
    var isGreedy = true
    while isGreedy {
      isGreedy = false
      for user in UInt32(1000)...1001 where attach(user) != nil {
        counts[user]! += 1
        isGreedy = true
      }
    }
    #expect(counts[1000] == 22 && counts[1001] == 22 || counts[1000] == 23 && counts[1001] == 22, "\(counts)")
  }

  @Test func `the refusal of a connection states the number of connections that each user has`() {
    _ = attachAll(1000)
    let own = String(decoding: house.boxes[0].clients.connectionRefusal(1000), as: UTF8.self)
    #expect(own == "64 connections are shared: user 1000 has 38; end one of these applications first")
    let other = String(decoding: house.boxes[0].clients.connectionRefusal(4294967295), as: UTF8.self)
    #expect(
      other
        == "64 connections are shared: user 4294967295 has 0, user 1000 has 38; end one of these applications first")
  }

  @Test func `a user with its maximum of services leaves some to others`() {
    func advertise(_ number: Int) -> LocalRequest.Body { .advertise(type: bytes("t-\(number)"), info: []) }
    #expect(takeAll(1000, advertise) == 10)
    #expect(takeAll(1001, advertise) == 3)
    #expect(takeAll(0, advertise) == 3)
  }

  @Test func `a service with much discovery info leaves room for other users' services`() {
    let info = [[UInt8]](repeating: bytes("k=" + String(repeating: "v", count: 98)), count: 10)
    let greedy = Application(house, 0), other = Application(house, 0, user: 1001)
    let service = greedy.ask(.advertise(type: chat, info: info))
    #expect(greedy.read(128).first?[5] == LocalOutcome.done.rawValue)
    #expect(greedy.outcome(.advertise(type: bytes("more"), info: [info[0]])) == .full)
    #expect(other.outcome(.advertise(type: bytes("other"), info: [info[0]])) == .done)
    // An update to fewer bytes is accepted, even if other users have advertised services since.
    #expect(greedy.outcome(.advertise(type: chat, info: [info[0]]), number: service) == .done)
    #expect(greedy.outcome(.advertise(type: bytes("more"), info: [info[0]])) == .done)
  }

  @Test func `a user with its maximum of sessions leaves some to others`() {
    func open(_: Int) -> LocalRequest.Body { .open(type: chat, SessionRules()) }
    #expect(takeAll(1000, open) == 18)
    #expect(takeAll(1001, open) == 6)
    #expect(takeAll(0, open) == 8)
  }

  @Test func `the refusal of a session states the number of sessions that the user has`() {
    _ = takeAll(1000) { _ in .open(type: chat, SessionRules()) }
    let client = Application(house, 0, user: 1000, name: "last")
    _ = client.ask(.open(type: chat, SessionRules()))
    let text = client.read(128).first.map { String(decoding: $0[7...], as: UTF8.self) }
    #expect(text == "32 sessions are shared: user 1000 has 18; leave one of these sessions first")
  }

  @Test func `ended sessions no longer count for the user`() {
    let client = Application(house, 0)
    var sessions: [UInt32] = []
    for _ in 0..<16 { sessions.append(client.ask(.open(type: chat, SessionRules()))) }
    let second = Application(house, 0, name: "second")
    #expect(second.outcome(.open(type: chat, SessionRules())) == .done)
    #expect(second.outcome(.open(type: chat, SessionRules())) == .done)
    #expect(second.outcome(.open(type: chat, SessionRules())) == .full)
    _ = client.ask(.leave(session: sessions[0], text: []))
    #expect(second.outcome(.open(type: chat, SessionRules())) == .done)
  }

  @Test func `a client that sends no hello is due to be disconnected after 5 s`() {
    let clients = house.boxes[0].clients!
    let silent = attach(1000)!
    _ = Application(house, 0)
    #expect(clients.nextDeadline == house.now + LocalLimits.helloTime)
    #expect(clients.nextOverdue(now: house.now + .milliseconds(4_999)) == nil)
    let late = house.now + .seconds(5)
    #expect(clients.nextOverdue(now: late) == silent && clients.isOverdue(silent, now: late))
    clients.detach(silent, now: late)
    #expect(clients.nextOverdue(now: late) == nil && clients.nextDeadline == .never)
  }
}

/// The slots for long packets, which all clients of a box share.
@Suite struct LongPacketTests {
  private let start = Instant.zero + .seconds(100)

  private func ask(_ slots: inout LongPacketSlots, _ client: Int, _ user: UInt32, at now: Instant) -> Int? {
    slots.ask(client, user: user, isOperator: user == 0, now: now)
    return slots.next(now: now)
  }

  @Test func `one user holds two of four slots, another user the third, the operator the last`() {
    var slots = LongPacketSlots()
    #expect((0..<4).map { ask(&slots, $0, 1000, at: start) } == [0, 1, nil, nil])
    #expect(ask(&slots, 4, 1001, at: start) == 4)
    #expect(ask(&slots, 5, 1001, at: start) == nil)
    #expect(ask(&slots, 6, 0, at: start) == 6)
  }

  @Test func `a free slot goes to the user with the fewest, then to the client that has waited longest`() {
    var slots = LongPacketSlots()
    for client in 0..<4 { _ = ask(&slots, client, 1000, at: start) }
    _ = ask(&slots, 4, 1001, at: start)
    #expect(ask(&slots, 5, 1002, at: start) == nil)
    slots.leave(0)
    #expect(slots.next(now: start) == 5)
    slots.leave(1)
    #expect(slots.next(now: start) == 2)
    slots.leave(4)
    slots.leave(5)
    #expect(slots.next(now: start) == 3)
  }

  @Test func `a client loses its slot for a long packet after 10 s if another one waits`() {
    var slots = LongPacketSlots()
    _ = ask(&slots, 0, 1000, at: start)
    _ = ask(&slots, 1, 1000, at: start + .seconds(5))
    #expect(slots.nextDeadline == .never)
    _ = ask(&slots, 2, 1000, at: start + .seconds(60))
    #expect(slots.nextDeadline == start + .seconds(10) && slots.overdue(now: start + .seconds(9)) == nil)
    #expect(slots.overdue(now: start + .seconds(60)) == 0)
    slots.leave(0)
    #expect(slots.next(now: start + .seconds(60)) == 2)
    #expect(slots.nextDeadline == .never)
  }
}
