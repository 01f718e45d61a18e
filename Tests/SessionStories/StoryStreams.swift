import Primitives
import Session
import SessionSupport
import TestSupport

/// The streams of a scenario. `StreamWitness` checks their rules.
extension Story {
  func incarnation(_ station: Hall.Station) -> StreamWitness.Incarnation {
    StreamWitness.Incarnation(station.number, station.epoch)
  }

  /// Lets an application open a stream to a member. Also lets applications that read late read a part of their streams.
  func stream(_ station: Hall.Station) {
    guard station.isUp, let session = open[station.number]?.first else { return }
    if random.chance(perThousand: 500) {
      witness.readLate(incarnation(station), station.sessions, &random, now: hall.now)
    }
    let members = station.sessions.members(of: session).filter { $0.state == .connected }
    guard !members.isEmpty else { return }
    let to = members[Int(random.below(UInt64(members.count)))].address
    let total = Int(random.below(random.chance(perThousand: 500) ? 40_000 : 400_000))
    let flow = witness.open(
      incarnation(station), station.sessions, session, to: to, total: total, closes: !random.chance(perThousand: 100),
      now: hall.now)
    if let flow, random.chance(perThousand: 50) { try? station.sessions.resetStream(flow.handle, now: hall.now) }
  }

  func receive(_ station: Hall.Station, _ handle: StreamHandle, _ event: StreamEvent) {
    var sender: Int?
    if case .opened(_, let from, _, _) = event { sender = hall.number(of: from.node) }
    // Streams from the malicious member, and events at that member, are not checked.
    if sender == liar || station.number == liar { sender = nil }
    witness.receive(incarnation(station), station.sessions, handle, event, from: sender, &random, now: hall.now)
    witness.wrong.map { fail($0) }
  }

  /// Lets members open two streams each to one other member, in the quiet phase. The reader stops reading the first
  /// stream, and must still get all bytes of the second stream.
  func beginRaces() {
    for station in hall.stations where station.number != liar && races.count < 3 {
      guard let session = open[station.number]?.first else { continue }
      let others = station.sessions.members(of: session).filter {
        ($0.state == .connected || $0.state == .paused) && hall.number(of: $0.address.node) != liar
      }
      guard let to = others.last?.address,
        witness.open(
          incarnation(station), station.sessions, session, to: to, total: 400_000, .stops, now: hall.now) != nil,
        let race = witness.open(
          incarnation(station), station.sessions, session, to: to, total: 60_000, .reads, now: hall.now)
      else { continue }
      races.append(race)
    }
    hall.settle()
  }

  func checkStreams() {
    for race in races { witness.checkRace(race) }
    witness.check { incarnation in
      incarnation.node != liar && hall.stations[incarnation.node].isUp
        && hall.stations[incarnation.node].epoch == incarnation.life
    }
    witness.wrong.map { fail($0) }
  }

  // MARK: Malicious messages

  /// Replaces a stream message of the malicious member by a false one: an unknown stream, a wrong end, or credit that
  /// was not granted. Returns whether the message was replaced.
  func lieAboutStreams(_ output: inout SessionOutput) -> Bool {
    guard output.kind == .streamBytes || output.kind == .streamEnd || output.kind == .window,
      output.bytes.count >= 8
    else { return false }
    let number = output.bytes.span.bytes.word32(0), stream = max(output.bytes.span.bytes.word32(4), 1)
    switch random.below(6) {
    case 0:
      output.kind = .streamOpen
      output.bytes =
        OpenMessage(
          number: number, stream: UInt32(1 + random.below(1_000)), window: random.below(3) * 1_000, name: [0x78]
        ).bytes
    case 1:
      output.kind = .streamEnd
      output.bytes = StreamEndMessage(number: number, stream: stream, .finished(byteCount: random.below(3))).bytes
    case 2:
      output.kind = .window
      output.bytes = WindowMessage(number: number, stream: stream, limit: random.below(300_000)).bytes
    case 3:
      output.kind = .streamBytes
      output.bytes = StreamBytes.bytes(number, stream, [1, 2, 3])
    default:
      output.kind = .streamBytes
      output.bytes = StreamBytes.bytes(
        number, stream, [UInt8](repeating: 1, count: SessionLimits.streamTurnBytes))
    }
    return true
  }
}
