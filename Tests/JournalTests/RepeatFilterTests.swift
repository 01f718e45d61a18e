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

  func say(_ text: String, _ seconds: Double, _ level: Level = .notice, by cause: RecordCause = .box) {
    Array(text.utf8).withUnsafeBytes { journal.recordText(level, .report, at: at(seconds), $0, cause: cause) }
  }

  /// Refuses addresses of an interface, with two records each. Returns the number of lines that were written.
  func flood(
    _ interface: UInt32, _ seconds: Double = 0, about node: NodeID = .none, count: Int = 1_000
  ) throws -> Int {
    let before = try memory.reader().newest
    let cause = RecordCause.interface(interface).about(node)
    for number in 1_000..<1_000 + count {
      say("link: fe80::a\(number)%if\(interface): its key is not pinned here", seconds, by: cause)
    }
    return Int(try memory.reader().newest - before) / 2
  }

  /// Whether a line is written.
  func isWritten(_ text: String, _ seconds: Double = 0, by cause: RecordCause) throws -> Bool {
    let before = try memory.reader().newest
    say(text, seconds, by: cause)
    return try memory.reader().newest > before
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

@Test func `repeated records are counted, and the count is recorded`() throws {
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

@Test func `repeats are counted per subject`() throws {
  let ring = Ring()
  for _ in 0..<100 { ring.journal.record(.notice, .peerVanished, at: ring.at(1), node: node(1)) }
  ring.journal.record(.notice, .peerVanished, at: ring.at(1), node: node(2))
  ring.say("link: 10.0.0.7:1: no TLS", 1)
  ring.say("link: 10.0.0.8:1: no TLS", 1)
  #expect(try ring.records(.peerVanished).count == 9)
  #expect(try ring.records(.report).count == 2)
}

@Test func `after a quiet minute the records of a subject are written again`() throws {
  let ring = Ring()
  for second in 0..<8 { ring.journal.record(.notice, .peerAppeared, at: ring.at(Double(second)), node: node(1)) }
  for second in 70..<78 { ring.journal.record(.notice, .peerAppeared, at: ring.at(Double(second)), node: node(1)) }
  #expect(try ring.records(.peerAppeared).count == 16)
}

@Test func `faults and debug records are never suppressed`() throws {
  let ring = Ring(level: .debug)
  for _ in 0..<100 { ring.journal.record(.fault, .panic, at: .zero) }
  for _ in 0..<100 { ring.journal.record(.debug, .advertisementSent, at: .zero) }
  #expect(try ring.memory.reader().newest == 200)
}

@Test func `a new level applies to every copy of the journal`() throws {
  let ring = Ring()
  let copy = ring.journal
  ring.journal.setLevel(.warning)
  copy.record(.notice, .boxStarted, at: .zero)
  #expect(try ring.memory.reader().newest == 0 && copy.level == .warning)
}

@Test func `an hour of floods from invented subjects does not overwrite earlier records`() throws {
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

@Test func `every pending count is recorded at the end`() throws {
  let ring = Ring()
  for _ in 0..<20 { ring.journal.record(.notice, .peerVanished, at: ring.at(1), node: node(1)) }
  ring.journal.recordRepeats(at: ring.at(2), isLast: true)
  #expect(try ring.records(.repeated).first?.a == 12)
}

/// The burst of a kind is 128 records in a ring of 4,096: 96 for everybody, and a reserve of 32.
@Suite struct JournalShareTests {
  private let ring = Ring()

  @Test func `all addresses of one interface together use half of the budget of a kind`() throws {
    #expect(try ring.flood(2) == 24)
    #expect(try ring.flood(2) == 0)
    #expect(try ring.flood(3) == 12)
    #expect(try ring.isWritten("link: 10.0.0.7:1: no TLS", by: .interface(4)))
  }

  @Test func `a record about a node that the operator knows is written whatever strangers cause`() throws {
    for interface in UInt32(1)...60 { _ = try ring.flood(interface) }
    #expect(try !ring.isWritten("link: 10.0.0.7:1: no TLS", by: .interface(61)))
    for number in UInt64(1)...5 {
      let cause = RecordCause.interface(2).about(node(number))
      #expect(try ring.isWritten("link: 10.0.0.\(number):1: its key is revoked", by: cause))
    }
  }

  @Test func `a node that the operator knows uses at most half of the reserve`() throws {
    _ = try ring.flood(2)
    #expect(try ring.flood(2, about: node(1)) == 8)
    #expect(try ring.flood(2, about: node(2)) == 4)
    #expect(try ring.isWritten("link: 10.0.0.7:1: its key is revoked", by: .interface(2).about(node(3))))
  }

  @Test func `records of the box itself are written beside those of strangers`() throws {
    // Texts of “link” and of “bluetooth” are of one kind.
    for interface in UInt32(1)...60 { _ = try ring.flood(interface) }
    #expect(try ring.isWritten("bluetooth: hci0 is gone", by: .box))
    for number in 0..<100 { ring.say("bluetooth: fault \(number * 1000)", 0) }
    #expect(try ring.isWritten("link: 10.0.0.7:1: its key is revoked", by: .interface(2).about(node(1))))
  }

  @Test func `each share is complete again within an hour`() throws {
    for interface in UInt32(2)...5 { _ = try ring.flood(interface) }
    for number in UInt64(1)...4 { _ = try ring.flood(2, about: node(number)) }
    #expect(try ring.flood(2, 60) < 3)
    #expect(try ring.flood(3, 3_700) == 24)
    #expect(try ring.flood(3, 3_700, about: node(1)) == 8)
  }

  @Test func `the refilled budget is shared by the interfaces`() throws {
    var counts: [UInt32: Int] = [:]
    for minute in 0..<600 {
      for interface in UInt32(2)...4 {
        counts[interface, default: 0] += try ring.flood(interface, Double(minute) * 60, count: 20)
      }
    }
    let (least, most) = (counts.values.min()!, counts.values.max()!)
    #expect(least > 120 && most - least < least / 4, "\(counts)")
  }

  @Test func `the records of one user leave room for those of other users`() throws {
    for number in 0..<100 { ring.say("api: user 1000 refused: no \(number * 1000)", 0, by: .user(1000)) }
    #expect(try ring.isWritten("api: user 1001 refused: not in the group", by: .user(1001)))
  }

  @Test func `records about a link are charged to the cause of the link`() throws {
    // One machine takes the links 0 to 31, again and again under new keys.
    for link in UInt8(0)..<32 { ring.journal.attribute(link: link, to: .interface(2)) }
    for number in UInt64(0)..<1_000 {
      ring.journal.record(.notice, .linkUp, at: ring.at(1), link: UInt8(number % 32), node: node(number))
    }
    #expect(try ring.records(.linkUp).count == 48)
    ring.journal.attribute(link: 40, to: .interface(3))
    ring.journal.record(.notice, .linkUp, at: ring.at(1), link: 40, node: node(2_000))
    ring.journal.attribute(link: 3, to: .interface(2).about(node(3_000)))
    ring.journal.record(.notice, .linkUp, at: ring.at(1), link: 3, node: node(3_000))
    #expect(try ring.records(.linkUp).count == 50)
  }

  @Test func `the smallest ring has room for records of strangers and of a known node`() throws {
    let ring = Ring(capacity: JournalLayout.capacityMin)
    #expect(try ring.flood(2) == 6)
    #expect(try ring.isWritten("link: 10.0.0.7:1: its key is revoked", by: .interface(2).about(node(1))))
  }
}
