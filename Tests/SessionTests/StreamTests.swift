import Primitives
import Session
import Testing

@testable import SessionStories

/// Members of one session, and the events of the streams between them.
final class StreamTalk {
  let hall: Hall
  let sessions: [SessionHandle]
  /// The stream events of each station.
  var events: [[(handle: StreamHandle, event: StreamEvent)]]
  /// The first two fields of the last stream message from station 0: the number that the receiver chose in the member
  /// handshake, and the stream id.
  var number: UInt32 = 0
  var id: UInt32 = 0
  var turns: [UInt32] = []
  var ends = 0

  init(_ count: Int = 2, owner: SessionOwner = SessionOwner()) {
    (hall, sessions) = joined(count, owner: owner)
    events = Array(repeating: [], count: count)
    hall.tamper = { [unowned self] output, from, to in
      let kind = output.kind
      guard from == 0, kind == .streamOpen || kind == .streamBytes || kind == .streamEnd else { return }
      number = output.bytes.span.bytes.word32(0)
      id = output.bytes.span.bytes.word32(4)
      if kind == .streamBytes { turns.append(id) }
      if kind == .streamEnd { ends += 1 }
    }
  }

  func run(_ seconds: Double = 1) {
    hall.settle()
    hall.run(seconds: seconds)
    for station in hall.stations {
      for event in station.events {
        if case .stream(let handle, let event) = event { events[station.number].append((handle, event)) }
      }
      station.events = []
    }
  }

  func node(_ number: Int) -> Sessions { hall.stations[number].sessions }

  func open(_ name: String = "s", from: Int = 0, to: Int = 1, isTwoWay: Bool = false) throws -> StreamHandle {
    try node(from).openStream(
      Array(name.utf8), in: sessions[from], to: hall.stations[to].address, isTwoWay: isTwoWay, now: hall.now)
  }

  /// The last incoming stream that the application at `station` was asked to accept, or nil.
  func asked(_ station: Int = 1) -> StreamHandle? {
    events[station].last { if case .opened = $0.event { true } else { false } }?.handle
  }

  /// Opens a stream that the other end accepts. Returns the stream's handles at both ends.
  func connected(
    from: Int = 0, to: Int = 1, isTwoWay: Bool = false
  ) throws -> (writer: StreamHandle, reader: StreamHandle) {
    let writer = try open(from: from, to: to, isTwoWay: isTwoWay)
    run()
    let reader = try #require(asked(to))
    try node(to).acceptStream(reader, now: hall.now)
    return (writer, reader)
  }

  /// Writes for six seconds, as long as bytes are accepted, at most `total`. Returns the number of accepted bytes.
  func fill(_ handle: StreamHandle, from station: Int = 0, upTo total: Int = .max) throws -> Int {
    var written = 0
    for _ in 0..<60 {
      while written < total {
        let count = try node(station).writeStream(
          handle, [UInt8](repeating: 7, count: min(20_000, total - written)), now: hall.now)
        written += count
        if count < 20_000 { break }
      }
      run(0.1)
    }
    return written
  }

  /// Opens a stream whose reader has read more than the first window.
  func read() throws -> (writer: StreamHandle, reader: StreamHandle) {
    let (writer, reader) = try connected()
    var taken = 0
    while taken < 3 * Int(SessionLimits.streamWindowFirst) {
      _ = try node(0).writeStream(writer, [UInt8](repeating: 7, count: SessionLimits.streamTurnBytes), now: hall.now)
      run(0.1)
      let count = bytes(reader).count
      node(1).takenFromStream(reader, count - taken, now: hall.now)
      taken = count
    }
    run(0.1)
    return (writer, reader)
  }

  func bytes(_ handle: StreamHandle, at station: Int = 1) -> [UInt8] {
    events[station].flatMap { event -> [UInt8] in
      guard event.handle == handle, case .bytes(let data) = event.event else { return [] }
      return data
    }
  }

  func end(_ handle: StreamHandle, at station: Int) -> StreamEnd? {
    let ends = events[station].compactMap { event -> StreamEnd? in
      guard event.handle == handle, case .ended(let end) = event.event else { return nil }
      return end
    }
    return ends.count == 1 ? ends[0] : nil
  }

  func count(_ event: StreamEvent, _ handle: StreamHandle, at station: Int) -> Int {
    events[station].count { $0.handle == handle && $0.event == event }
  }

  /// Lets station 1 receive a message in the name of station 0.
  func say(_ kind: SessionKind, _ bytes: [UInt8]) {
    try? node(1).receive(kind.rawValue, bytes.span.bytes, from: hall.stations[0].id, now: hall.now)
    run(0.2)
  }
}

@Suite struct StreamTests {
  @Test func `the bytes of a stream arrive in order, and its end after the last one`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.connected()
    #expect(try talk.node(0).writeStream(writer, [1, 2, 3], now: talk.hall.now) == 3)
    talk.run()
    #expect(try talk.node(0).writeStream(writer, [4], now: talk.hall.now) == 1)
    try talk.node(0).finishStream(writer, now: talk.hall.now)
    talk.run()
    #expect(talk.bytes(reader) == [1, 2, 3, 4])
    #expect(talk.count(.finished, reader, at: 1) == 1 && talk.end(reader, at: 1) == nil)
    #expect(talk.end(writer, at: 0) == nil)
    // The reader sends a stream end too. The end in this direction shows the writer that the reader's application has
    // read all bytes.
    talk.node(1).takenFromStream(reader, 4, now: talk.hall.now)
    talk.run()
    #expect(talk.end(reader, at: 1) == .finished && talk.end(writer, at: 0) == .finished)
  }

  @Test func `neither bytes nor the end are sent before the other application accepts the stream`() throws {
    let talk = StreamTalk()
    let writer = try talk.open()
    _ = try talk.node(0).writeStream(writer, [1], now: talk.hall.now)
    try talk.node(0).finishStream(writer, now: talk.hall.now)
    talk.run()
    let reader = try #require(talk.asked())
    #expect(talk.events[1].count == 1 && talk.turns.isEmpty && talk.end(writer, at: 0) == nil)
    try talk.node(1).acceptStream(reader, now: talk.hall.now)
    talk.run()
    #expect(talk.bytes(reader) == [1] && talk.count(.finished, reader, at: 1) == 1)
  }

  @Test func `the end of an empty stream waits until the other application accepts the stream`() throws {
    let talk = StreamTalk()
    let writer = try talk.open()
    try talk.node(0).finishStream(writer, now: talk.hall.now)
    talk.run()
    #expect(talk.ends == 0)
    try talk.node(1).acceptStream(try #require(talk.asked()), now: talk.hall.now)
    talk.run()
    #expect(talk.ends == 1 && talk.end(writer, at: 0) == .finished)
  }

  @Test func `an empty stream has an end`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.connected()
    try talk.node(0).finishStream(writer, now: talk.hall.now)
    talk.run()
    #expect(talk.end(writer, at: 0) == .finished && talk.end(reader, at: 1) == .finished)
  }

  @Test func `reset, finished and refused streams are distinguished`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.connected()
    _ = try talk.node(0).writeStream(writer, [1], now: talk.hall.now)
    talk.run()
    try talk.node(0).resetStream(writer, now: talk.hall.now)
    talk.run()
    #expect(talk.end(reader, at: 1) == .reset(.cancelled) && talk.end(writer, at: 0) == .reset(.cancelled))
    let second = try talk.open()
    talk.run()
    let unwanted = try #require(talk.asked())
    try talk.node(1).resetStream(unwanted, now: talk.hall.now)
    talk.run()
    #expect(talk.end(second, at: 0) == .reset(.refused))
    #expect(throws: SessionError.unknown) { try talk.node(0).writeStream(second, [1], now: talk.hall.now) }
  }

  @Test func `a reader that has read a first window is granted more, up to the whole window`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.read()
    let before = talk.bytes(reader).count
    _ = try talk.fill(writer)
    let unread = talk.bytes(reader).count - before
    #expect(unread > Int(SessionLimits.streamWindowFirst) && unread <= Int(SessionLimits.streamWindow))
  }

  @Test func `a stream that is read has room for several turns and accepts all of it`() throws {
    let talk = StreamTalk()
    let (writer, _) = try talk.read()
    let most = SessionLimits.streamTurnsMax * SessionLimits.streamTurnBytes
    #expect(talk.node(0).streamRoom(writer) == most)
    let bytes = [UInt8](repeating: 7, count: most)
    #expect(try talk.node(0).writeStream(writer, bytes, now: talk.hall.now) == most)
    #expect(try talk.node(0).writeStream(writer, [7], now: talk.hall.now) == 0)
    #expect(talk.node(0).streamRoom(writer) == 0)
  }

  @Test func `a stream without any read bytes has room for one turn`() throws {
    let talk = StreamTalk()
    let (writer, _) = try talk.connected()
    #expect(talk.node(0).streamRoom(writer) == SessionLimits.streamTurnBytes)
  }

  @Test func `only a few streams have room for several turns at once`() throws {
    let talk = StreamTalk()
    let turn = SessionLimits.streamTurnBytes, most = SessionLimits.streamTurnsMax * turn
    var writers: [StreamHandle] = []
    for _ in 0...SessionLimits.streamsAheadMax { writers.append(try talk.read().writer) }
    let rooms = writers.map { talk.node(0).streamRoom($0) }
    #expect(rooms == Array(repeating: most, count: SessionLimits.streamsAheadMax) + [turn])
    // A stream that has used its room loses its further turns, unless bytes were promised to it. Another stream then
    // gets these turns.
    _ = try talk.node(0).writeStream(writers[0], [UInt8](repeating: 7, count: most), now: talk.hall.now)
    talk.run()
    #expect(talk.node(0).streamRoom(writers[6], promised: turn) == most)
    #expect(talk.node(0).streamRoom(writers[0]) == turn)
  }

  @Test func `the streams of one user leave room for further turns to other users`() throws {
    let talk = StreamTalk(owner: SessionOwner(application: 1, user: 1, isFavoured: false))
    let turn = SessionLimits.streamTurnBytes, most = SessionLimits.streamTurnsMax * turn
    var writers: [StreamHandle] = []
    for _ in 0..<6 { writers.append(try talk.read().writer) }
    #expect(writers.map { talk.node(0).streamRoom($0) } == [most, most, most, most, turn, turn])
  }

  @Test func `a finished stream passes its further turns to another one`() throws {
    let talk = StreamTalk()
    let turn = SessionLimits.streamTurnBytes, most = SessionLimits.streamTurnsMax * turn
    var writers: [StreamHandle] = []
    for _ in 0...SessionLimits.streamsAheadMax { writers.append(try talk.read().writer) }
    for writer in writers.dropLast() { _ = talk.node(0).streamRoom(writer) }
    #expect(talk.node(0).streamRoom(writers[6]) == turn)
    try talk.node(0).finishStream(writers[0], now: talk.hall.now)
    #expect(talk.node(0).streamRoom(writers[6], promised: turn) == most)
  }

  @Test func `a stalled reader receives at most its window and delays no other stream`() throws {
    let talk = StreamTalk()
    let (stopped, unread) = try talk.connected()
    let written = try talk.fill(stopped)
    let window = talk.bytes(unread).count
    #expect(window <= Int(SessionLimits.streamWindow) && window >= Int(SessionLimits.streamWindowSure))
    #expect(written == window + SessionLimits.streamTurnBytes)
    let (other, reader) = try talk.connected()
    #expect(try talk.fill(other, upTo: 15_000) == 15_000)
    #expect(talk.bytes(reader).count == 15_000 && talk.bytes(unread).count == window)
    // Reading grants more credit, and the stream continues.
    talk.node(1).takenFromStream(unread, window, now: talk.hall.now)
    talk.run()
    #expect(talk.count(.room, stopped, at: 0) > 0 && talk.bytes(unread).count > window)
  }

  @Test func `streams are served in turns`() throws {
    let talk = StreamTalk()
    let one = try talk.connected(), two = try talk.connected()
    for stream in [one, two] { _ = try talk.node(0).writeStream(stream.writer, [1], now: talk.hall.now) }
    talk.run()
    talk.turns = []
    for _ in 0..<2 {
      for stream in [one, two] {
        _ = try talk.node(0).writeStream(stream.writer, [UInt8](repeating: 1, count: 20_000), now: talk.hall.now)
      }
      talk.run()
    }
    #expect(talk.turns.count == 4 && talk.turns[0] != talk.turns[1] && talk.turns[2] != talk.turns[3])
  }

  @Test func `a stream with more than one turn to send is interrupted by others`() throws {
    let talk = StreamTalk()
    let both = [try talk.read(), try talk.read()]
    talk.turns = []
    var written = 0
    for stream in both {
      let bytes = [UInt8](repeating: 1, count: talk.node(0).streamRoom(stream.writer))
      #expect(bytes.count >= 2 * SessionLimits.streamTurnBytes)
      written += try talk.node(0).writeStream(stream.writer, bytes, now: talk.hall.now)
    }
    talk.run()
    #expect(talk.turns.count == written / SessionLimits.streamTurnBytes)
    #expect(zip(talk.turns, talk.turns.dropFirst()).allSatisfy { $0 != $1 })
  }

  @Test func `a two-way stream ends when both directions have ended`() throws {
    let talk = StreamTalk()
    let (asker, answerer) = try talk.connected(isTwoWay: true)
    _ = try talk.node(0).writeStream(asker, [1], now: talk.hall.now)
    _ = try talk.node(1).writeStream(answerer, [2], now: talk.hall.now)
    try talk.node(0).finishStream(asker, now: talk.hall.now)
    talk.run()
    talk.node(1).takenFromStream(answerer, 1, now: talk.hall.now)
    talk.node(0).takenFromStream(asker, 1, now: talk.hall.now)
    #expect(talk.bytes(answerer) == [1] && talk.bytes(asker, at: 0) == [2])
    #expect(talk.end(asker, at: 0) == nil)
    try talk.node(1).finishStream(answerer, now: talk.hall.now)
    talk.run()
    #expect(talk.end(asker, at: 0) == .finished && talk.end(answerer, at: 1) == .finished)
    let oneWay = try talk.connected()
    #expect(throws: SessionError.invalid) { try talk.node(1).writeStream(oneWay.reader, [1], now: talk.hall.now) }
  }

  @Test func `a member opens at most sixteen streams, and another one after one has ended`() throws {
    let talk = StreamTalk()
    var streams: [(writer: StreamHandle, reader: StreamHandle)] = []
    for _ in 0..<SessionLimits.streamsPerPairMax { streams.append(try talk.connected()) }
    #expect(throws: SessionError.full) { try talk.open() }
    _ = try talk.node(0).writeStream(streams[0].writer, [1], now: talk.hall.now)
    try talk.node(0).finishStream(streams[0].writer, now: talk.hall.now)
    talk.run()
    #expect(throws: SessionError.full) { try talk.open() }
    talk.node(1).takenFromStream(streams[0].reader, 1, now: talk.hall.now)
    talk.run()
    _ = try talk.connected()
    #expect(talk.hall.view(0, talk.sessions[0]) == [0, 1])
  }

  @Test func `streams to an unreachable member are lost, once at each end`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.connected()
    talk.hall.stations[1].island = 1
    talk.run()
    #expect(talk.end(writer, at: 0) == .lost && talk.end(reader, at: 1) == .lost)
    talk.hall.stations[1].island = 0
    talk.run(3)
    let again = try talk.connected()
    _ = try talk.node(0).writeStream(again.writer, [9], now: talk.hall.now)
    talk.run()
    #expect(talk.bytes(again.reader) == [9])
  }

  @Test func `unread streams share the common memory, and a newcomer has a reserved part`() throws {
    let talk = StreamTalk(3)
    for sender in [0, 2] {
      for _ in 0..<SessionLimits.streamsPerPairMax {
        let stream = try talk.connected(from: sender)
        _ = try talk.fill(stream.writer, from: sender)
        #expect(talk.bytes(stream.reader).count >= Int(SessionLimits.streamWindowSure))
      }
    }
    let held = talk.events[1].reduce(0) { if case .bytes(let data) = $1.event { $0 + data.count } else { $0 } }
    #expect(held <= Hall.streamPool + 32 * Int(SessionLimits.streamWindowSure))
  }

  @Test func `streams whose readers stop after a first window share the common memory`() throws {
    let talk = StreamTalk()
    var held = 0
    for _ in 0..<12 {
      let (writer, reader) = try talk.read()
      held -= talk.bytes(reader).count
      _ = try talk.fill(writer)
      held += talk.bytes(reader).count
    }
    #expect(held <= Hall.streamPool + 12 * Int(SessionLimits.streamWindowSure))
  }

  @Test func `two applications of one node can open a stream`() throws {
    let hall = Hall(1)
    let sessions = hall.stations[0].sessions
    try sessions.advertise(Service(endpoint: 2, type: Array("story".utf8)))
    let one = hall.open(0), two = try sessions.open(2, SessionRules(), now: hall.now)
    let second = MemberAddress(node: hall.stations[0].id, endpoint: 2)
    _ = try sessions.invite(second, into: one, now: hall.now)
    hall.settle()
    let asked = try #require(hall.invited(0))
    try sessions.accept(asked.handle, into: two, now: hall.now)
    hall.run(seconds: 1)
    let writer = try sessions.openStream([0x73], in: one, to: second, now: hall.now)
    _ = try sessions.writeStream(writer, [5], now: hall.now)
    hall.settle()
    let reader = hall.stations[0].events.compactMap { event -> StreamHandle? in
      if case .stream(let handle, .opened) = event { handle } else { nil }
    }
    try sessions.acceptStream(try #require(reader.first), now: hall.now)
    hall.settle()
    #expect(hall.stations[0].events.contains(.stream(reader[0], .bytes([5]))))
  }
}

/// A member that violates the rules of streams harms only its own streams.
@Suite struct LyingStreamTests {
  @Test func `bytes beyond the granted window end the stream and are not delivered`() throws {
    let talk = StreamTalk()
    let (writer, reader) = try talk.connected()
    _ = try talk.fill(writer)
    let held = talk.bytes(reader).count
    talk.say(.streamBytes, StreamBytes.bytes(talk.number, talk.id, [UInt8](repeating: 1, count: 15_360)))
    #expect(talk.end(reader, at: 1) == .reset(.broken) && talk.bytes(reader).count == held)
    #expect(talk.end(writer, at: 0) == .reset(.broken))
    #expect(talk.hall.view(1, talk.sessions[1]) == [0, 1])
  }

  @Test func `bytes without granted credit end the stream`() throws {
    let talk = StreamTalk()
    _ = try talk.open()
    talk.run()
    let reader = try #require(talk.asked())
    talk.say(.streamBytes, StreamBytes.bytes(talk.number, talk.id, [1]))
    #expect(talk.end(reader, at: 1) == .reset(.broken) && talk.bytes(reader).isEmpty)
  }

  @Test func `bytes after the end, a second end, and an end at another offset cut the stream`() throws {
    for lie in 0..<3 {
      let talk = StreamTalk()
      let (writer, reader) = try talk.connected(isTwoWay: true)
      _ = try talk.node(0).writeStream(writer, [1], now: talk.hall.now)
      if lie < 2 { try talk.node(0).finishStream(writer, now: talk.hall.now) }
      talk.run()
      switch lie {
      case 0: talk.say(.streamBytes, StreamBytes.bytes(talk.number, talk.id, [2]))
      default:
        let end = StreamEndMessage(number: talk.number, stream: talk.id, .finished(byteCount: lie == 1 ? 1 : 9))
        talk.say(.streamEnd, end.bytes)
      }
      #expect(talk.end(reader, at: 1) == .reset(.broken))
      #expect(talk.bytes(reader) == [1])
    }
  }

  @Test func `a smaller window than before is ignored`() throws {
    let talk = StreamTalk()
    let (asker, answerer) = try talk.connected(isTwoWay: true)
    talk.run()
    // Station 0 sends a window update for the direction from station 1 to station 0.
    talk.say(.window, WindowMessage(number: talk.number, stream: talk.id, limit: 0).bytes)
    _ = try talk.node(1).writeStream(answerer, [1, 2], now: talk.hall.now)
    talk.run()
    #expect(talk.bytes(asker, at: 0) == [1, 2])
  }

  @Test func `a member that opens too many streams or reuses numbers must repeat its handshake`() throws {
    for lie in 0..<3 {
      let talk = StreamTalk()
      let writer = try talk.open()
      talk.run()
      let number = talk.number, id = talk.id
      let reader = try #require(talk.asked())
      let ids: [UInt32] =
        switch lie {
        case 0: (1...40).map { id + 2 * $0 }
        case 1: [id]
        default: [id + 1]
        }
      for id in ids {
        let open = OpenMessage(number: number, stream: id, window: 0, name: [0x78]).bytes
        try? talk.node(1).receive(
          SessionKind.streamOpen.rawValue, open.span.bytes, from: talk.hall.stations[0].id, now: talk.hall.now)
      }
      talk.run(0.1)
      #expect(talk.end(reader, at: 1) == .lost)
      let asked = talk.events[1].count { if case .opened = $0.event { true } else { false } }
      #expect(asked <= SessionLimits.streamsPerPairMax)
      talk.run(3)
      #expect(talk.end(writer, at: 0) == .lost)
      #expect(talk.hall.view(1, talk.sessions[1]) == [0, 1])
    }
  }
}
