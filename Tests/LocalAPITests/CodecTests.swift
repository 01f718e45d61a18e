import CSystem
import LocalAPI
import Primitives
import Session
import SessionSupport
import Testing
import TestSupport

/// The packets of vectors.txt by name. The tests of the Swift library, an independent implementation, read the same
/// file.
private func vectors() throws -> [String: [UInt8]] {
  let path = "\(#filePath)".replacing("CodecTests.swift", with: "vectors.txt")
  let file = try #require(fopen(path, "r"))
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&bytes, 1, bytes.count, file)
  var vectors: [String: [UInt8]] = [:]
  for line in String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n") where !line.hasPrefix("#") {
    let words = line.split(separator: " ", maxSplits: 1)
    vectors[String(words[0])] = hex(String(words[1]))
  }
  return vectors
}

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let node = NodeID(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff)
private let address = MemberAddress(node: node, endpoint: 0x0a0b_0c0d)
private let peer = LocalPeer(name: bytes("bob"), hops: 2, isVerified: true)
private let asked = Invitation(
  handle: InvitationHandle(number: 77), from: address, to: 1, rules: SessionRules(), memberCount: 3,
  context: bytes("join us"), deadline: .zero)

private func read(_ bytes: [UInt8]) throws(LocalSyntaxError) -> LocalRequest { try LocalRequest(bytes.span.bytes) }

private func readEvent(_ bytes: [UInt8]) throws(LocalSyntaxError) -> LocalEvent { try LocalEvent(bytes.span.bytes) }

private let requests: [(name: String, request: LocalRequest)] = [
  ("hello", LocalRequest(1, .hello(least: 1, most: 3, instance: bytes("chat")))),
  ("advertise", LocalRequest(2, .advertise(type: bytes("photos"), info: [bytes("room=4"), bytes("hq")]))),
  ("browse", LocalRequest(3, .browse(type: bytes("photos")))),
  ("open", LocalRequest(4, .open(type: bytes("photos"), SessionRules(onlyFounderAdmits: true, membersMax: 16)))),
  ("open-unsealed", LocalRequest(4, .open(type: bytes("photos"), SessionRules(onlySealed: false)))),
  ("close", LocalRequest(5, .close(3))),
  ("invite", LocalRequest(6, .invite(session: 4, address, milliseconds: 20_000, context: bytes("hi")))),
  ("cancel", LocalRequest(7, .cancel(invitation: 6))),
  ("accept", LocalRequest(8, .answer(invitation: 77, into: 4, text: []))),
  ("decline", LocalRequest(8, .answer(invitation: 77, into: 0, text: bytes("later")))),
  ("leave", LocalRequest(9, .leave(session: 4, text: bytes("bye")))),
  ("send-all", LocalRequest(10, .send(session: 4, .interactive, to: [], data: bytes("hello")))),
  ("send-one", LocalRequest(10, .send(session: 4, .bulk, to: [address], data: [0, 255]))),
  ("send-unreliable", LocalRequest(10, .send(session: 4, .unreliable, to: [address, address], data: []))),
  ("window", LocalRequest(0, .window(session: 4, limit: 262_144))),
  ("gather", LocalRequest(12, .gather(session: 4))),
  ("stream", LocalRequest(13, .stream(session: 4, to: address, name: bytes("log")))),
  ("take", LocalRequest(14, .take(stream: 99, isWanted: true, limit: 65_536))),
  ("refuse", LocalRequest(15, .take(stream: 99, isWanted: false, limit: 0))),
  ("postpone", LocalRequest(15, .take(stream: 99, isWanted: false, limit: 0, isPostponed: true))),
  ("write", LocalRequest(0, .write(stream: 13, data: bytes("hello")))),
  ("stream-window", LocalRequest(0, .streamWindow(stream: 14, limit: 131_072))),
  ("finish", LocalRequest(16, .finish(stream: 13))),
  ("reset", LocalRequest(17, .reset(stream: 14))),
  ("reset-postponed", LocalRequest(17, .reset(stream: 14, isPostponed: true))),
  ("eject", LocalRequest(18, .eject(session: 4, address, text: bytes("out")))),
  ("decide", LocalRequest(19, .decide(session: 4, address, accepts: true))),
  ("connect", LocalRequest(20, .connect(session: 4, address, milliseconds: 30_000))),
]

private let events: [(name: String, event: LocalEvent)] = [
  ("done", .done(request: 2, .done, text: [])),
  ("done-full", .done(request: 4, .full, text: bytes("no place is left"))),
  ("welcome", .welcome(request: 1, version: 1, node: node, name: bytes("bob"))),
  (
    "services",
    .services(
      browse: 3, reference: 9, node, peer,
      [Service(endpoint: 0x0a0b_0c0d, type: bytes("photos"), info: [bytes("room=4"), bytes("hq")])])
  ),
  (
    "services-lost",
    .services(browse: 3, reference: 9, .none, LocalPeer(name: [], hops: 0, isVerified: false), [])
  ),
  ("allTold", .allTold(browse: 3)),
  ("invited", .invited(service: 2, asked, milliseconds: 29_000, peer)),
  ("invitation-connected", .invitationEnded(object: 6, received: 0, .connected)),
  ("invitation-declined", .invitationEnded(object: 6, received: 0, .declined(explanation: bytes("later")))),
  ("invitation-timed-out", .invitationEnded(object: 2, received: 77, .timedOut)),
  ("invitation-cancelled", .invitationEnded(object: 2, received: 77, .cancelled)),
  ("invitation-busy", .invitationEnded(object: 6, received: 0, .busy)),
  ("invitation-full", .invitationEnded(object: 6, received: 0, .full)),
  ("invitation-no-service", .invitationEnded(object: 6, received: 0, .noService)),
  ("invitation-incompatible", .invitationEnded(object: 6, received: 0, .incompatible)),
  ("invitation-session-ended", .invitationEnded(object: 6, received: 0, .sessionEnded)),
  ("identified", .identified(session: 4, SessionID(high: 1, low: 2))),
  ("ended-left", .ended(session: 4, .left, same: 0)),
  ("ended-ejected", .ended(session: 4, .ejected(text: bytes("out")), same: 0)),
  ("ended-full", .ended(session: 4, .full, same: 0)),
  ("ended-same", .ended(session: 4, .isSame(SessionHandle(number: 9)), same: 3)),
  ("member-connecting", .member(session: 4, address, .connecting, peer)),
  ("member-connected", .member(session: 4, address, .connected, peer)),
  ("member-away", .member(session: 4, address, .away, peer)),
  ("member-rejected", .member(session: 4, address, .rejected, peer)),
  ("member-left", .member(session: 4, address, .left(.wanted, text: bytes("bye")), peer)),
  ("member-crashed", .member(session: 4, address, .left(.crashed, text: []), peer)),
  ("member-ejected", .member(session: 4, address, .ejected(text: bytes("out")), peer)),
  ("member-paused", .member(session: 4, address, .paused, peer)),
  ("message", .message(session: 4, from: address, isReliable: true, bytes("hello"))),
  ("message-unreliable", .message(session: 4, from: address, isReliable: false, [])),
  ("sent-delivered", .sent(request: 10, to: address, .delivered)),
  ("sent-failed", .sent(request: 10, to: address, .failed)),
  ("sent-no-room", .sent(request: 10, to: address, .noRoom)),
  ("sent-not-connected", .sent(request: 10, to: address, .notConnected)),
  ("room", .room(session: 4, address)),
  ("done-at", .doneAt(request: 4, endpoint: 0x0a0b_0c0d)),
  ("stream", .stream(session: 4, stream: 99, from: address, bytes("log"))),
  ("stream-bytes", .streamBytes(stream: 14, bytes("hello"))),
  ("stream-room", .streamRoom(stream: 13, limit: 15_360)),
  ("stream-finished", .streamEnded(object: 14, received: 0, .finished)),
  ("stream-cut", .streamEnded(object: 14, received: 0, .reset(.cancelled))),
  ("stream-refused", .streamEnded(object: 13, received: 0, .reset(.refused))),
  ("stream-no-place", .streamEnded(object: 13, received: 0, .reset(.tooMany))),
  ("stream-broken", .streamEnded(object: 13, received: 0, .reset(.broken))),
  (
    "decision-wanted",
    .decisionWanted(session: 4, address, peer, certificates: [[0x30, 0x01, 0xff], [0x30, 0x00]])
  ),
  ("decision-wanted-unsealed", .decisionWanted(session: 4, address, peer, certificates: [])),
  ("stream-lost", .streamEnded(object: 4, received: 99, .lost)),
]

@Suite struct LocalCodecTests {
  @Test func `every request has its golden bytes`() throws {
    let vectors = try vectors()
    for (name, request) in requests {
      let packet = try #require(vectors["request-" + name], "\(name)")
      #expect(request.packet == packet, "\(name)")
      #expect(try read(Array(packet.dropFirst(4))) == request, "\(name)")
    }
    #expect(vectors.keys.filter { $0.hasPrefix("request-") }.count == requests.count)
  }

  @Test func `every event has its golden bytes`() throws {
    let vectors = try vectors()
    for (name, event) in events { #expect(vectors["event-" + name] == event.packet, "\(name)") }
    #expect(vectors.keys.filter { $0.hasPrefix("event-") }.count == events.count)
  }

  @Test func `every event is decoded as it was encoded`() throws {
    for (name, event) in events {
      let packet = Array(event.packet.dropFirst(4))
      let read = try readEvent(packet)
      #expect(read.packet == event.packet, "\(name)")
      // These two events contain handles and times of the daemon that are not in the packet.
      if name != "invited" && name != "ended-same" { #expect(read == event, "\(name)") }
      #expect(try readEvent(packet + [1, 2, 3]).packet == event.packet, "\(name)")
      for count in 0..<packet.count {
        // A later version appended the endpoint of a service to `done`, so a packet without the endpoint is valid.
        if name == "done-at" && count >= 7 { continue }
        // A later version appended the certificates, so a packet without them is valid.
        if name.hasPrefix("decision-wanted") && count == 31 { continue }
        #expect(throws: LocalSyntaxError.truncated, "\(name) \(count)") { try readEvent(Array(packet[..<count])) }
      }
    }
  }

  @Test func `an event with a changed byte is skipped or decodes to another event`() {
    for (name, event) in events {
      let packet = Array(event.packet.dropFirst(4))
      for index in packet.indices {
        var changed = packet
        changed[index] ^= 0x55
        guard let read = try? readEvent(changed) else { continue }
        // These bytes may change without effect: capabilities of later versions, a message's mode, and the reason of a
        // member that has not left.
        let isPassedOver =
          name == "welcome" && (7..<15).contains(index) || name == "message" && index == 25
          || name.hasPrefix("member") && index == 32
        #expect(isPassedOver || read.packet != event.packet, "\(name) \(index)")
      }
    }
  }

  @Test func `events and values of later versions are skipped`() throws {
    #expect(throws: LocalSyntaxError.unsupported) { try readEvent([200, 0, 0, 0, 1]) }
    var member = Array(LocalEvent.member(session: 4, address, .connected, peer).packet.dropFirst(4))
    member[5 + 20 + 6] = 99
    #expect(throws: LocalSyntaxError.outOfRange) { try readEvent(member) }
    // A refusal whose reason comes from a later version is still read as a refusal.
    let refusal = try readEvent([128, 0, 0, 0, 7, 77, 1, 33])
    #expect(refusal == .done(request: 7, .unsupported, text: bytes("!")))
  }

  @Test func `a truncated request is refused`() {
    for (name, request) in requests {
      let packet = Array(request.packet.dropFirst(4))
      // An earlier client sends the request without its last field.
      let required = name.contains("postpone") ? packet.count - 1 : packet.count
      for count in 0..<required {
        #expect(throws: LocalSyntaxError.truncated, "\(name) \(count)") {
          try read(Array(packet[..<count]))
        }
      }
    }
  }

  @Test func `bytes after the last field are ignored, because fields are only appended`() throws {
    for (name, request) in requests {
      var packet = Array(request.packet.dropFirst(4))
      switch request.body {
      case .open, .take(_, _, _, false), .reset(_, false): packet.append(0)
      default: break
      }
      #expect(try read(packet + [1, 2, 3]) == request, "\(name)")
    }
  }

  @Test func `a request with a changed byte is refused or decodes to another request`() {
    for (name, request) in requests {
      let packet = Array(request.packet.dropFirst(4))
      for index in packet.indices {
        var changed = packet
        changed[index] ^= 0x55
        if let read = try? read(changed) { #expect(read != request, "\(name) \(index)") }
      }
    }
  }

  @Test func `a message to more members than a session has is refused`() {
    var packet = Array(LocalRequest(1, .send(session: 4, .interactive, to: [], data: [])).packet.dropFirst(4))
    packet[10] = 64
    #expect(throws: LocalSyntaxError.outOfRange) { try read(packet) }
  }

  @Test func `a request to open may omit the fields of later versions`() throws {
    let old = Array(LocalRequest(4, .open(type: bytes("photos"), SessionRules())).packet.dropFirst(4))
    #expect(try read(old + [0]) == read(old))
    #expect(
      try read(old + [1]) == LocalRequest(4, .open(type: bytes("photos"), SessionRules(), decidesOnMembers: true)))
    #expect(throws: LocalSyntaxError.outOfRange) { try read(old + [2]) }
  }

  @Test func `unknown rules are refused`() {
    var packet = Array(LocalRequest(4, .open(type: bytes("photos"), SessionRules())).packet.dropFirst(4))
    packet[12] = 4
    #expect(throws: LocalSyntaxError.outOfRange) { try read(packet) }
  }

  @Test func `more stream bytes than fit into a packet are refused`() {
    let write = LocalRequest(0, .write(stream: 1, data: [UInt8](repeating: 0, count: 4_097))).packet.dropFirst(4)
    #expect(throws: LocalSyntaxError.outOfRange) { try read(Array(write)) }
    #expect(throws: LocalSyntaxError.outOfRange) { try read(hex("0e 00000001 00000001 02 0000000000000000")) }
  }

  @Test func `the largest request and the largest event fit into a packet`() {
    let data = [UInt8](repeating: 0, count: SessionLimits.messageBytesMax)
    let to = [MemberAddress](repeating: address, count: SessionLimits.membersMax - 1)
    let request = LocalRequest(1, .send(session: 4, .interactive, to: to, data: data)).packet
    #expect(request.count - 4 <= LocalLimits.packetBytesMax)
    let event = LocalEvent.message(session: 4, from: address, isReliable: true, data).packet
    #expect(event.count - 4 <= LocalLimits.packetBytesMax)
    let context = [UInt8](repeating: 0, count: SessionLimits.contextBytesMax)
    #expect(
      LocalRequest(1, .invite(session: 4, address, milliseconds: 0, context: context)).packet.count - 4
        <= LocalLimits.shortPacketBytesMax)
  }
}
