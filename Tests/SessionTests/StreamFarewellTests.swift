import Primitives
import Session
import Testing

@testable import SessionStories

extension StreamTalk {
  /// Opens a stream and writes three bytes and the end. The three bytes and the end have arrived at the reader, but the
  /// application of the reader has not read them.
  func written() throws -> (writer: StreamHandle, reader: StreamHandle) {
    let (writer, reader) = try connected()
    _ = try node(0).writeStream(writer, [1, 2, 3], now: hall.now)
    try node(0).finishStream(writer, now: hall.now)
    _ = hall.run(upTo: 2) {
      hall.stations[1].events.contains { if case .stream(reader, .finished) = $0 { true } else { false } }
    }
    return (writer, reader)
  }

  /// Delays the messages about stream ends that a station has sent, and the acknowledgements of these messages, by
  /// `seconds`.
  func delayEnds(from station: Int, by seconds: UInt64) throws {
    let ends = hall.letters.indices.filter {
      hall.letters[$0].output.kind == .streamEnd && hall.letters[$0].from.number == station
    }
    try #require(!ends.isEmpty)
    for index in ends { hall.letters[index].at = hall.now + .seconds(seconds) }
  }
}

/// If an application leaves as soon as it knows how a stream ended, the member at the other end learns the same end.
@Suite struct StreamFarewellTests {
  @Test func `a reader that leaves right after the end of a stream still confirms that end`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.written()
    talk.node(1).takenFromStream(reader, 3, now: talk.hall.now)
    try talk.node(1).leave(talk.sessions[1], now: talk.hall.now)
    talk.run()
    #expect(talk.end(reader, at: 1) == .finished && talk.end(writer, at: 0) == .finished)
    #expect(talk.hall.view(0, talk.sessions[0]) == [0])
  }

  @Test func `a departure does not overtake the end of a stream that was read`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.written()
    talk.node(1).takenFromStream(reader, 3, now: talk.hall.now)
    talk.hall.settle()
    try talk.delayEnds(from: 1, by: 5)
    try talk.node(1).leave(talk.sessions[1], now: talk.hall.now)
    talk.run(4)
    #expect(talk.end(reader, at: 1) == .finished && talk.end(writer, at: 0) == nil)
    #expect(talk.hall.view(0, talk.sessions[0]) == [0, 1])
    talk.run(2)
    #expect(talk.end(reader, at: 1) == .finished && talk.end(writer, at: 0) == .finished)
    #expect(talk.hall.view(0, talk.sessions[0]) == [0])
  }

  @Test func `a departure waits for the end of a stream only until its deadline`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.written()
    talk.node(1).takenFromStream(reader, 3, now: talk.hall.now)
    talk.hall.settle()
    try talk.delayEnds(from: 1, by: 50)
    try talk.node(1).leave(talk.sessions[1], now: talk.hall.now)
    let time = Double(SessionLimits.owingTime.milliseconds) / 1_000
    talk.run(time - 1)
    #expect(talk.node(1).owesStreams && talk.hall.view(0, talk.sessions[0]) == [0, 1])
    talk.run(2)
    #expect(!talk.node(1).owesStreams && talk.hall.view(0, talk.sessions[0]) == [0])
    #expect(talk.end(reader, at: 1) == .finished && talk.end(writer, at: 0) == .lost)
  }

  @Test func `a departure does not wait for a member that is away or restarted`() throws {
    for isAway in [true, false] {
      let talk = StreamTalk()
      let (_, reader) = try talk.written()
      talk.node(1).takenFromStream(reader, 3, now: talk.hall.now)
      talk.hall.settle()
      try talk.delayEnds(from: 1, by: 50)
      try talk.node(1).leave(talk.sessions[1], now: talk.hall.now)
      talk.run(1)
      #expect(talk.node(1).owesStreams)
      if isAway {
        talk.hall.stations[1].island = 1
      } else {
        let table = try #require(talk.node(0).table(of: talk.sessions[0]))
        let meet = MeetMessage(
          session: table.id, from: 1, to: 1, number: talk.number &+ 1, echo: 0, digest: table.digest, window: 1)
        talk.say(.meet, meet.bytes)
      }
      talk.run(1)
      #expect(!talk.node(1).owesStreams)
      if !isAway { #expect(talk.hall.view(0, talk.sessions[0]) == [0]) }
    }
  }

  @Test func `the end from the reader confirms the writer's end`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.written()
    for index in talk.hall.letters.indices where talk.hall.letters[index].isDelivered {
      talk.hall.letters[index].at = talk.hall.now + .seconds(5)
    }
    talk.node(1).takenFromStream(reader, 3, now: talk.hall.now)
    talk.run(1)
    #expect(talk.end(writer, at: 0) == .finished)
    talk.run(6)
    #expect(talk.end(writer, at: 0) == .finished && talk.hall.view(0, talk.sessions[0]) == [0, 1])
  }

  @Test func `a reader with all bytes loses nothing when the writer leaves`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.written()
    talk.node(1).takenFromStream(reader, 3, now: talk.hall.now)
    _ = talk.hall.run(upTo: 1) {
      talk.hall.letters.contains { $0.output.kind == .streamEnd && $0.from.number == 1 && $0.isDelivered }
    }
    try talk.delayEnds(from: 1, by: 5)
    try talk.node(0).leave(talk.sessions[0], now: talk.hall.now)
    talk.run(1)
    #expect(talk.end(writer, at: 0) == .finished && talk.end(reader, at: 1) == .finished)
  }

  @Test func `a stream that was reset is reported as reset, although the application leaves at once`() throws {
    for isWriter in [true, false] {
      let talk = StreamTalk()
      let (writer, reader) = try talk.connected()
      talk.run()
      let station = isWriter ? 0 : 1
      try talk.node(station).resetStream(isWriter ? writer : reader, now: talk.hall.now)
      try talk.node(station).leave(talk.sessions[station], now: talk.hall.now)
      talk.run()
      #expect(talk.end(isWriter ? reader : writer, at: 1 - station) == .reset(.cancelled))
      #expect(talk.hall.view(1 - station, talk.sessions[1 - station]) == [1 - station])
    }
  }

  @Test func `a reader that leaves early loses the rest of a stream, and so does the writer`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.written()
    talk.node(1).takenFromStream(reader, 2, now: talk.hall.now)
    try talk.node(1).leave(talk.sessions[1], now: talk.hall.now)
    #expect(!talk.node(1).owesStreams)
    talk.run()
    #expect(talk.end(reader, at: 1) == .lost && talk.end(writer, at: 0) == .lost)
  }
}
