@testable import Diagnostics
import JSON
@testable import Journal
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

@Test func `a line has time level link and words`() {
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

@Test func `text from elsewhere cannot steer the terminal`() {
  let escape = NodeID(high: 0x1B5B_324A_0741_4243, low: 0x7F62_0000_0000_0000)
  #expect(line(.info, .dialFailed, 1, 7, node: escape).hasSuffix("dial 7 over ethernet failed: ?[2J?ABC?b\n"))
}

@Test func `status as JSON is printable a s c i i`() throws {
  let node = FakeNode()
  node.peers = [peer(bobID, "b\u{202E}\u{9B}\u{7F}ö", info: ["k=\u{1B}[2J"])]
  let json = node.controlStatus().toJSON(withSecrets: true)
  #expect(json.allSatisfy { $0 == 0x0A || (0x20...0x7E).contains($0) })
  let view = try #require(JSONView(parsing: json))
  defer { view.release() }
  var names: [String] = []
  view["peers"].forEach { names.append($0["name"].string) }
  #expect(names == ["b\u{202E}\u{9B}\u{7F}ö"])
}

@Test func `a passphrase is for the operator alone`() throws {
  var status = FakeNode().controlStatus()
  status.bearers = [
    BearerStatus(name: "wifi-direct", state: "group-owner", detail: "2437 MHz", secret: "passphrase abc", problem: "")
  ]
  func detail(_ json: [UInt8]) throws -> String {
    let view = try #require(JSONView(parsing: json))
    defer { view.release() }
    var detail = ""
    view["bearers"].forEach { detail = $0["detail"].string }
    return detail
  }
  #expect(try detail(status.toJSON(withSecrets: true)) == "2437 MHz, passphrase abc")
  #expect(try detail(status.toJSON(withSecrets: false)) == "2437 MHz")
}

@Test func `a part of the status is an object with one member`() throws {
  let report = try StatusReport(FakeNode().controlStatus().toJSON(withSecrets: true))
  defer { report.release() }
  let view = try #require(JSONView(parsing: report.json(of: "links")))
  defer { view.release() }
  #expect(view["links"].exists && !view["box"].exists)
}

@Test func `text is cut between characters`() {
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

@Test func `peers are named exactly or by the start of their ID`() {
  var book = PeerBook()
  let isNew = [peer(aliceID, "alice"), peer(bobID, "bob"), peer(bobID, "bob", hops: 2)].map { book.present($0) }
  #expect(isNew == [true, true, false])
  guard case .one(aliceID) = book.match("alice"), case .one(bobID) = book.match("B0B0"), case .none = book.match("ali"),
    case .none = book.match("b0b"), case .none = book.match("b0b1"), case .none = book.match("")
  else { Issue.record("wrong match"); return }
  let other = NodeID(high: 0xB0B0_FFFF_0000_0000, low: 0)
  _ = book.present(peer(other, "bob"))
  guard case .several(let ids) = book.match("bob"), ids == [bobID, other], case .several = book.match("b0b0"),
    case .one(other) = book.match("b0b0f")
  else { Issue.record("wrong match"); return }
  let lost = [book.lost(other), book.lost(other)]
  #expect(lost[0]?.name == "bob" && lost[1] == nil)
}

@Test func `a name that is somebodys ID gets nothing that is meant for him`() {
  for stolen in [bobID.text, bobID.shortText, bobID.shortText.uppercased()] {
    var book = PeerBook()
    _ = book.present(peer(aliceID, stolen))
    _ = book.present(peer(bobID, "bob"))
    guard case .one(bobID) = book.match(stolen) else { Issue.record("\(stolen)"); continue }
  }
  // A peer has the text of bob's id as its name. While bob's node is unknown, the id must not match that peer.
  var book = PeerBook()
  _ = book.present(peer(aliceID, bobID.text))
  guard case .none = book.match(bobID.text) else { Issue.record("matched"); return }
}

@Test func `a name that is the start of another ID is ambiguous`() {
  var book = PeerBook()
  _ = book.present(peer(aliceID, "b0b0"))
  _ = book.present(peer(bobID, "bob"))
  guard case .several(let ids) = book.match("b0b0"), ids == [aliceID, bobID] else {
    Issue.record("wrong match"); return
  }
}

@Test func `peers of one name are told apart by their IDs`() {
  var book = PeerBook()
  _ = book.present(peer(aliceID, "bob"))
  #expect(book.name(aliceID) == "bob")
  _ = book.present(peer(bobID, "bob"))
  #expect(book.name(aliceID) == "bob (a11ce000)" && book.name(bobID) == "bob (b0b00000)")
}

@Test func `each radio is shown with its share of time spent scanning and dialling`() throws {
  var status = FakeNode().controlStatus()
  var radio = BearerStatus(name: "bluetooth-le", state: "up", detail: "hci0", problem: "")
  radio.use = RadioUse(places: 1, placesMax: 7, scanning: .milliseconds(18_000), dialling: .milliseconds(750))
  status.bearers.append(radio)
  let report = try StatusReport(status.toJSON(withSecrets: true))
  defer { report.release() }
  // The shares of scanning and dialling are computed over an uptime of 75 seconds.
  #expect(
    String(decoding: report.bearersText().bytes, as: UTF8.self) == """
      BEARER        STATE  SCAN  DIAL  DETAIL
      ethernet      up     –     –     eth0
      bluetooth-le  up     24 %  1 %   hci0

      """)
}

@Test func `status is shown as tables`() throws {
  let node = FakeNode()
  node.peers = [peer(bobID, "b\u{1B}ob", info: ["room=kitchen"]), peer(aliceID, "alice")]
  node.peers[1].via = bobID
  let report = try StatusReport(node.controlStatus().toJSON(withSecrets: true))
  defer { report.release() }
  let text = String(decoding: report.text().bytes, as: UTF8.self)
  #expect(
    text == """
      box  a11ce000000000010000000000000001
      causeway 1, up 1 min 15 s, epoch 7, 4.2 MB resident, relays, service “causeway”
      forwarded 0 frames, 0 B; refused ttl-zero 2

      BEARER    STATE  DETAIL
      ethernet  up     eth0

      LINK  NEIGHBOUR  BEARER        STATE  SINCE  RTT     RECEIVED  SENT    QUEUED  ADDRESS
      3     bob        bluetooth-le  up     5 s    1.5 ms  1 B       2.0 kB  0 B     00:11:22:33:44:55 (inbound)

      PEER   ID        HOPS  BEARER       VIA   INFO
      b?ob   b0b00000  1     wifi-direct  –     room=kitchen
      alice  a11ce000  1     wifi-direct  b?ob

      """)
}

@Test func `an answer that is no JSON is refused`() {
  for text in ["", "[]", "{", "hello"] {
    #expect(throws: DiagnosticsError.self) { try StatusReport(Array(text.utf8)) }
  }
}

@Test func `the names that are kept are bounded and the oldest gives way`() {
  var names = JournalNames()
  for number in 0...UInt64(JournalNames.namesMax) {
    names.hear(
      JournalRecord(
        sequence: number + 1, instant: .zero, wallNanoseconds: 0, level: 5, event: Event.peerNamed.rawValue, link: 0xFF,
        a: UInt64(littleEndian: 0x626F_62), b: 0, c: 0, node: NodeID(high: number, low: 1)))
  }
  #expect(names[NodeID(high: 0, low: 1)].isEmpty)
  #expect(Array(names[NodeID(high: 1, low: 1)]) == Array("bob".utf8))
}
