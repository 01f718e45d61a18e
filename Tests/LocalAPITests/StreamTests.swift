import LocalAPI
import Primitives
import Session
import TestSupport
import SessionSupport
import Testing

@testable import LocalAPI

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let chat = bytes("chat")

/// Two clients in one session, and the streams from the writer to the reader.
private final class StreamPair {
  let house = House(2)
  let writer: Application
  let reader: Application
  let sessions: [UInt32]

  init() {
    writer = Application(house, 0)
    reader = Application(house, 1)
    let applications = [writer, reader]
    sessions = applications.map { application in
      _ = application.ask(.advertise(type: chat, info: []))
      return application.open("chat")
    }
    _ = writer.ask(.invite(session: sessions[0], reader.address("chat"), milliseconds: 0, context: []))
    let invited = reader.invitation()
    _ = reader.ask(.answer(invitation: invited, into: sessions[1], text: []))
    house.run(seconds: 1)
    _ = writer.read()
    _ = reader.read()
  }

  var to: MemberAddress { reader.address("chat") }

  /// Opens a stream that the reader accepts. Returns the stream's number at the writer and at the reader, and the
  /// number of bytes that the writer may send.
  func open(_ name: String = "log", limit: UInt64 = .max) -> (writer: UInt32, reader: UInt32, room: UInt64) {
    let own = writer.ask(.stream(session: sessions[0], to: to, name: bytes(name)))
    house.run(seconds: 1)
    let room = writer.read(142).last.map { $0.span.bytes.word64(5) } ?? 0
    let received = reader.read(140).last?.word(5) ?? 0
    let taken = reader.ask(.take(stream: received, isWanted: true, limit: limit))
    house.run(seconds: 1)
    return (own, taken, room)
  }

  /// Writes `count` bytes as the limit allows, while the reader reads. Returns all bytes that the reader has received.
  func write(_ stream: UInt32, _ count: Int, from first: Int = 0, room: UInt64) -> [UInt8] {
    var written = 0, room = Int(room), heard: [UInt8] = []
    for _ in 0..<100_000 where written < count {
      let part = min(count - written, room - written - first, LocalLimits.streamBytesMax)
      if part > 0 {
        let data = (0..<part).map { UInt8(truncatingIfNeeded: first + written + $0) }
        _ = writer.ask(.write(stream: stream, data: data), number: 0)
        written += part
      }
      for event in reader.read(141) { heard += event.dropFirst(9) }
      for event in writer.read(142) { room = Int(event.span.bytes.word64(5)) }
    }
    return heard
  }
}

@Suite struct LocalStreamTests {
  @Test func `a stream is announced with its name and sender, and its bytes arrive in order up to the end`() {
    let pair = StreamPair()
    let own = pair.writer.ask(.stream(session: pair.sessions[0], to: pair.to, name: bytes("log")))
    #expect(pair.writer.read().map { $0[0] } == [128, 142], "done, and room")
    pair.house.run(seconds: 1)
    let opened = pair.reader.read(140)
    #expect(opened.count == 1 && opened[0].word(1) == pair.sessions[1])
    #expect(Array(opened[0].suffix(4)) == [3] + bytes("log"))
    let taken = pair.reader.ask(.take(stream: opened[0].word(5), isWanted: true, limit: .max))
    pair.house.run(seconds: 1)
    var heard = pair.write(own, 100_000, room: UInt64(SessionLimits.streamTurnBytes))
    let done = pair.writer.ask(.finish(stream: own))
    pair.house.run(seconds: 1)
    let rest = pair.reader.read()
    for event in rest where event[0] == 141 { heard += event.dropFirst(9) }
    #expect(heard.count == 100_000 && heard.indices.allSatisfy { heard[$0] == UInt8(truncatingIfNeeded: $0) })
    let end: [UInt8] = [143] + taken.bytes + [0, 0, 0, 0, 0]
    #expect(rest.last == end, "finished")
    pair.house.run(seconds: 1)
    let told = pair.writer.read().filter { $0[0] != 142 }
    #expect(
      told == [[128] + done.bytes + [0, 0], [143] + own.bytes + [0, 0, 0, 0, 0]], "the writer knows that all was read")
    #expect(pair.writer.outcome(.browse(type: chat), number: own) == .done, "the number is free")
  }

  @Test func `a reader's limit holds back one stream, but no other streams or messages`() {
    let pair = StreamPair()
    let stopped = pair.open("stopped", limit: 1_000), other = pair.open("other")
    _ = pair.writer.ask(
      .write(stream: stopped.writer, data: [UInt8](repeating: 7, count: 4_096)), number: 0)
    pair.house.run(seconds: 1)
    let few = pair.reader.read(141)
    #expect(few.reduce(0) { $0 + $1.count - 9 } == 1_000)
    #expect(pair.write(other.writer, 200_000, room: other.room).count > 100_000)
    _ = pair.writer.ask(.send(session: pair.sessions[0], .interactive, to: [], data: [1]))
    pair.house.run(seconds: 1)
    #expect(pair.reader.read(137).count == 1)
    _ = pair.reader.ask(.streamWindow(stream: stopped.reader, limit: 5_000), number: 0)
    #expect(pair.reader.read(141).reduce(0) { $0 + $1.count - 9 } == 3_096)
  }

  @Test func `a stream that its writer resets is not finished`() {
    let pair = StreamPair()
    let stream = pair.open()
    _ = pair.writer.ask(.write(stream: stream.writer, data: [1, 2, 3]), number: 0)
    pair.house.run(seconds: 1)
    #expect(pair.writer.outcome(.reset(stream: stream.writer)) == .done)
    pair.house.run(seconds: 1)
    #expect(pair.reader.read(143) == [[143] + stream.reader.bytes + [0, 0, 0, 0, 1]])
    #expect(pair.writer.outcome(.finish(stream: stream.writer)) == .unknown)
  }

  @Test func `a stream that its reader resets ends at the writer`() {
    let pair = StreamPair()
    let stream = pair.open()
    _ = pair.reader.ask(.reset(stream: stream.reader))
    #expect(pair.reader.read(143) == [[143] + stream.reader.bytes + [0, 0, 0, 0, 1]])
    pair.house.run(seconds: 1)
    #expect(pair.writer.read(143) == [[143] + stream.writer.bytes + [0, 0, 0, 0, 1]])
  }

  @Test func `a refused stream ends as refused at the writer`() {
    let pair = StreamPair()
    let own = pair.writer.ask(.stream(session: pair.sessions[0], to: pair.to, name: bytes("log")))
    pair.house.run(seconds: 1)
    let received = pair.reader.read(140)[0].word(5)
    #expect(pair.reader.outcome(.take(stream: received, isWanted: false, limit: 0)) == .done)
    pair.house.run(seconds: 1)
    #expect(pair.writer.read(143) == [[143] + own.bytes + [0, 0, 0, 0, 2]])
    #expect(pair.reader.outcome(.take(stream: received, isWanted: true, limit: 0)) == .unknown)
    #expect(pair.reader.read(143).isEmpty)
  }

  @Test func `a stream that is reset before it was accepted ends under the daemon's number`() {
    let pair = StreamPair()
    let own = pair.writer.ask(.stream(session: pair.sessions[0], to: pair.to, name: bytes("log")))
    pair.house.run(seconds: 1)
    let received = pair.reader.read(140)[0].word(5)
    _ = pair.writer.ask(.reset(stream: own))
    pair.house.run(seconds: 1)
    #expect(pair.reader.read(143) == [[143] + pair.sessions[1].bytes + received.bytes + [1]])
  }

  @Test func `a stream of a member that leaves is lost, and an unannounced one is forgotten`() {
    let pair = StreamPair()
    let stream = pair.open()
    _ = pair.writer.ask(.stream(session: pair.sessions[0], to: pair.to, name: bytes("late")))
    pair.house.run(seconds: 1)
    _ = pair.writer.ask(.leave(session: pair.sessions[0], text: []))
    pair.house.run(seconds: 1)
    let events = pair.reader.read()
    #expect(events.filter { $0[0] == 143 } == [[143] + stream.reader.bytes + [0, 0, 0, 0, 5]])
    #expect(!events.contains { $0[0] == 140 })
  }

  @Test func `a finished stream stays finished if its reader leaves or detaches at once`() {
    for leaves in [true, false] {
      let pair = StreamPair(), box = pair.reader.box, client = pair.reader.clientIndex
      let stream = pair.open(limit: 0)
      _ = pair.writer.ask(.write(stream: stream.writer, data: [1, 2, 3]), number: 0)
      _ = pair.writer.ask(.finish(stream: stream.writer))
      pair.house.run(seconds: 1)
      _ = pair.reader.read()
      let now = pair.house.now
      // The requests bypass `Application.ask`, so that the node sends nothing before the reader has left.
      func ask(_ request: LocalRequest.Body, number: UInt32) {
        let packet = Array(LocalRequest(number, request).packet.dropFirst(4))
        box.clients.receive(packet.span.bytes, from: client, now: now)
      }
      ask(.streamWindow(stream: stream.reader, limit: .max), number: 0)
      var events: [[UInt8]] = []
      while let packet = box.clients.nextPacket(for: client, now: now) { events.append(Array(packet.dropFirst(4))) }
      #expect(events.map { $0[0] } == [141, 143] && events.last?.last == 0, "the bytes, and finished")
      if leaves {
        ask(.leave(session: pair.sessions[1], text: []), number: 99)
      } else {
        box.clients.detach(client, now: now)
      }
      pair.house.run(seconds: 1)
      let heard = pair.writer.read()
      #expect(heard.filter { $0[0] == 143 } == [[143] + stream.writer.bytes + [0, 0, 0, 0, 0]])
      let states = heard.filter { $0[0] == 136 }.map { $0[$0.count - 3] }
      #expect(states == [4], "the member has left")
    }
  }

  @Test func `a writer that exceeds its limit is disconnected`() {
    let pair = StreamPair()
    let stream = pair.open(limit: 0)
    for _ in 0..<4 {
      _ = pair.writer.ask(.write(stream: stream.writer, data: [UInt8](repeating: 0, count: 4_096)), number: 0)
    }
    #expect(pair.writer.read(143) == [[143] + stream.writer.bytes + [0, 0, 0, 0, 4]])
  }

  @Test func `one member has at most 16 streams to another`() {
    let pair = StreamPair()
    for number in 0..<17 {
      let isDone = pair.writer.outcome(.stream(session: pair.sessions[0], to: pair.to, name: bytes("s"))) == .done
      #expect(isDone == (number < 16))
    }
  }

  @Test func `a client has at most 32 streams, and further incoming ones get no slot`() {
    let pair = StreamPair()
    let third = Application(pair.house, 0, name: "third")
    _ = third.ask(.advertise(type: chat, info: []))
    let session = third.open("chat"), to = third.address("chat", name: "third")
    _ = pair.writer.ask(.invite(session: pair.sessions[0], to, milliseconds: 0, context: []))
    let invited = third.invitation()
    _ = third.ask(.answer(invitation: invited, into: session, text: []))
    pair.house.run(seconds: 2)
    func open(_ count: Int, to member: MemberAddress) -> Int {
      (0..<count).count { _ in
        pair.writer.outcome(.stream(session: pair.sessions[0], to: member, name: bytes("s"))) == .done
      }
    }
    let own = open(16, to: pair.to) + open(12, to: to)
    #expect(own == 28)
    // Two streams from `third` occupy two of the four slots that the writer's own 28 streams leave.
    for _ in 0..<2 { _ = third.ask(.stream(session: session, to: pair.writer.address("chat"), name: bytes("s"))) }
    pair.house.run(seconds: 1)
    let last = open(3, to: to)
    #expect(last == 2 && third.read(143).isEmpty)
    let late = third.ask(.stream(session: session, to: pair.writer.address("chat"), name: bytes("s")))
    pair.house.run(seconds: 1)
    #expect(third.read(143) == [[143] + late.bytes + [0, 0, 0, 0, 3]])
  }

  @Test func `a stream without a reachable member, a name or a session is refused`() {
    let pair = StreamPair()
    let session = pair.sessions[0]
    #expect(pair.writer.outcome(.stream(session: 99, to: pair.to, name: bytes("s"))) == .unknown)
    #expect(pair.writer.outcome(.stream(session: session, to: pair.to, name: [])) == .invalid)
    #expect(
      pair.writer.outcome(.stream(session: session, to: pair.writer.address("chat"), name: bytes("s"))) == .unavailable)
    #expect(pair.writer.outcome(.take(stream: 1, isWanted: true, limit: 0)) == .unknown)
    #expect(pair.writer.outcome(.finish(stream: 5)) == .unknown)
    #expect(pair.writer.outcome(.reset(stream: 5)) == .unknown)
  }

  @Test func `a member is reported as connected before its stream`() {
    let house = House(2)
    let writer = Application(house, 0), reader = Application(house, 1)
    _ = reader.ask(.advertise(type: chat, info: []))
    let ours = writer.open("chat"), theirs = reader.ask(.open(type: chat, SessionRules()))
    _ = writer.ask(.invite(session: ours, reader.address("chat"), milliseconds: 0, context: []))
    let invited = reader.invitation()
    _ = reader.ask(.answer(invitation: invited, into: theirs, text: []))
    house.run(seconds: 1)
    // The reader does not read a pending message. So the event about its sender's state stays pending too.
    _ = writer.ask(.send(session: ours, .interactive, to: [], data: [1]))
    _ = writer.ask(.stream(session: ours, to: reader.address("chat"), name: bytes("s")))
    house.run(seconds: 1)
    let events = reader.read().map { $0[0] }.filter { $0 == 136 || $0 == 140 }
    #expect(events == [136, 140])
  }

  @Test func `pending bytes use little more memory than their number, however they arrived`() {
    var blocks = ByteBlocks()
    var want: [UInt8] = []
    for number in 0..<3_000 {
      let part = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1 + number % 7)
      blocks.append(part)
      want += part
    }
    #expect(blocks.count == want.count)
    var got: [UInt8] = []
    var step = 1
    while blocks.count > 0 {
      got += blocks.take(step)
      step = step % 2_500 + 313
    }
    #expect(got == want)
    #expect(blocks.take(1).isEmpty)
  }
}

@Suite struct LocalGatheringTests {
  @Test func `a node that opens streams leaves slots to other nodes and to the client itself`() {
    let house = House(3)
    let reader = Application(house, 0)
    _ = reader.ask(.advertise(type: chat, info: []))
    func join(_ box: Int, _ name: String) -> (writer: Application, session: UInt32) {
      let writer = Application(house, box, name: name)
      let session = writer.open("chat"), into = reader.open("chat")
      _ = writer.ask(.invite(session: session, reader.address("chat"), milliseconds: 0, context: []))
      _ = reader.ask(.answer(invitation: reader.invitation(), into: into, text: []))
      house.run(seconds: 1)
      _ = writer.read()
      return (writer, session)
    }
    func open(_ count: Int, _ end: (writer: Application, session: UInt32)) -> (told: Int, tooMany: Int) {
      for _ in 0..<count { _ = end.writer.ask(.stream(session: end.session, to: reader.address("chat"), name: chat)) }
      house.run(seconds: 1)
      return (reader.read(140).count, end.writer.read(143).count { $0.suffix(1) == [3] })
    }
    // A node opens the maximum number of streams in each of several sessions.
    let greedy = [join(1, "one"), join(1, "two")].map { open(16, $0) }
    #expect(greedy.map { $0.told } == [16, 0] && greedy.map { $0.tooMany } == [0, 16])
    #expect(open(16, join(2, "three")) == (8, 8))
  }

  @Test func `a postponed stream ends at the other end with that reason`() {
    let pair = StreamPair()
    let stream = pair.open()
    _ = pair.reader.ask(.reset(stream: stream.reader, isPostponed: true))
    pair.house.run(seconds: 1)
    #expect(pair.writer.read(143) == [[143] + stream.writer.bytes + [0, 0, 0, 0, 3]])
    let next = pair.writer.ask(.stream(session: pair.sessions[0], to: pair.to, name: chat))
    pair.house.run(seconds: 1)
    let received = pair.reader.read(140).last?.word(5) ?? 0
    _ = pair.reader.ask(.take(stream: received, isWanted: false, limit: 0, isPostponed: true))
    pair.house.run(seconds: 1)
    #expect(pair.writer.read(143) == [[143] + next.bytes + [0, 0, 0, 0, 3]])
  }

  @Test func `auto-joining applications of one type join one session`() {
    let house = House(2)
    let applications = [
      Application(house, 0, name: "a"), Application(house, 0, name: "b"), Application(house, 1, name: "c"),
    ]
    var sessions: [UInt32] = []
    for application in applications {
      let session = application.open("chat")
      #expect(application.outcome(.gather(session: session)) == .done)
      _ = application.ask(.advertise(type: chat, info: []))
      sessions.append(session)
      house.run(seconds: 3)
    }
    house.run(seconds: 20)
    for (application, session) in zip(applications, sessions) {
      let events = application.read()
      #expect(!events.contains { $0[0] == 132 }, "nobody is asked")
      _ = application.ask(.send(session: session, .interactive, to: [], data: [1]))
      house.run(seconds: 1)
      #expect(application.read(138).filter { $0[25] == 0 }.count == 2)
    }
  }

  @Test func `auto-join also invites applications of its type without auto-join, but none of another type`() {
    let house = House(2)
    let one = Application(house, 0), other = Application(house, 1), third = Application(house, 1, name: "third")
    _ = other.ask(.advertise(type: chat, info: []))
    _ = third.ask(.advertise(type: bytes("photos"), info: []))
    let session = one.open("chat")
    _ = one.ask(.gather(session: session))
    _ = one.ask(.advertise(type: chat, info: []))
    house.run(seconds: 8)
    #expect(other.read(132).count == 1)
    #expect(third.read(132).isEmpty)
    #expect(one.outcome(.gather(session: 99)) == .unknown)
  }
}

extension UInt32 {
  fileprivate var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: self >> (24 - 8 * $0)) } }
}
