import Testing

@testable import Causeway

private let requests: [(name: String, number: UInt32, request: Request)] = [
  ("advertise", 2, .advertise(type: "photos", pairs: ["room=4", "hq"])),
  ("browse", 3, .browse(type: "photos")),
  ("open", 4, .open(type: "photos", Rules(membersMax: 16, onlyFounderAdmits: true))),
  ("open-unsealed", 4, .open(type: "photos", Rules(allowsUnsealed: true))),
  ("close", 5, .close(3)),
  ("invite", 6, .invite(session: 4, address, milliseconds: 20_000, context: bytes("hi"))),
  ("cancel", 7, .cancel(invitation: 6)),
  ("accept", 8, .answer(invitation: 77, session: 4, explanation: "")),
  ("decline", 8, .answer(invitation: 77, session: 0, explanation: "later")),
  ("leave", 9, .leave(session: 4, farewell: "bye")),
  ("send-all", 10, .send(session: 4, .reliable, to: [], bytes("hello"))),
  ("send-one", 10, .send(session: 4, .bulk, to: [address], [0, 255])),
  ("send-unreliable", 10, .send(session: 4, .unreliable, to: [address, address], [])),
  ("window", 0, .window(session: 4, limit: 262_144)),
  ("gather", 12, .gather(session: 4)),
  ("stream", 13, .stream(session: 4, address, name: "log")),
  ("take", 14, .take(stream: 99, isWanted: true, limit: 65_536)),
  ("refuse", 15, .take(stream: 99, isWanted: false, limit: 0)),
  ("postpone", 15, .take(stream: 99, isWanted: false, limit: 0, isPostponed: true)),
  ("write", 0, .write(stream: 13, bytes("hello"))),
  ("stream-window", 0, .streamWindow(stream: 14, limit: 131_072)),
  ("finish", 16, .finish(stream: 13)),
  ("reset", 17, .reset(stream: 14)),
  ("reset-postponed", 17, .reset(stream: 14, isPostponed: true)),
  ("eject", 18, .eject(session: 4, address, text: "out")),
  ("decide", 19, .decide(session: 4, address, isAccepted: true)),
  ("connect", 20, .connect(session: 4, address, milliseconds: 30_000)),
]

private let events: [(name: String, number: UInt32, event: Event)] = [
  ("done", 2, .done(nil)),
  ("done-at", 4, .done(nil, endpoint: address.endpoint)),
  ("done-full", 4, .done(CausewayError(.full, "no place is left"))),
  (
    "welcome", 1,
    .welcome(Welcome(version: 1, node: address.node, name: "bob", resultsMax: 256))
  ),
  ("services", 3, .services(reference: 9, [service(address, ["room": "4", "hq": ""])])),
  ("services-lost", 3, .services(reference: 9, [])),
  ("allTold", 3, .allTold),
  (
    "invited", 2,
    .invited(
      Invited(
        number: 77, from: address, peer: bob, rules: Rules(), memberCount: 3, milliseconds: 29_000,
        context: bytes("join us")))
  ),
  ("invitation-connected", 6, .invitationEnded(received: 0, .connected)),
  ("invitation-declined", 6, .invitationEnded(received: 0, .declined("later"))),
  ("invitation-timed-out", 2, .invitationEnded(received: 77, .timedOut)),
  ("invitation-cancelled", 2, .invitationEnded(received: 77, .cancelled)),
  ("invitation-busy", 6, .invitationEnded(received: 0, .busy)),
  ("invitation-full", 6, .invitationEnded(received: 0, .full)),
  ("invitation-no-service", 6, .invitationEnded(received: 0, .noService)),
  ("invitation-incompatible", 6, .invitationEnded(received: 0, .incompatible)),
  ("invitation-session-ended", 6, .invitationEnded(received: 0, .sessionEnded)),
  ("identified", 4, .identified([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2])),
  ("ended-left", 4, .ended(.left)),
  ("ended-ejected", 4, .ended(.ejected("out"))),
  ("ended-full", 4, .ended(.full)),
  ("ended-same", 4, .ended(.merged)),
  ("member-connecting", 4, .member(member(.connecting))),
  ("member-connected", 4, .member(member(.connected))),
  ("member-away", 4, .member(member(.away))),
  ("member-rejected", 4, .member(member(.rejected))),
  ("member-left", 4, .member(member(.left("bye")))),
  ("member-crashed", 4, .member(member(.crashed))),
  ("member-ejected", 4, .member(member(.ejected("out")))),
  ("member-paused", 4, .member(member(.paused))),
  ("message", 4, .message(from: address, isReliable: true, bytes("hello"))),
  ("message-unreliable", 4, .message(from: address, isReliable: false, [])),
  ("sent-delivered", 10, .sent(address, .delivered)),
  ("sent-failed", 10, .sent(address, .failed)),
  ("sent-no-room", 10, .sent(address, .noRoom)),
  ("sent-not-connected", 10, .sent(address, .notConnected)),
  ("room", 4, .room(address)),
  ("stream", 4, .stream(received: 99, from: address, name: "log")),
  ("stream-bytes", 14, .streamBytes(bytes("hello"))),
  ("stream-room", 13, .streamRoom(limit: 15_360)),
  ("stream-finished", 14, .streamEnded(received: 0, .finished)),
  ("stream-cut", 14, .streamEnded(received: 0, .cut)),
  ("stream-refused", 13, .streamEnded(received: 0, .refused)),
  ("stream-no-place", 13, .streamEnded(received: 0, .noPlace)),
  ("stream-broken", 13, .streamEnded(received: 0, .broken)),
  ("stream-lost", 4, .streamEnded(received: 99, .lost)),
  ("decision-wanted", 4, .decisionWanted(address, bob, certificates: [[0x30, 0x01, 0xff], [0x30, 0x00]])),
  ("decision-wanted-unsealed", 4, .decisionWanted(address, bob, certificates: [])),
]

@Test(arguments: requests.indices) func `the library writes the golden requests`(index: Int) {
  let (name, number, request) = requests[index]
  #expect(request.packet(number) == vectors["request-" + name], "\(name)")
}

@Test func `a hello requests version 1`() {
  #expect(Request.hello(name: "chat").packet(1) == [0, 0, 0, 14, 1, 0, 0, 0, 1, 0, 1, 0, 1, 4] + bytes("chat"))
}

@Test(arguments: events.indices) func `the library reads the golden events`(index: Int) throws {
  let (name, number, event) = events[index]
  let golden = try #require(vectors["event-" + name])
  let read = try Event.read(golden[4...])
  #expect(read.number == number && read.event == event, "\(name): \(read)")
}

@Test func `every golden packet is tested`() {
  let known = Set(requests.map { "request-" + $0.name } + events.map { "event-" + $0.name } + ["request-hello"])
  #expect(known == Set(vectors.keys))
}

@Test func `a request to open a session with member decisions has one more byte`() {
  let plain = Request.open(type: "photos", Rules()).packet(4)
  #expect(Request.open(type: "photos", Rules(), decides: true).packet(4)[4...] == plain[4...] + [1])
}

@Test func `an event of the first daemon version contains no certificates`() throws {
  let golden = try #require(vectors["event-decision-wanted-unsealed"])
  #expect(try Event.read(golden[4..<golden.count - 1]).event == .decisionWanted(address, bob, certificates: []))
}

@Test func `more stream bytes than fit into a packet are refused`() {
  #expect(throws: Never.self) { try Event.read(streamBytesPacket(4, [UInt8](repeating: 0, count: 4_096))[4...]) }
  #expect(throws: CausewayError.self) {
    try Event.read(streamBytesPacket(4, [UInt8](repeating: 0, count: 4_097))[4...])
  }
}

/// The number of bytes that later daemon versions appended to an event, by the name of the event. Without these bytes
/// the event has the form of the first daemon version, and must be accepted.
private let appended = ["welcome": 2, "done-at": 4, "decision-wanted": 10, "decision-wanted-unsealed": 1]

@Test func `every prefix of an event is refused`() {
  for (name, _, _) in events {
    guard let golden = vectors["event-" + name] else { continue }
    for end in 4..<golden.count - (appended[name] ?? 0) {
      #expect(throws: CausewayError.self, "\(name), \(end) bytes") { try Event.read(golden[4..<end]) }
    }
  }
}

@Test func `no changed byte traps, and bytes after the last field are ignored`() throws {
  for (name, _, event) in events {
    guard var golden = vectors["event-" + name] else { continue }
    for offset in 4..<golden.count {
      for value in [0, 1, 0x7f, 0x80, 0xff] as [UInt8] {
        let before = golden[offset]
        golden[offset] = value
        _ = try? Event.read(golden[4...])
        golden[offset] = before
      }
    }
    #expect(try Event.read((golden + [1, 2, 3])[4...]).event == event, "\(name)")
  }
}

@Test func `an event of a later version is skipped`() throws {
  #expect(try Event.read(packet(200, 4)[4...]).event == nil)
  #expect(try Event.read(memberPacket(4, address, 99)[4...]).event == nil)
}

@Test func `names from other nodes are safe to print`() throws {
  let packet = packet(136, 4) {
    $0.put(address)
    $0.put([2, 1, 4, 0x1b, 0x5b, 0xff, 0x41, 1, 0, 0])
  }
  #expect(
    try Event.read(packet[4...]).event
      == .member(
        Member(address: address, peer: Peer(name: "\u{fffd}[\u{fffd}A", hops: 2, isVerified: true), state: .connected)))
}

@Test func `a node with too many or too long services is refused`() {
  func services(_ count: UInt8, _ length: UInt64) -> [UInt8] {
    packet(130, 3) {
      $0.put([0, 9])
      $0.put(Array(repeating: 1, count: 16) + [2, 1, 0, count])
      for _ in 0..<count {
        $0.put(length, count: 2)
        $0.put([0, 0, 0, 1, 0, 0] + Array(repeating: 0, count: Int(length) - 6))
      }
    }
  }
  #expect(throws: Never.self) { try Event.read(services(16, 2048)[4...]) }
  #expect(throws: CausewayError.self) { try Event.read(services(17, 6)[4...]) }
  #expect(throws: CausewayError.self) { try Event.read(services(1, 2049)[4...]) }
}

@Test func `packets are split from a stream that arrives in pieces of any size`() throws {
  let packets = (1...3).map { packet(131, UInt32($0)) }
  for size in 1...packets.joined().count {
    var splitter = PacketSplitter(), found: [[UInt8]] = []
    let stream = Array(packets.joined())
    for start in stride(from: 0, to: stream.count, by: size) {
      splitter.append(stream[start..<min(start + size, stream.count)])
      while let packet = try splitter.next() { found.append(Array(packet)) }
    }
    #expect(found == packets.map { Array($0[4...]) })
  }
}

@Test(arguments: [0, 4, 66_561, 0xffff_ffff] as [UInt32])
func `an invalid length is refused before anything is stored`(
  length: UInt32
) {
  var splitter = PacketSplitter()
  splitter.append((0..<4).map { UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * $0)) })
  #expect(throws: CausewayError.self) { try splitter.next() }
}

@Test func `an address is written and read as text`() {
  #expect(address.description == "00112233445566778899aabbccddeeff/0a0b0c0d")
  #expect(Address(address.description) == address)
  for text in ["", "/", "00/00", address.description + "0", "0011223344556677/8899aabbccddeeff/0a0b0c0d"] {
    #expect(Address(text) == nil, "\(text)")
  }
}
