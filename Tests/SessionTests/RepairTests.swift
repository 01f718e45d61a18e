import Primitives
import Testing

@testable import Session
@testable import SessionStories

/// Failures that random scenarios have found. Each test reproduces one failure step by step.
@Suite struct RepairTests {
  private func knows(_ hall: Hall, _ number: Int, _ session: SessionHandle, _ other: Int) -> Bool {
    hall.stations[number].sessions.table(of: session)?.isJoined(hall.stations[other].address) == true
  }

  @Test func `a lost snapshot of the table is sent again`() {
    let hall = Hall(3)
    let sessions = (0..<3).map { hall.open($0) }
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.stations[1].island = 1
    hall.run(seconds: 1)
    hall.join(2, into: sessions[2], by: 0, sessions[0])
    hall.run(seconds: 1)
    hall.crash(2)
    hall.stations[1].island = 0
    // The first table message to station 1 is lost, and its sender is notified of the loss.
    var lost: SessionOutput?
    _ = hall.run(upTo: 5) {
      guard
        let index = hall.letters.firstIndex(where: { $0.output.kind == .table && $0.to.number == 1 && !$0.isDelivered })
      else { return false }
      lost = hall.letters.remove(at: index).output
      return true
    }
    #expect(lost != nil)
    if let lost { hall.stations[0].sessions.completed(lost.tag, isDelivered: false, now: hall.now) }
    #expect(hall.run(upTo: 12) { knows(hall, 1, sessions[1], 2) } != nil)
  }

  @Test func `a former member out of reach occupies no slot for questions`() throws {
    let (hall, sessions) = joined(2)
    hall.run(seconds: 1)
    try hall.stations[1].sessions.leave(sessions[1], now: hall.now)
    hall.settle()
    #expect(hall.run(upTo: 5) { hall.view(0, sessions[0]) == [0] } != nil)
    let session = try #require(hall.stations[0].sessions.session(sessions[0]))
    #expect(session.strangers.map(\.wish) == [.ask])
    hall.crash(1)
    hall.run(seconds: 10)
    #expect(session.strangers.isEmpty)
  }

  @Test func `a restarted node ends its unknown former membership`() {
    let (hall, sessions) = joined(3)
    hall.run(seconds: 1)
    hall.crash(1)
    hall.run(seconds: 5)
    hall.start(1)
    let ended = SessionEvent.member(sessions[0], hall.stations[1].address, .left(.crashed, text: []))
    #expect(hall.run(upTo: 1) { hall.stations[0].events.contains(ended) } != nil)
    hall.run(seconds: 30)
    #expect([0, 2].allSatisfy { !knows(hall, $0, sessions[$0], 1) && hall.view($0, sessions[$0]) == [0, 2] })
    // Afterwards no more messages are sent about this member.
    #expect(hall.letters.isEmpty)
  }

  @Test func `the end of a ticket that was never accepted is not signed`() throws {
    let (hall, sessions) = joined(2)
    hall.run(seconds: 1)
    let table = try #require(hall.stations[0].sessions.table(of: sessions[0]))
    let address = hall.stations[1].address
    hall.crash(1)
    hall.run(seconds: 5)
    hall.start(1)
    // A malicious member presents a later version of the member's ticket, which the member never signed. The malicious
    // member cannot complete a ticket of that version.
    let node = hall.stations[1].sessions
    let meet = MeetMessage(
      session: table.id, from: 1, to: address.endpoint, number: 1, echo: 0, digest: table.digest, window: 1)
    var shown = table.entries
    for index in shown.records.indices where shown.records[index].address == address {
      shown.records[index].ticket.version += 1
    }
    let whole = TableMessage(
      session: table.id, from: 1, to: address.endpoint, asks: false, digest: table.digest, entries: shown)
    func next() throws -> [TableMessage] {
      var told: [TableMessage] = []
      while let output = node.nextOutput(now: hall.now, canSend: { _, _, _ in true }) {
        told.append(try TableMessage(output.bytes.span.bytes, hall.stations[1].cryptography))
      }
      return told
    }
    try node.receive(SessionKind.meet.rawValue, meet.bytes.span.bytes, from: hall.stations[0].id, now: hall.now)
    #expect(try next().map(\.asks) == [true])
    try node.receive(SessionKind.table.rawValue, whole.bytes.span.bytes, from: hall.stations[0].id, now: hall.now)
    #expect(try next() == [])
    var right = whole
    right.entries = table.entries
    try node.receive(SessionKind.table.rawValue, right.bytes.span.bytes, from: hall.stations[0].id, now: hall.now)
    #expect(try next().map { $0.entries?.records.map(\.departure?.reason) } == [[.crashed]])
    // The same table arrives again without a request, so the node signs nothing.
    try node.receive(SessionKind.table.rawValue, right.bytes.span.bytes, from: hall.stations[0].id, now: hall.now)
    #expect(try next() == [])
  }

  @Test func `a node that still regards a former member as present is asked for its table`() throws {
    let hall = Hall(3)
    let first = hall.open(0), second = hall.open(1)
    hall.join(1, into: second, by: 0, first)
    hall.run(seconds: 1)
    let node = hall.stations[1].sessions
    let table = try #require(node.table(of: second))
    try node.leave(second, now: hall.now)
    let meet = MeetMessage(
      session: table.id, from: 1, to: hall.stations[1].address.endpoint, number: 1, echo: 0, digest: table.digest,
      window: 1)
    try node.receive(SessionKind.meet.rawValue, meet.bytes.span.bytes, from: hall.stations[2].id, now: hall.now)
    var asked = 0
    while let output = node.nextOutput(now: hall.now, canSend: { _, _, _ in true }) {
      guard output.to == hall.stations[2].id, output.kind == .table else { continue }
      if try TableMessage(output.bytes.span.bytes, hall.stations[1].cryptography).asks { asked += 1 }
    }
    #expect(asked == 1)
  }

  @Test func `an application whose membership another node with its key has ended is notified of the end`() throws {
    let (hall, sessions) = joined(2)
    hall.run(seconds: 1)
    let node = hall.stations[1].sessions
    let table = try #require(node.table(of: sessions[1]))
    let record = try #require(table.records(of: hall.stations[1].address).first { $0.isJoined })
    var shown = table.entries(about: hall.stations[1].address)
    shown.records = [try #require(node.endOfStale(record))]
    let message = TableMessage(
      session: table.id, from: hall.stations[1].address.endpoint, to: hall.stations[0].address.endpoint, asks: false,
      digest: table.digest, entries: shown)
    try hall.stations[0].sessions.receive(
      SessionKind.table.rawValue, message.bytes.span.bytes, from: hall.stations[1].id, now: hall.now)
    #expect(hall.run(upTo: 5) { hall.stations[1].events.contains(.ended(sessions[1], .left)) } != nil)
    #expect(hall.view(0, sessions[0]) == [0])
  }

  /// A member may learn of a ticket of an address that has left and never knew this ticket: two sessions were merged.
  /// The member goes on as before, so it sends no meet.
  @Test func `a table that lists an address that has left is answered with a request`() throws {
    let (hall, sessions) = joined(2)
    hall.run(seconds: 1)
    let node = hall.stations[1].sessions
    let table = try #require(node.table(of: sessions[1]))
    try node.leave(sessions[1], now: hall.now)
    func requests(after entries: TableEntries?) throws -> Int {
      let message = TableMessage(
        session: table.id, from: hall.stations[0].address.endpoint, to: hall.stations[1].address.endpoint, asks: false,
        digest: TableDigest(InlineArray(repeating: 1)), entries: entries)
      try node.receive(
        SessionKind.table.rawValue, message.bytes.span.bytes, from: hall.stations[0].id, now: hall.now)
      var asked = 0
      while let output = node.nextOutput(now: hall.now, canSend: { _, _, _ in true }) {
        guard output.kind == .table else { continue }
        node.completed(output.tag, isDelivered: true, now: hall.now)
        if try TableMessage(output.bytes.span.bytes, hall.stations[1].cryptography).asks { asked += 1 }
      }
      return asked
    }
    // The departure notice is still on its way.
    #expect(try requests(after: table.entries) == 0)
    #expect(try requests(after: table.entries(about: hall.stations[0].address)) == 0)
    #expect(try requests(after: table.entries) == 1)
    hall.run(seconds: 11)
    #expect(try requests(after: nil) == 1)
    #expect(try requests(after: nil) == 0)
  }

  @Test func `a request for the end of a membership does not end it`() throws {
    let (hall, sessions) = joined(2)
    hall.run(seconds: 1)
    let table = try #require(hall.stations[1].sessions.table(of: sessions[1]))
    let from = hall.stations[1].address.endpoint, to = hall.stations[0].address.endpoint
    let other = SessionID(high: 1, low: 1)
    let meet = MeetMessage(
      session: other, from: from, to: to, number: 1, echo: 0, digest: table.digest, window: 1)
    let whole = TableMessage(
      session: other, from: from, to: to, asks: false, digest: table.digest, entries: table.entries)
    for (kind, bytes) in [(SessionKind.meet, meet.bytes), (.table, whole.bytes)] {
      try hall.stations[0].sessions.receive(
        kind.rawValue, bytes.span.bytes, from: hall.stations[1].address.node, now: hall.now)
      hall.settle()
      hall.run(seconds: 1)
    }
    #expect(hall.view(0, sessions[0]) == [0, 1] && hall.view(1, sessions[1]) == [0, 1])
  }

  @Test func `a departure is repeated to a member that has not received it`() throws {
    let (hall, sessions) = joined(2)
    hall.run(seconds: 1)
    try hall.stations[0].sessions.leave(sessions[0], now: hall.now)
    hall.settle()
    // The table message with the departure is lost on its way to station 1.
    var lost: SessionOutput?
    _ = hall.run(upTo: 5) {
      let index = hall.letters.firstIndex { $0.output.kind == .table && $0.to.number == 1 && !$0.isDelivered }
      guard let index else { return false }
      lost = hall.letters.remove(at: index).output
      return true
    }
    let farewell = try #require(lost)
    hall.stations[0].sessions.completed(farewell.tag, isDelivered: false, now: hall.now)
    #expect(hall.run(upTo: 5) { hall.view(1, sessions[1]) == [1] } != nil)
  }

  @Test func `a handshake message that had no effect is repeated while the other end continues`() {
    let hall = Hall(2)
    let sessions = (0..<2).map { hall.open($0) }
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.run(seconds: 1)
    hall.stations[1].island = 1
    hall.run(seconds: 5)
    hall.stations[1].island = 0
    var stolen: SessionOutput?
    _ = hall.run(upTo: 5) {
      let index = hall.letters.firstIndex {
        $0.output.kind == .meet && $0.to.number == 0 && !$0.isDelivered
          && (try? MeetMessage($0.output.bytes.span.bytes).echo) != 0
      }
      guard let index else { return false }
      stolen = hall.letters.remove(at: index).output
      return true
    }
    #expect(stolen != nil)
    if let stolen { hall.stations[1].sessions.completed(stolen.tag, isDelivered: true, now: hall.now) }
    hall.run(seconds: 1)
    #expect(hall.view(0, sessions[0]) == [0] && hall.view(1, sessions[1]) == [0, 1])
    #expect(hall.run(upTo: 12) { hall.view(0, sessions[0]) == [0, 1] } != nil)
    // After the handshake has completed, no more handshake messages are sent.
    hall.run(seconds: 30)
    #expect(!hall.letters.contains { $0.output.kind == .meet })
  }

  @Test func `a change of the table during a handshake reaches the other end`() throws {
    let (hall, sessions) = joined(3)
    hall.run(seconds: 1)
    hall.stations[1].island = 1
    hall.run(seconds: 5)
    hall.stations[1].island = 0
    hall.delay = (200, 200)
    let session = try #require(hall.stations[0].sessions.session(sessions[0]))
    let meets = hall.run(upTo: 5) {
      session.peers[0].phase == .connecting && session.peers[0].handshake.isNumberConfirmed
        && hall.letters.contains { $0.output.kind == .meet && $0.from.number == 0 }
    }
    #expect(meets != nil && session.peers[0].address == hall.stations[1].address)
    // Station 2 leaves, but only station 0 is notified. A malicious member could do the same on purpose.
    try hall.stations[2].sessions.leave(sessions[2], now: hall.now)
    hall.settle()
    for index in hall.letters.indices.reversed() where hall.letters[index].from.number == 2 {
      let letter = hall.letters.remove(at: index)
      if letter.to.number == 0 {
        try hall.stations[0].sessions.receive(
          letter.output.kind.rawValue, letter.output.bytes.span.bytes, from: hall.stations[2].id, now: hall.now)
      }
      hall.stations[2].sessions.completed(letter.output.tag, isDelivered: true, now: hall.now)
    }
    hall.crash(2)
    #expect(hall.view(0, sessions[0]) == [0])
    hall.run(seconds: 15)
    #expect(hall.view(0, sessions[0]) == [0, 1] && !knows(hall, 1, sessions[1], 2))
  }

  @Test func `a member ejected by an absent founder is notified by a member that it never met`() throws {
    let hall = Hall(3)
    let sessions = (0..<3).map { hall.open($0) }
    hall.join(2, into: sessions[2], by: 0, sessions[0])
    hall.stations[2].island = 1
    hall.run(seconds: 1)
    try hall.stations[0].sessions.eject(sessions[0], hall.stations[2].address, now: hall.now)
    hall.join(1, into: sessions[1], by: 0, sessions[0])
    hall.run(seconds: 1)
    try hall.stations[0].sessions.leave(sessions[0], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    hall.crash(0)
    hall.stations[2].island = 0
    hall.run(seconds: 2)
    #expect(hall.stations[2].events.contains(.ended(sessions[2], .ejected(text: []))))
  }

  @Test func `two handles of merged sessions become one with the records of both`() throws {
    let hall = Hall(3)
    let others = [hall.open(0), hall.open(1)]
    let older = hall.open(2), younger = hall.open(2)
    hall.join(2, into: younger, by: 0, others[0])
    hall.join(2, into: older, by: 1, others[1])
    hall.run(seconds: 1)
    hall.delay = (200, 200)
    _ = try hall.stations[0].sessions.invite(hall.stations[1].address, into: others[0], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    let asked = try #require(hall.invited(1))
    try hall.stations[1].sessions.accept(asked.handle, into: others[1], now: hall.now)
    hall.settle()
    // Station 2 first learns of the merge in the session with the younger handle.
    let ended = SessionEvent.ended(younger, .isSame(older))
    #expect(hall.run(upTo: 5) { hall.stations[2].events.contains(ended) } != nil)
    let merged = try #require(hall.stations[0].sessions.table(of: others[0]))
    #expect(hall.stations[2].sessions.table(of: older)?.origins == merged.origins)
    hall.run(seconds: 3)
    #expect(hall.view(2, older) == [0, 1, 2])
  }

  @Test func `the ejection by a founder that leaves at once reaches both members`() throws {
    let (hall, sessions) = joined(3)
    try hall.stations[0].sessions.eject(sessions[0], hall.stations[2].address, now: hall.now)
    try hall.stations[0].sessions.leave(sessions[0], now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.view(1, sessions[1]) == [1])
    #expect(hall.stations[2].events.contains(.ended(sessions[2], .ejected(text: []))))
  }

  @Test func `an ejected member notifies the others if the founder left before`() throws {
    let (hall, sessions) = joined(3)
    try hall.stations[0].sessions.eject(sessions[0], hall.stations[1].address, now: hall.now)
    hall.settle()
    hall.letters.removeAll { $0.to.number == 2 }
    let ended = SessionEvent.ended(sessions[1], .ejected(text: []))
    #expect(hall.run(upTo: 1) { hall.stations[1].events.contains(ended) } != nil)
    hall.crash(0)
    hall.run(seconds: 1)
    #expect(hall.view(2, sessions[2]) == [2])
    #expect(hall.stations[2].events.contains(.member(sessions[2], hall.stations[1].address, .ejected(text: []))))
  }

  @Test func `two members welcomed at once connect although the inviter left before it notified them`() throws {
    let hall = Hall(3)
    let sessions = (0..<3).map { hall.open($0) }
    hall.delay = (100, 100)
    for number in 1..<3 {
      _ = try hall.stations[0].sessions.invite(
        hall.stations[number].address, into: sessions[0], timeout: .seconds(20), now: hall.now)
    }
    hall.settle()
    #expect(hall.run(upTo: 1) { hall.letters.count { $0.output.kind == .invite && $0.isDelivered } == 2 } != nil)
    for number in 1..<3 {
      let asked = try #require(hall.invited(number))
      try hall.stations[number].sessions.accept(asked.handle, into: sessions[number], now: hall.now)
    }
    hall.settle()
    #expect(hall.run(upTo: 1) { hall.letters.count { $0.output.kind == .welcome && $0.isDelivered } == 2 } != nil)
    hall.crash(0)
    #expect(hall.run(upTo: 5) { hall.view(1, sessions[1]) == [1, 2] && hall.view(2, sessions[2]) == [1, 2] } != nil)
  }

  @Test func `a member that left one of two merged sessions is notified of its ejection from the other`() throws {
    let hall = Hall(3)
    let older = hall.open(0), other = hall.open(1)
    let first = hall.open(2)
    hall.join(2, into: first, by: 0, older)
    try hall.stations[2].sessions.leave(first, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    let second = hall.open(2)
    hall.join(2, into: second, by: 1, other)
    hall.join(1, into: other, by: 0, older)
    #expect(hall.run(upTo: 20) { hall.view(2, second) == [0, 1, 2] } != nil)
    try hall.stations[1].sessions.eject(other, hall.stations[2].address, now: hall.now)
    hall.settle()
    hall.run(seconds: 1)
    #expect(hall.stations[2].events.contains(.ended(second, .ejected(text: []))))
  }

  @Test func `two members of both merged sessions connect, whichever handles they keep`() throws {
    let hall = Hall(4)
    let kept = hall.open(0), ended = hall.open(0)
    // Station 1 keeps the handle of the session whose handle ends at station 0.
    let otherKept = hall.open(1), otherEnded = hall.open(1)
    hall.join(1, into: otherEnded, by: 0, kept)
    hall.join(1, into: otherKept, by: 0, ended)
    let others = [hall.open(2), hall.open(3)]
    hall.join(2, into: others[0], by: 0, kept)
    hall.join(3, into: others[1], by: 0, ended)
    hall.join(3, into: others[1], by: 2, others[0])
    hall.run(seconds: 5)
    #expect(hall.stations[0].events.contains(.ended(ended, .isSame(kept))))
    #expect(hall.stations[1].events.contains(.ended(otherEnded, .isSame(otherKept))))
    #expect(hall.view(0, kept) == [0, 1, 2, 3] && hall.view(1, otherKept) == [0, 1, 2, 3])
    for (from, session, to, heard) in [(0, kept, 1, otherKept), (1, otherKept, 0, kept)] {
      let message = try hall.stations[from].sessions.send(
        [7], in: session, to: [hall.stations[to].address], now: hall.now, canSend: { _, _, _ in true })
      for output in message.outputs { hall.post(output, from: hall.stations[from]) }
      hall.run(seconds: 1)
      #expect(hall.stations[to].events.contains(.message(heard, from: hall.stations[from].address, [7])))
    }
  }

  /// Merges two sessions of station 1: one is shared with station 0, and from the other session station 1 invites
  /// station 0.
  private func merged(_ hall: Hall, _ sessions: [SessionHandle]) throws {
    let other = hall.open(1)
    _ = try hall.stations[1].sessions.invite(hall.stations[0].address, into: other, now: hall.now)
    hall.settle()
    var asked: Invitation?
    _ = hall.run(upTo: 1) {
      asked = hall.invited(0)
      return asked != nil
    }
    try hall.stations[0].sessions.accept(#require(asked).handle, into: sessions[0], now: hall.now)
    hall.settle()
    let ended = SessionEvent.ended(other, .isSame(sessions[1]))
    #expect(hall.run(upTo: 1) { hall.stations[1].events.contains(ended) } != nil)
  }

  @Test func `a member that merges two of its sessions notifies the others at once`() throws {
    let (hall, sessions) = joined(2)
    try merged(hall, sessions)
    hall.run(seconds: 1)
    #expect(hall.stations[0].sessions.table(of: sessions[0])?.origins.count == 2)
    #expect(hall.view(0, sessions[0]) == [0, 1] && hall.view(1, sessions[1]) == [0, 1])
  }

  @Test func `a member that others exclude by an older table sends them the newer one`() throws {
    let (hall, sessions) = joined(2)
    // The tables that the member sends to the founder have no entries, as if the founder had banned the member's node
    // for forgery.
    let cryptography = hall.stations[1].cryptography
    hall.tamper = { output, from, _ in
      guard from == 1, output.kind == .table,
        var message = try? TableMessage(output.bytes.span.bytes, cryptography)
      else { return }
      message.entries = nil
      output.bytes = message.bytes
    }
    try merged(hall, sessions)
    try hall.stations[0].sessions.eject(sessions[0], hall.stations[1].address, now: hall.now)
    hall.settle()
    hall.run(seconds: 10)
    #expect(hall.view(0, sessions[0]) == [0])
    hall.tamper = nil
    hall.run(seconds: 70)
    #expect(hall.view(0, sessions[0]) == [0, 1] && hall.view(1, sessions[1]) == [0, 1])
  }
}
