import LocalAPI
import Primitives
import Session
import SessionSupport
import Testing
import TestSupport

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let chat = bytes("chat")

/// Three boxes and pairs of applications. Each pair has its own session, between an application on the first box and an
/// application on another box.
private final class Street {
  struct Pair {
    let writer: Application
    let reader: Application
    let session: UInt32
    let to: MemberAddress
  }

  let house = House(3)
  private var count = 0

  /// Creates a pair whose applications belong to `user`. With `writerIsOperatorOf`, the writer belongs to the operator
  /// of that box instead.
  func pair(_ user: UInt32, to box: Int = 1, writerIsOperatorOf other: Int? = nil) -> Pair {
    count += 1
    let name = "pair \(count)", rules = SessionRules(membersMax: 2)
    let writer = Application(
      house, other ?? 0, user: other == nil ? user : 0, isOperator: other != nil, name: name)
    let reader = Application(house, other == nil ? box : 0, user: user, name: name)
    let session = writer.open("chat", rules), theirs = reader.open("chat", rules)
    _ = reader.ask(.advertise(type: chat, info: []))
    let to = reader.address("chat", name: name, user: user)
    _ = writer.ask(.invite(session: session, to, milliseconds: 0, context: []))
    _ = reader.ask(.answer(invitation: reader.invitation(), into: theirs, text: []))
    house.run(seconds: 1)
    _ = writer.read()
    _ = reader.read()
    return Pair(writer: writer, reader: reader, session: session, to: to)
  }

  /// Sends a message to the reader. Returns whether the message reached the reader's box.
  func send(_ pair: Pair, _ byteCount: Int) -> Bool {
    let data = [UInt8](repeating: 1, count: byteCount)
    _ = pair.writer.ask(.send(session: pair.session, .interactive, to: [pair.to], data: data))
    let isDelivered = pair.writer.read(138).contains { $0[25] == LocalDelivery.delivered.rawValue }
    house.run(seconds: 1)
    return isDelivered
  }

  /// Opens a stream that the reader accepts but does not read. Returns the stream's number, and the bytes that the
  /// writer may send: 0 if the stream was refused.
  func stream(_ pair: Pair) -> (number: UInt32, room: Int) {
    let number = pair.writer.ask(.stream(session: pair.session, to: pair.to, name: bytes("log")))
    guard pair.writer.read(128).first?[5] == LocalOutcome.done.rawValue else { return (number, 0) }
    let received = pair.reader.read(140).last?.word(5) ?? 0
    _ = pair.reader.ask(.take(stream: received, isWanted: true, limit: 0))
    house.run(seconds: 1)
    return (number, SessionLimits.streamTurnBytes)
  }

  /// The number of bytes that the reader's box holds for the reader.
  func waiting(_ pair: Pair) -> Int {
    pair.reader.box.clients.view(pair.reader.clientIndex)?.sessions.reduce(0) { $0 + $1.bytesWaiting } ?? 0
  }
}

/// A user whose applications read nothing, beside a user whose applications read. The number of applications of a user
/// makes no difference.
@Suite struct UnreadShareTests {
  @Test func `a user's unread messages leave room for another user's messages of maximum length`() {
    let street = Street()
    for _ in 0..<6 {
      let pair = street.pair(1000)
      var refused = 0
      while refused < 3 { refused += street.send(pair, 65_000) ? 0 : 1 }
    }
    let other = street.pair(1001)
    var delivered = 0
    for _ in 0..<20 {
      if street.send(other, 65_000) { delivered += 1 }
      _ = other.reader.read()
    }
    #expect(delivered >= 10, "\(delivered) of 20")
  }

  @Test func `a user's unread streams leave room for another user's streams`() {
    let street = Street()
    for _ in 0..<3 {
      let pair = street.pair(1000)
      for _ in 0..<15 { #expect(street.stream(pair).room > 0) }
    }
    let other = street.pair(1001)
    var (number, room) = street.stream(other), written = 0
    for _ in 0..<50 {
      while written < room {
        let part = min(room - written, LocalLimits.streamBytesMax)
        _ = other.writer.ask(.write(stream: number, data: [UInt8](repeating: 1, count: part)), number: 0)
        written += part
      }
      for event in other.writer.read(142) { room = Int(event.span.bytes.word64(5)) }
    }
    #expect(street.waiting(other) >= 16_384, "\(street.waiting(other)) bytes")
  }

  @Test func `a user with its maximum of streams leaves some to another user`() {
    let street = Street()
    var count = 0
    // The writers are on one box and the readers on two, because a box accepts at most 48 streams from one other box.
    for number in 0..<6 {
      let pair = street.pair(1000, to: 1 + number % 2)
      for _ in 0..<16 where street.stream(pair).room > 0 { count += 1 }
    }
    #expect(count == 59)
    let other = street.pair(1001)
    #expect((0..<16).count { _ in street.stream(other).room > 0 } == 16)
  }

  @Test func `a user's applications receive no streams beyond the user's share`() {
    let street = Street()
    var count = 0
    for box in [1, 1, 1, 2, 2] {
      let pair = street.pair(1000, writerIsOperatorOf: box)
      for _ in 0..<16 {
        _ = pair.writer.ask(.stream(session: pair.session, to: pair.to, name: bytes("log")))
        street.house.run(seconds: 1)
        count += pair.reader.read(140).count
      }
    }
    #expect(count == 59)
  }

  @Test func `members of one user's sessions leave a share to those of another user`() {
    let street = Street()
    for _ in 0..<8 { _ = street.pair(1000) }
    // The message must fit into the member's share, because space beyond the share must be reserved before the message
    // is sent.
    #expect(street.send(street.pair(1001), 60_000))
  }

  @Test func `a user's unread unreliable messages leave room for another user's`() {
    let street = Street()
    func send(_ pair: Street.Pair) {
      let data = [UInt8](repeating: 1, count: SessionLimits.unreliableBytesMax)
      _ = pair.writer.ask(.send(session: pair.session, .unreliable, to: [pair.to], data: data))
      _ = pair.writer.read()
    }
    for _ in 0..<8 {
      let pair = street.pair(1000)
      for _ in 0..<60 { send(pair) }
    }
    let other = street.pair(1001)
    for _ in 0..<10 { send(other) }
    #expect(street.waiting(other) == 10 * SessionLimits.unreliableBytesMax)
  }
}
