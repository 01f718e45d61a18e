import LocalAPI
import Primitives
import Session
import SessionSupport
import Testing
import TestSupport

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let chat = bytes("chat")

/// Applications on separate boxes, all connected in one session. `sessions` contains the number by which each
/// application refers to the session.
private func joined(_ count: Int) -> (house: House, applications: [Application], sessions: [UInt32]) {
  let house = House(count)
  let applications = (0..<count).map { Application(house, $0) }
  let sessions = applications.map { application in
    _ = application.ask(.advertise(type: chat, info: []))
    return application.open("chat")
  }
  for index in 1..<count {
    _ = applications[0].ask(
      .invite(session: sessions[0], applications[index].address("chat"), milliseconds: 0, context: []))
    let invited = applications[index].invitation()
    _ = applications[index].ask(.answer(invitation: invited, into: sessions[index], text: []))
    house.run(seconds: 1)
  }
  for application in applications { _ = application.read() }
  return (house, applications, sessions)
}

@Suite struct DaemonClientTests {
  @Test func `the first packet is hello and is answered with version and limits`() {
    let house = House(1)
    let index = house.boxes[0].clients.attach(user: 1, isOperator: false, groups: [], now: house.now)!
    func ask(_ request: LocalRequest) -> [UInt8]? {
      let packet = Array(request.packet.dropFirst(4))
      house.boxes[0].clients.receive(packet.span.bytes, from: index, now: house.now)
      return house.boxes[0].clients.nextPacket(for: index, now: house.now).map { Array($0.dropFirst(4)) }
    }
    #expect(ask(LocalRequest(1, .browse(type: chat)))?[5] == LocalOutcome.invalid.rawValue)
    #expect(ask(LocalRequest(2, .hello(least: 2, most: 9, instance: [])))?[5] == LocalOutcome.unsupported.rawValue)
    let welcome = ask(LocalRequest(3, .hello(least: 1, most: 9, instance: [])))
    #expect(welcome?[0] == 129 && welcome?[6] == 1)
    #expect(ask(LocalRequest(4, .hello(least: 1, most: 1, instance: [])))?[5] == LocalOutcome.invalid.rawValue)
  }

  @Test func `a message counts as less work than a request that may need a signature`() {
    let house = House(1)
    let application = Application(house, 0)
    func work(_ request: LocalRequest.Body) -> Int {
      let packet = Array(LocalRequest(9, request).packet.dropFirst(4))
      return house.boxes[0].clients.receive(packet.span.bytes, from: application.clientIndex, now: house.now)
    }
    let to = [application.address("chat"), application.address("other")]
    #expect(work(.send(session: 7, .interactive, to: to, data: [1])) == 2)
    #expect(work(.advertise(type: chat, info: [])) == 32)
  }

  @Test func `a request of a later version is answered as unsupported`() {
    let house = House(1)
    let application = Application(house, 0)
    let packet: [UInt8] = [99, 0, 0, 0, 7, 1, 2, 3]
    house.boxes[0].clients.receive(packet.span.bytes, from: application.clientIndex, now: house.now)
    #expect(application.next() == Array(LocalEvent.done(request: 7, .unsupported, text: []).packet.dropFirst(4)))
  }

  @Test func `a browse reports the present services, then a marker, then changes and losses`() {
    let house = House(2)
    let seeker = Application(house, 0), host = Application(house, 1)
    let service = host.ask(.advertise(type: chat, info: [bytes("a=1")]))
    _ = host.ask(.advertise(type: bytes("other"), info: []))
    let browse = seeker.ask(.browse(type: chat))
    let peer = LocalPeer(name: bytes("box 1"), hops: 1, isVerified: false)
    func offer(_ info: [[UInt8]]) -> [UInt8] {
      let services = [Service(endpoint: host.address("chat").endpoint, type: chat, info: info)]
      return Array(
        LocalEvent.services(browse: browse, reference: 0, host.box.sessions.local, peer, services).packet.dropFirst(4))
    }
    let told = seeker.read()
    #expect(told.contains(offer([bytes("a=1")])))
    #expect(told.last == Array(LocalEvent.allTold(browse: browse).packet.dropFirst(4)))
    _ = host.ask(.advertise(type: chat, info: [bytes("a=2")]), number: service)
    #expect(seeker.read() == [offer([bytes("a=2")])])
    _ = host.ask(.close(service))
    #expect(
      seeker.read().map { [$0[0], $0[$0.count - 1]] } == [[130, 0]], "the reference, with no services")
  }

  @Test func `a browse shows the services of other clients on this box, but not the client's own`() {
    let house = House(1)
    let one = Application(house, 0, name: "one"), two = Application(house, 0, name: "two")
    for application in [one, two] { _ = application.ask(.advertise(type: chat, info: [])) }
    _ = one.read()
    let browse = one.ask(.browse(type: chat))
    let peer = LocalPeer(name: bytes("box 0"), hops: 0, isVerified: false)
    let services = [Service(endpoint: two.address("chat", name: "two").endpoint, type: chat)]
    let event = LocalEvent.services(browse: browse, reference: 0, one.box.sessions.local, peer, services)
    #expect(one.read(130) == [Array(event.packet.dropFirst(4))])
  }

  @Test func `a browse without a type shows all types that the client may use`() {
    let house = House(2, [LocalRestriction(type: bytes("closed"), group: 7)])
    let host = Application(house, 1, groups: [7])
    for type in ["chat", "other", "closed"] { _ = host.ask(.advertise(type: bytes(type), info: [])) }
    func shown(_ groups: [UInt32]) -> [[UInt8]] {
      let seeker = Application(house, 0, groups: groups, name: "in \(groups.count)")
      _ = seeker.ask(.browse(type: []))
      return seeker.read(130).flatMap { packet -> [[UInt8]] in
        guard case .services(_, _, _, _, let services) = try? LocalEvent(packet.span.bytes) else { return [] }
        return services.map { $0.type }
      }.sorted { $0.count < $1.count }
    }
    #expect(shown([]) == [bytes("chat"), bytes("other")])
    #expect(shown([7]) == [bytes("chat"), bytes("other"), bytes("closed")])
  }

  @Test func `an invitation reaches the service's client with its context, and both receive the outcome`() {
    let house = House(2)
    let inviter = Application(house, 0), invitee = Application(house, 1)
    let service = invitee.ask(.advertise(type: chat, info: []))
    let theirs = invitee.open("chat"), ours = inviter.open("chat")
    _ = invitee.read()
    let invitation = inviter.ask(
      .invite(session: ours, invitee.address("chat"), milliseconds: 9_000, context: bytes("come")))
    let invited = invitee.read(132)
    #expect(invited.count == 1)
    guard let asked = invited.first else { return }
    #expect(asked.word(1) == service)
    #expect(Array(asked.suffix(4)) == bytes("come"))
    let number = asked.word(5)
    let answer = invitee.ask(.answer(invitation: number, into: theirs, text: []))
    house.run(seconds: 2)
    let events = invitee.read()
    #expect(events.first == Array(LocalEvent.done(request: answer, .done, text: []).packet.dropFirst(4)))
    let connected = LocalEvent.invitationEnded(object: invitation, received: 0, .connected)
    #expect(inviter.read().contains(Array(connected.packet.dropFirst(4))))
    let ended = LocalEvent.invitationEnded(object: service, received: number, .connected)
    #expect(events.contains(Array(ended.packet.dropFirst(4))))
  }

  @Test func `a declined invitation has a reason, and one that was cancelled in time is never reported`() {
    let house = House(2)
    let inviter = Application(house, 0), invitee = Application(house, 1)
    _ = invitee.ask(.advertise(type: chat, info: []))
    let session = inviter.open("chat")
    func invite() -> UInt32 {
      inviter.ask(.invite(session: session, invitee.address("chat"), milliseconds: 0, context: []))
    }
    let declined = invite()
    let number = invitee.invitation()
    #expect(invitee.outcome(.answer(invitation: number, into: 0, text: bytes("no"))) == .done)
    let end = LocalEvent.invitationEnded(object: declined, received: 0, .declined(explanation: bytes("no")))
    #expect(inviter.read().contains(Array(end.packet.dropFirst(4))))
    let cancelled = invite()
    #expect(inviter.outcome(.cancel(invitation: cancelled)) == .done)
    #expect(invitee.read(132).isEmpty)
  }

  @Test func `a message to all members has a result for each member, followed by its answer`() {
    let (_, applications, sessions) = joined(3)
    let request = applications[0].ask(.send(session: sessions[0], .interactive, to: [], data: [7, 8]))
    var events = applications[0].read()
    #expect(events.popLast() == Array(LocalEvent.done(request: request, .done, text: []).packet.dropFirst(4)))
    let results = applications[1...].map {
      Array(LocalEvent.sent(request: request, to: $0.address("chat"), .delivered).packet.dropFirst(4))
    }
    #expect(events.count == 2 && results.allSatisfy { events.contains($0) })
    for index in 1..<3 {
      let message = LocalEvent.message(
        session: sessions[index], from: applications[0].address("chat"), isReliable: true, [7, 8])
      #expect(applications[index].read() == [Array(message.packet.dropFirst(4))])
    }
  }

  @Test func `a client receives no message beyond its window`() {
    let (_, applications, sessions) = joined(2)
    let reader = applications[1]
    // The reader leaves and joins again. The test grants the window of the reader's new session step by step.
    _ = reader.ask(.leave(session: sessions[1], text: []))
    _ = reader.read()
    let fresh = reader.ask(.open(type: chat, SessionRules()))
    _ = applications[0].ask(
      .invite(session: sessions[0], reader.address("chat"), milliseconds: 0, context: []))
    let invited = reader.invitation()
    _ = reader.ask(.answer(invitation: invited, into: fresh, text: []))
    reader.house.run(seconds: 2)
    _ = reader.read()
    for number in 0..<4 {
      _ = applications[0].ask(.send(session: sessions[0], .interactive, to: [], data: [UInt8(number)]))
    }
    #expect(reader.read(137).isEmpty)
    _ = reader.ask(.window(session: fresh, limit: 2 * 65))
    #expect(reader.read(137).map { $0.last } == [0, 1])
    _ = reader.ask(.window(session: fresh, limit: 4 * 65))
    #expect(reader.read(137).map { $0.last } == [2, 3])
  }

  @Test func `members connect before their messages and leave after them, with reason and text`() {
    let (house, applications, sessions) = joined(2)
    _ = applications[0].ask(.send(session: sessions[0], .interactive, to: [], data: [1]))
    _ = applications[0].ask(.leave(session: sessions[0], text: bytes("bye")))
    house.run(seconds: 1)
    let peer = LocalPeer(name: bytes("box 0"), hops: 1, isVerified: false)
    let left = LocalEvent.member(
      session: sessions[1], applications[0].address("chat"), .left(.wanted, text: bytes("bye")), peer)
    let events = applications[1].read()
    #expect(events.map { $0[0] } == [137, 136])
    #expect(events.last == Array(left.packet.dropFirst(4)))
    #expect(applications[0].read(135).count == 1)
  }

  @Test func `members on one box are connected with each other, too`() {
    let house = House(2)
    let inviter = Application(house, 0), one = Application(house, 1, name: "one"),
      two = Application(house, 1, name: "two")
    let session = inviter.open("chat")
    for (application, name) in [(one, "one"), (two, "two")] {
      _ = application.ask(.advertise(type: chat, info: []))
      let theirs = application.open("chat")
      _ = inviter.ask(
        .invite(session: session, application.address("chat", name: name), milliseconds: 0, context: []))
      let invited = application.invitation()
      _ = application.ask(.answer(invitation: invited, into: theirs, text: []))
      house.run(seconds: 1)
    }
    house.run(seconds: 15)
    for application in [one, two] {
      let states = application.read(136).map { $0[$0.count - 3] }
      #expect(states.filter { $0 == 1 }.count == 2)
    }
  }

  @Test func `a detached client counts as crashed for the others, and its services are lost`() {
    let (house, applications, sessions) = joined(2)
    _ = applications[1].ask(.browse(type: chat))
    _ = applications[1].read()
    applications[0].box.clients.detach(applications[0].clientIndex, now: house.now)
    house.run(seconds: 1)
    let peer = LocalPeer(name: bytes("box 0"), hops: 1, isVerified: false)
    let crashed = LocalEvent.member(
      session: sessions[1], applications[0].address("chat"), .left(.crashed, text: []), peer)
    let events = applications[1].read()
    #expect(events.contains(Array(crashed.packet.dropFirst(4))))
    #expect(events.contains { $0[0] == 130 })
  }

  @Test func `an application decides on members, and rejected members do not connect to it`() {
    let house = House(2)
    let judge = Application(house, 0), guest = Application(house, 1)
    let session = judge.ask(.open(type: chat, SessionRules(), decidesOnMembers: true))
    _ = judge.ask(.window(session: session, limit: .max))
    _ = guest.ask(.advertise(type: chat, info: []))
    let theirs = guest.open("chat")
    _ = judge.ask(.invite(session: session, guest.address("chat"), milliseconds: 0, context: []))
    _ = guest.ask(.answer(invitation: guest.invitation(), into: theirs, text: []))
    house.run(seconds: 3)
    let events = judge.read()
    let asked = events.filter { $0[0] == 144 }
    #expect(asked.count == 1 && asked[0].word(1) == session)
    #expect(Array(asked[0].suffix(7)) == [5] + bytes("box 1") + [0])
    #expect(!events.contains { $0[0] == 136 && $0[$0.count - 3] == 1 }, "not connected")
    #expect(judge.outcome(.decide(session: session, judge.address("chat"), accepts: true)) == .unknown)
    _ = judge.ask(.decide(session: session, guest.address("chat"), accepts: false))
    #expect(judge.read(136).last.map { $0[$0.count - 3] } == 3)
    _ = judge.ask(.send(session: session, .interactive, to: [guest.address("chat")], data: [1]))
    #expect(judge.read(138).map { $0[25] } == [LocalDelivery.notConnected.rawValue])
  }

  @Test func `two applications can connect by address without a service`() {
    let house = House(2)
    let first = Application(house, 0), second = Application(house, 1)
    let ours = first.open("chat"), theirs = second.open("chat")
    let waits = first.ask(.connect(session: ours, second.address("chat"), milliseconds: 0))
    #expect(first.outcome(.connect(session: ours, second.address("chat"), milliseconds: 0)) == .busy)
    house.run(seconds: 2)
    #expect(first.read(133).isEmpty)
    _ = second.ask(.connect(session: theirs, first.address("chat"), milliseconds: 0))
    house.run(seconds: 2)
    #expect(first.read(133).map { $0.word(1) } == [waits])
    #expect(second.read(133).map { $0[9] } == [0])
    let cancelled = first.ask(.connect(session: ours, second.address("other"), milliseconds: 0))
    _ = first.ask(.cancel(invitation: cancelled))
    #expect(first.read(133).map { $0[9] } == [3])
  }

  @Test func `only the founder of a session may eject members`() {
    let (house, applications, sessions) = joined(3)
    let second = applications[1].address("chat")
    #expect(applications[2].outcome(.eject(session: sessions[2], second, text: [])) == .notAllowed)
    #expect(applications[0].outcome(.eject(session: sessions[0], second, text: bytes("out"))) == .done)
    house.run(seconds: 1)
    let ended = applications[1].read(135)
    #expect(ended.map { $0[5] } == [1] && ended.map { Array($0.suffix(3)) } == [bytes("out")])
    #expect(applications[0].outcome(.eject(session: sessions[0], second, text: [])) == .unavailable)
  }
}
