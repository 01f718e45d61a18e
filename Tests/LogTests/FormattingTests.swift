@testable import Journal
@testable import Log
import Primitives
import Testing
import Text

private func line(
  _ level: Level, _ event: Event, link: UInt8 = 0xFF, _ a: UInt64 = 0, _ b: UInt64 = 0, _ c: UInt64 = 0,
  node: NodeID = .none, wall: Int64 = 1_795_267_677_123_456_789
) -> String {
  let record = JournalRecord(
    sequence: 1, instant: .zero, wallNanoseconds: wall, level: level.rawValue, event: event.rawValue, link: link,
    a: a, b: b, c: c, node: node)
  return String(decoding: EventFormatter.line(record).bytes, as: UTF8.self)
}

@Test func `a line contains time, level, link and text`() {
  #expect(
    line(.notice, .linkUp, link: 3, 3, 1, 16640, node: aliceID)
      == "2026-11-21T13:27:57.123Z notice  link 3: up over wifi-direct with a11ce000…: "
      + "capabilities 0x0001, frames up to 16640 bytes\n"
  )
}

@Test func `codes are shown as words`() {
  #expect(line(.notice, .linkDown, 4, 7, 9).hasSuffix("down: bluetooth-le with ?, timed-out, after 9 s\n"))
  #expect(line(.warning, .frameRefused, 4, node: bobID).hasSuffix("frame from b0b00000… refused: ttl-zero\n"))
  #expect(line(.debug, .segmentRefused, 32, 10, node: bobID).hasSuffix("segment from b0b00000… refused, 10 bytes\n"))
  #expect(line(.warning, .frameRefused, 99).hasSuffix("frame from ? refused: reason 99\n"))
  #expect(line(.info, .candidateFound, 1, 0xABCD_EF01_0000_0000).hasSuffix("over ethernet, claims abcdef01\n"))
  #expect(line(.notice, .boxStopped, 15).hasSuffix("box stopped by signal 15\n"))
  #expect(line(.notice, .boxStopped).hasSuffix("box stopped\n"))
  #expect(line(.notice, .clockStepped, 5_000_000_000, 2_000_000_000).hasSuffix("the wall clock was stepped by 3 s\n"))
}

@Test func `text from other nodes cannot control the terminal`() {
  let escape = NodeID(high: 0x1B5B_324A_0741_4243, low: 0x7F62_0000_0000_0000)
  #expect(line(.info, .dialFailed, 1, 7, node: escape).hasSuffix("dial 7 over ethernet failed: ?[2J?ABC?b\n"))
}

@Test func `a text is truncated between characters`() {
  #expect(JournalText("123456789012345é") == JournalText("123456789012345" as StaticString))
  #expect(JournalText("12345678901234é") == JournalText("12345678901234é" as StaticString))
  #expect(JournalText("short" as String) == JournalText("short" as StaticString))
}

/// Event 5 is reserved, because a former version had an event with this number. Event 60000 does not exist.
@Test(arguments: [5, 60000] as [UInt16])
func `an event of another version is shown by its numbers`(_ event: UInt16) {
  let record = JournalRecord(
    sequence: 1, instant: .zero, wallNanoseconds: 0, level: 9, event: event, link: 0xFF, a: 1, b: 2, c: 3, node: aliceID
  )
  let text = String(decoding: EventFormatter.line(record).bytes, as: UTF8.self)
  #expect(text == "1970-01-01T00:00:00.000Z level 9 event \(event), unknown to this version: 1 2 3 \(aliceID.text)\n")
  #expect(line(.notice, .repeated, 4, UInt64(event), 60).hasSuffix("4 more in 60 s: event \(event)\n"))
}

@Test func `every event has a text whose fields exist`() {
  let shown = [
    "", "bearer", "close", "frame", "type", "direction", "errno", "signal", "hex", "hint", "step", "character", "full",
    "long", "session", "seal", "end", "event", "lost",
  ]
  for raw in UInt16.min...1000 {
    guard let event = Event(rawValue: raw) else { continue }
    let template = "\(eventText(event))"
    #expect(!template.isEmpty)
    for part in template.split(separator: "{", omittingEmptySubsequences: false).dropFirst() {
      let field = part.prefix { $0 != "}" }.split(separator: ":", omittingEmptySubsequences: false)
      #expect(["a", "b", "c", "node", "text"].contains(field[0]), "\(template)")
      if field.count > 1 { #expect(shown.contains(String(field[1])), "\(template)") }
    }
  }
}

@Test func `the number of remembered names is limited, and the oldest name is evicted`() {
  var names = JournalNames()
  for number in 0...UInt64(JournalNames.namesMax) {
    names.note(
      JournalRecord(
        sequence: number + 1, instant: .zero, wallNanoseconds: 0, level: 5, event: Event.peerNamed.rawValue, link: 0xFF,
        a: UInt64(littleEndian: 0x626F_62), b: 0, c: 0, node: NodeID(high: number, low: 1)))
  }
  #expect(names[NodeID(high: 0, low: 1)].isEmpty)
  #expect(Array(names[NodeID(high: 1, low: 1)]) == Array("bob".utf8))
}
