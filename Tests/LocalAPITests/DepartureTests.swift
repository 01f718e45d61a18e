import LocalAPI
import Primitives
import Session
import Testing
import TestSupport

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let chat = bytes("chat")

/// The departures of applications that leave, or whose connection ends. A signature takes as long as other events are
/// allowed to wait.
@Suite struct DepartureTests {
  /// An application on one box and a guest on another, which are together in `count` sessions.
  private func together(_ count: Int, isOperator: Bool = false) -> (House, host: Application, guest: Application) {
    let house = House(2)
    let host = Application(house, 0, isOperator: isOperator), guest = Application(house, 1)
    _ = guest.ask(.advertise(type: chat, info: []))
    for _ in 0..<count {
      let session = host.open("chat"), theirs = guest.open("chat")
      invite(guest, into: session, theirs, by: host)
    }
    _ = guest.read()
    return (house, host, guest)
  }

  private func invite(_ guest: Application, into session: UInt32, _ theirs: UInt32, by host: Application) {
    _ = host.ask(.invite(session: session, guest.address("chat"), milliseconds: 0, context: []))
    _ = guest.ask(.answer(invitation: guest.invitation(), into: theirs, text: []))
    host.house.run(seconds: 1)
  }

  /// Makes passes of the event loop of box 0, a millisecond apart, until nothing is due. Returns the number of
  /// signatures in each pass.
  private func pass(_ house: House, atMost count: Int = 100) -> [UInt64] {
    let box = house.boxes[0]
    var made: [UInt64] = []
    func isDue() -> Bool {
      // This call also drops the deadlines of hellos that have arrived.
      box.clients.nextOverdue(now: house.now) == nil && box.clients.nextDeadline <= house.now
    }
    while made.count < count && isDue() {
      let before = box.sessions.signaturesMade
      box.clients.handleTimeouts(now: house.now)
      house.settle()
      made.append(box.sessions.signaturesMade - before)
      house.now = house.now + .milliseconds(1)
    }
    return made
  }

  private func departures(_ application: Application) -> Int {
    application.read(136).count { $0[$0.count - 3] == 4 }
  }

  @Test func `an ended client leaves its sessions with one signature per wake-up, even the operator's`() {
    for isOperator in [false, true] {
      let (house, host, guest) = together(16, isOperator: isOperator)
      let before = house.boxes[0].sessions.signaturesMade
      house.boxes[0].clients.detach(host.clientIndex, now: house.now)
      house.settle()
      #expect(house.boxes[0].sessions.signaturesMade == before)
      #expect(pass(house) == [UInt64](repeating: 1, count: 16))
      #expect(departures(guest) == 16)
      #expect(house.boxes[0].clients.nextDeadline == .never)
    }
  }

  @Test func `a wake-up signs either a departure or a request`() {
    let (house, host, _) = together(2)
    let clients = house.boxes[0].clients!
    let other = Application(house, 0, user: 1001, name: "other")
    clients.detach(host.clientIndex, now: house.now)
    #expect(other.outcome(.open(type: chat, SessionRules())) == .done)
    #expect(pass(house, atMost: 1) == [0])
    let packet = LocalRequest(9, .open(type: chat, SessionRules())).packet
    func turn() -> SignatureTurns.Turn {
      clients.turn(of: packet.span.bytes.extracting(4...), from: other.clientIndex, now: house.now)
    }
    #expect(turn() == .now)
    clients.handleTimeouts(now: house.now)
    #expect(turn() == .nextWakeUp)
  }

  @Test func `departures of a user at its signature rate are delayed, but none is lost`() {
    let (house, host, guest) = together(16)
    let second = Application(house, 0, name: "second")
    for _ in 0..<40 {
      let session = second.ask(.open(type: bytes("alone"), SessionRules()))
      #expect(second.outcome(.leave(session: session, text: [])) == .done)
    }
    house.boxes[0].clients.detach(host.clientIndex, now: house.now)
    var made: UInt64 = 0
    for _ in 0..<100 {
      made += pass(house).reduce(0, +)
      house.now = house.now + .milliseconds(1)
    }
    #expect(made <= 4, "\(made) in the first 100 ms")
    house.run(seconds: 2)
    #expect(departures(guest) == 16)
  }

  @Test func `slots of an ended client stay charged to its user until its sessions have been left`() {
    let (house, host, _) = together(16)
    let clients = house.boxes[0].clients!
    clients.detach(host.clientIndex, now: house.now)
    let second = Application(house, 0, name: "second")
    func open() -> LocalOutcome? { second.outcome(.open(type: bytes("more"), SessionRules())) }
    #expect([open(), open(), open()] == [.done, .done, .full])
    #expect(String(decoding: clients.connectionRefusal(1000), as: UTF8.self).contains("user 1000 has 2;"))
    house.now = house.now + .milliseconds(1)
    _ = pass(house)
    #expect(open() == .done)
    #expect(String(decoding: clients.connectionRefusal(1000), as: UTF8.self).contains("user 1000 has 1;"))
  }

  @Test func `an address in several merged sessions leaves each of them in a separate wake-up`() {
    for leaves in [true, false] {
      let house = House(3)
      let host = Application(house, 0), one = Application(house, 1), two = Application(house, 2)
      for guest in [one, two] { _ = guest.ask(.advertise(type: chat, info: [])) }
      let sessions = [host.open("chat"), host.open("chat")]
      let first = one.open("chat"), second = two.open("chat")
      invite(one, into: sessions[0], first, by: host)
      invite(two, into: sessions[1], second, by: host)
      // The two guests merge the sessions, so that the host is in the merged session by two tickets.
      invite(two, into: first, second, by: one)
      house.run(seconds: 3)
      for guest in [one, two] { _ = guest.read() }
      let before = house.boxes[0].sessions.signaturesMade
      if leaves {
        #expect(host.outcome(.leave(session: sessions[0], text: [])) == .done)
        #expect(house.boxes[0].sessions.signaturesMade == before + 1)
        #expect(departures(one) == 0 && departures(two) == 0)
        #expect(pass(house) == [0, 1])
      } else {
        house.boxes[0].clients.detach(host.clientIndex, now: house.now)
        #expect(pass(house) == [1, 1])
      }
      house.run(seconds: 1)
      #expect(departures(one) == 1 && departures(two) == 1)
    }
  }
}
