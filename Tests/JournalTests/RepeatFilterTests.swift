import Journal
import Primitives
import Testing

/// A journal in memory with the filter that counts repeated records.
private final class Ring {
  let memory: Memory
  let filter = UnsafeMutablePointer<RepeatFilter>.allocate(capacity: 1)
  let journal: Journal

  init(capacity: Int = 4096, level: Level = .info) {
    memory = Memory(capacity: capacity)
    filter.initialize(to: RepeatFilter(level: level, capacity: capacity))
    journal = Journal(
      memory.bytes, level: level, wallOffset: 0, boot: MachineBoot(high: 1, low: 0), filter: filter)
  }
  deinit { filter.deallocate() }

  func say(_ text: String, _ seconds: Double, _ level: Level = .notice) {
    Array(text.utf8).withUnsafeBytes { journal.recordText(level, .report, at: at(seconds), $0) }
  }

  func at(_ seconds: Double) -> Instant { Instant(nanoseconds: UInt64(seconds * 1e9)) }

  /// All records of `event` in the journal.
  func records(_ event: Event) throws -> [JournalRecord] {
    let reader = try memory.reader()
    return (reader.oldest...max(reader.newest, 1)).compactMap { reader.record($0) }.filter {
      $0.event == event.rawValue
    }
  }
}

private func node(_ number: UInt64) -> NodeID { NodeID(high: number, low: ~number) }

@Test func `what repeats is counted and the count is recorded`() throws {
  let ring = Ring()
  // A refused peer connects 19 times, each time from another port.
  for attempt in 0..<19 { ring.say("link: 10.0.0.7:\(40_000 + attempt): its key is revoked", Double(attempt) * 0.2) }
  #expect(try ring.memory.reader().newest == 8)
  ring.journal.recordRepeats(at: ring.at(50))
  #expect(try ring.records(.repeated).isEmpty)
  ring.journal.recordRepeats(at: ring.at(61))
  let count = try #require(try ring.records(.repeated).first)
  #expect(count.a == 11 && count.b == UInt64(Event.report.rawValue) && count.c == 61)
  #expect(count.level == Level.notice.rawValue && count.node.byte(0) == UInt8(ascii: "l"))
  // Ten further repeats add only one record, because a continuing repeat is logged once per interval.
  for attempt in 0..<10 { ring.say("link: 10.0.0.7:\(50_000 + attempt): its key is revoked", 62) }
  #expect(try ring.memory.reader().newest == 10)
}

@Test func `an event about another subject is written`() throws {
  let ring = Ring()
  for _ in 0..<100 { ring.journal.record(.notice, .peerVanished, at: ring.at(1), node: node(1)) }
  ring.journal.record(.notice, .peerVanished, at: ring.at(1), node: node(2))
  ring.say("link: 10.0.0.7:1: no TLS", 1)
  ring.say("link: 10.0.0.8:1: no TLS", 1)
  #expect(try ring.records(.peerVanished).count == 9)
  #expect(try ring.records(.report).count == 2)
}

@Test func `after a quiet minute nothing is held against a subject`() throws {
  let ring = Ring()
  for second in 0..<8 { ring.journal.record(.notice, .peerAppeared, at: ring.at(Double(second)), node: node(1)) }
  for second in 70..<78 { ring.journal.record(.notice, .peerAppeared, at: ring.at(Double(second)), node: node(1)) }
  #expect(try ring.records(.peerAppeared).count == 16)
}

@Test func `faults and records of level debug are all written`() throws {
  let ring = Ring(level: .debug)
  for _ in 0..<100 { ring.journal.record(.fault, .panic, at: .zero) }
  for _ in 0..<100 { ring.journal.record(.debug, .advertisementSent, at: .zero) }
  #expect(try ring.memory.reader().newest == 200)
}

@Test func `the level changes for every copy`() throws {
  let ring = Ring()
  let copy = ring.journal
  ring.journal.setLevel(.warning)
  copy.record(.notice, .boxStarted, at: .zero)
  #expect(try ring.memory.reader().newest == 0 && copy.level == .warning)
}

@Test func `an hour of floods from made up subjects leaves what was before`() throws {
  let ring = Ring()
  ring.journal.record(.notice, .boxStarted, at: .zero, 7)
  var random = SeededRandom(seed: 1)
  for tick in 0..<18_000 {
    let now = Double(tick) / 5
    let strange = node(random.next())
    ring.journal.record(
      .info, .frameRefused, at: ring.at(now), link: UInt8(tick % 64), random.next() % 30, node: strange)
    ring.journal.record(.info, .channelOpened, at: ring.at(now), random.next(), node: strange)
    ring.journal.record(.info, .linkOpening, at: ring.at(now), random.next() % 5, 1)
    ring.journal.record(.info, .candidateFound, at: ring.at(now), random.next() % 5, random.next())
    ring.journal.record(.notice, .peerAppeared, at: ring.at(now), node: strange)
    ring.journal.record(.notice, .peerVanished, at: ring.at(now), node: strange)
    ring.journal.record(.info, .sessionOpened, at: ring.at(now), random.next(), node: strange)
    ring.say("link: 10.1.\(random.next() % 256).\(random.next() % 256):\(tick): sends no TLS", now)
    if tick % 50 == 0 { ring.journal.recordRepeats(at: ring.at(now)) }
  }
  let reader = try ring.memory.reader()
  #expect(reader.record(1)?.a == 7)
  #expect(reader.newest > 500 && reader.newest < 3000, "\(reader.newest) records")
}

@Test func `at the end every count is told`() throws {
  let ring = Ring()
  for _ in 0..<20 { ring.journal.record(.notice, .peerVanished, at: ring.at(1), node: node(1)) }
  ring.journal.recordRepeats(at: ring.at(2), isLast: true)
  #expect(try ring.records(.repeated).first?.a == 12)
}
