import LocalAPI
import Primitives
import Session
import SessionSupport
import Testing
import TestSupport

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let chat = bytes("chat")

@Suite struct LocalLimitTests {
  @Test func `a daemon serves at most 64 clients, and 8 slots are reserved for the operator`() {
    let house = House(1)
    let clients = house.boxes[0].clients!
    func attach(_ user: UInt32) -> Int? {
      clients.attach(user: user, isOperator: user == 0, groups: [], now: house.now)
    }
    for number in UInt32(0)..<56 { #expect(attach(1000 + number) != nil) }
    #expect(attach(2000) == nil)
    for _ in 0..<8 { #expect(attach(0) != nil) }
    #expect(attach(0) == nil)
    clients.detach(7, now: house.now)
    #expect(attach(2000) == nil && attach(0) == 7)
  }

  @Test func `a client has 8 services, 8 browses and 16 sessions`() {
    let house = House(1)
    let application = Application(house, 0)
    for number in 0..<9 {
      let type = bytes("type-\(number)")
      #expect(application.outcome(.advertise(type: type, info: [])) == (number < 8 ? .done : .full))
      #expect(application.outcome(.browse(type: type)) == (number < 8 ? .done : .full))
    }
    for number in 0..<17 {
      #expect(application.outcome(.open(type: chat, SessionRules())) == (number < 16 ? .done : .full))
    }
  }

  @Test func `a number that is already in use is refused`() {
    let house = House(1)
    let application = Application(house, 0)
    #expect(application.outcome(.browse(type: chat), number: 9) == .done)
    #expect(application.outcome(.open(type: chat, SessionRules()), number: 9) == .inUse)
    #expect(application.outcome(.close(9), number: 10) == .done)
    #expect(application.outcome(.open(type: chat, SessionRules()), number: 9) == .done)
    #expect(application.outcome(.browse(type: chat), number: 0) == .invalid)
  }

  @Test func `a service and its sessions belong to one client`() {
    let house = House(1)
    let one = Application(house, 0), two = Application(house, 0), other = Application(house, 0, user: 1001)
    #expect(one.outcome(.advertise(type: chat, info: [])) == .done)
    #expect(two.outcome(.open(type: chat, SessionRules())) == .inUse)
    #expect(other.outcome(.advertise(type: chat, info: [])) == .done)
  }

  @Test func `a type reserved for a group is refused to others`() {
    let house = House(1, [LocalRestriction(type: chat, group: 50)])
    let stranger = Application(house, 0, groups: [49]), member = Application(house, 0, user: 1001, groups: [49, 50])
    #expect(stranger.outcome(.browse(type: chat)) == .notAllowed)
    #expect(stranger.outcome(.advertise(type: chat, info: [])) == .notAllowed)
    #expect(stranger.outcome(.open(type: chat, SessionRules())) == .notAllowed)
    #expect(stranger.outcome(.browse(type: bytes("other"))) == .done)
    #expect(member.outcome(.advertise(type: chat, info: [])) == .done)
  }

  @Test func `a service type that RFC 6335 does not allow is refused`() {
    let application = Application(House(1), 0)
    for type in ["a--b", "Upper", "-", "1", "sixteen-letters-"] {
      #expect(application.outcome(.browse(type: bytes(type))) == .invalid)
    }
  }

  @Test func `requests of a client with many unread answers are not read`() {
    let house = House(1)
    let application = Application(house, 0)
    var count = 0
    while house.boxes[0].clients.isReading(application.clientIndex), count < 10_000 {
      _ = application.ask(.cancel(invitation: 1))
      count += 1
    }
    #expect(count < 1_000)
    _ = application.read()
    #expect(house.boxes[0].clients.isReading(application.clientIndex))
  }

  @Test func `unread states of one object are merged`() {
    let house = House(2)
    let seeker = Application(house, 0), host = Application(house, 1)
    _ = seeker.ask(.browse(type: chat))
    let service = host.ask(.advertise(type: chat, info: []))
    for number in 0..<1_000 {
      _ = host.ask(.advertise(type: chat, info: [bytes("n=\(number)")]), number: service)
      _ = host.read()
    }
    let services = seeker.read(130)
    #expect(services.count == 1)
    #expect(services.first.map { Array($0.suffix(5)) } == bytes("n=999"))
  }
}

/// A client that has stopped reading, beside clients that read.
@Suite struct LocalStalledClientTests {
  /// Three clients in one session. The last client of the session reads nothing.
  private func stalled() -> (house: House, applications: [Application], sessions: [UInt32]) {
    let house = House(3)
    let applications = (0..<3).map { Application(house, $0) }
    let sessions = applications.map { application in
      _ = application.ask(.advertise(type: chat, info: []))
      return application.open("chat")
    }
    for index in 1..<3 {
      _ = applications[0].ask(
        .invite(session: sessions[0], applications[index].address("chat"), milliseconds: 0, context: []))
      let invited = applications[index].invitation()
      _ = applications[index].ask(
        .answer(invitation: invited, into: sessions[index], text: []))
      house.run(seconds: 1)
    }
    for application in applications { _ = application.read() }
    return (house, applications, sessions)
  }

  @Test func `a send to a stalled member reports no room, and other members continue`() {
    let (house, applications, sessions) = stalled()
    let data = [UInt8](repeating: 1, count: 10_000)
    var results: [UInt8: Int] = [:]
    for _ in 0..<40 {
      _ = applications[0].ask(.send(session: sessions[0], .interactive, to: [], data: data))
      for event in applications[0].read(138) { results[event[25], default: 0] += 1 }
      #expect(applications[1].read(137).count == 1)
      house.run(seconds: 1)
    }
    // Sixteen messages fill the client's share of 96 KiB and one reservation, which is space for one message beyond the
    // share. A client that does not read gets no second reservation.
    #expect(results == [LocalDelivery.delivered.rawValue: 40 + 16, LocalDelivery.noRoom.rawValue: 24])
    #expect(applications[2].read(137).count == 16)
    house.run(seconds: 1)
    #expect(applications[0].read(139).count == 1, "it may be tried again")
  }

  @Test func `a sender that found no room is notified when room is free`() {
    let (house, applications, sessions) = stalled()
    house.hasRoom = false
    _ = applications[0].ask(.send(session: sessions[0], .interactive, to: [], data: [1]))
    #expect(applications[0].read(139).isEmpty)
    house.hasRoom = true
    house.run(seconds: 2)
    #expect(applications[0].read(139).count == 2)
  }

  @Test func `messages reported as delivered to a slow reader are read, however many clients send`() {
    let house = House(1)
    let reader = Application(house, 0, user: 0, isOperator: true, name: "reader")
    _ = reader.ask(.advertise(type: chat, info: []))
    let rules = SessionRules(membersMax: 16)
    let theirs = reader.open("chat", rules)
    var talkers: [(application: Application, session: UInt32)] = []
    for number in 0..<12 {
      let talker = Application(house, 0, user: 0, isOperator: true, name: "talker \(number)")
      let session = talker.open("chat", rules)
      join(talker, "talker \(number)", session, to: reader, theirs)
      talkers.append((talker, session))
    }
    let data = [UInt8](repeating: 1, count: 10_000)
    let to = [reader.address("chat", name: "reader", user: 0)]
    var results: [UInt8: Int] = [:]
    func talk() {
      for (talker, session) in talkers {
        _ = talker.ask(.send(session: session, .interactive, to: to, data: data))
        for event in talker.read(138) { results[event[25], default: 0] += 1 }
      }
      house.run(seconds: 1)
      let (shares, loans) = house.boxes[0].sessions.roomGranted
      #expect(shares <= SessionLimits.sharePoolBytes && loans <= SessionLimits.loanPoolBytes)
    }
    for _ in 0..<20 { talk() }
    let delivered = results[LocalDelivery.delivered.rawValue] ?? 0
    #expect(delivered > 80 && results[LocalDelivery.noRoom.rawValue] == 240 - delivered, "\(results)")
    // There is still space for messages of maximum length to clients that read.
    let one = Application(house, 0, user: 0, isOperator: true, name: "one")
    let two = Application(house, 0, user: 0, isOperator: true, name: "two")
    let oneSession = one.open("chat", SessionRules(membersMax: 64))
    let twoSession = two.open("chat", SessionRules(membersMax: 64))
    _ = one.ask(.advertise(type: chat, info: []))
    join(two, "two", twoSession, to: one, oneSession)
    var counts = [0, 0]
    for _ in 0..<10 {
      let long = [UInt8](repeating: 1, count: 65_000)
      _ = one.ask(.send(session: oneSession, .interactive, to: [two.address("chat", name: "two", user: 0)], data: long))
      for event in one.read(138) where event[25] == 0 { counts[0] += 1 }
      house.run(seconds: 1)
      counts[1] += two.read(137).count
    }
    #expect(counts[0] >= 5 && counts[0] == counts[1], "\(counts)")
    #expect(reader.read(137).count == delivered)
    // The senders have credit again once the reader reads.
    results = [:]
    talk()
    talk()
    #expect((results[LocalDelivery.delivered.rawValue] ?? 0) >= 12)
    #expect(reader.read(137).count == results[LocalDelivery.delivered.rawValue])
  }

  @Test func `a message being sent to a client counts until it is written completely`() {
    let (house, applications, sessions) = stalled()
    _ = applications[0].ask(
      .send(session: sessions[0], .interactive, to: [], data: [UInt8](repeating: 1, count: 65_000)))
    let sessionsThere = house.boxes[2].sessions
    var isMessage = false
    while !isMessage, let event = applications[2].next() { isMessage = event[0] == 137 }
    // The client leaves while the event with the message is partly written. So only this message still occupies space.
    _ = applications[2].ask(.leave(session: sessions[2], text: []))
    #expect(sessionsThere.roomGranted.shares + sessionsThere.roomGranted.loans == 65_192)
    _ = applications[2].read()
    #expect(sessionsThere.roomGranted.shares + sessionsThere.roomGranted.loans == 0)
  }

  /// Adds the client `guest` to a session of the client `host`.
  private func join(
    _ guest: Application, _ name: String, _ session: UInt32, to host: Application, _ hosts: UInt32
  ) {
    _ = guest.ask(.advertise(type: chat, info: []))
    _ = host.ask(.invite(session: hosts, guest.address("chat", name: name, user: 0), milliseconds: 0, context: []))
    let invited = guest.invitation()
    _ = guest.ask(.answer(invitation: invited, into: session, text: []))
    guest.house.run(seconds: 1)
    _ = host.read()
    _ = guest.read()
  }
}
