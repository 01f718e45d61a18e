import Channel
import FuzzSupport
import LocalAPI
import Primitives
import SealSupport
import Session
import SessionSupport
import TestSupport

/// Decodes any bytes as a request and as an event. A decoded packet must encode and decode to the same value. The bytes
/// are also sent as packets of two clients of one box. In the input, each packet follows the client's number and a
/// length.
///
/// Bit 6 of that number inserts values that the input cannot know: this node's id, and the daemon's number of the
/// client's latest invitation or stream.
func fuzzLocal(_ input: UnsafeRawBufferPointer) {
  if let request = try? LocalRequest(input.bytes) {
    // The comparison is of values, not of bytes: the decoder ignores bytes behind the last field, and the encoder
    // writes default values.
    let written = Array(request.packet.dropFirst(4))
    expect((try? LocalRequest(written.span.bytes)) == request, "a request is written otherwise than it was read")
  }
  if let event = try? LocalEvent(input.bytes) {
    let written = Array(event.packet.dropFirst(4))
    expect((try? LocalEvent(written.span.bytes)) == event, "an event is written otherwise than it was read")
  }
  var script = Script(input)
  let box = LocalBox()
  let clients = ClientRecords(box)
  var now = Instant.zero + .seconds(1)
  for user in 0..<2 { _ = clients.attach(user: UInt32(user), isOperator: false, groups: [], now: now) }
  // For each client, the daemon's number of its latest invitation and of its latest stream.
  var invited: [[UInt8]] = [[0, 0, 0, 0], [0, 0, 0, 0]], opened = invited
  while !script.isOver {
    let what = script.u8()
    let client = Int(what % 2)
    if what & 0x80 == 0 {
      var packet = Array(script.bytes(Int(script.u16())))
      if what & 0x40 != 0, packet.count >= 25 || packet.count >= 9 && (packet[0] == 8 || packet[0] == 14) {
        switch packet[0] {
        case 6, 13: packet.replaceSubrange(9..<25, with: box.id)
        case 8: packet.replaceSubrange(5..<9, with: invited[client])
        case 14: packet.replaceSubrange(5..<9, with: opened[client])
        default: break
        }
      }
      clients.receive(packet.span.bytes, from: client, now: now)
    } else {
      now = now + .milliseconds(UInt64(script.u8()) * 100)
      box.sessions.handleTimeouts(now: now)
      clients.handleTimeouts(now: now)
    }
    box.settle(clients, now)
    var count = 0
    while let packet = clients.nextPacket(for: client, now: now) {
      count += 1
      expect(count < 100_000, "a client is told without end")
      expect(packet.count - 4 <= LocalLimits.packetBytesMax, "an event is longer than a packet")
      expect(Int(packet.span.bytes.word32(0)) == packet.count - 4, "a packet has another length than it says")
      if packet[4] == 132 { invited[client] = Array(packet[9..<13]) }
      if packet[4] == 140 { opened[client] = Array(packet[9..<13]) }
    }
    let (shares, loans) = box.sessions.roomGranted
    expect(
      shares <= SessionLimits.sharePoolBytes && loans <= SessionLimits.loanPoolBytes, "more is granted than there is")
  }
}

/// A single node with two clients, which find each other, invite each other and exchange messages.
private final class LocalBox: LocalNode {
  private let cryptography = StandInCryptography(Identity(1))
  let sessions: Sessions
  let name = Array("box".utf8)

  init() {
    let point = cryptography.identity.point
    sessions = Sessions(
      local: cryptography.identity.id, point: PublicPoint(InlineArray { point[$0] }), cryptography, seed: 1)
  }

  /// The node's id in the encoding of the local API.
  var id: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(sessions.local)
    return bytes
  }

  func peer(_ node: NodeID) -> LocalPeer? { nil }
  func certificates(of node: NodeID) -> [[UInt8]]? { [] }
  func endpoint(user: UInt32, type: [UInt8], instance: [UInt8]) -> UInt32 { user + 1 + UInt32(type.count) * 2 }
  func advertise(_ service: Service, now: Instant) throws(SessionError) { try sessions.advertise(service) }
  func withdraw(_ endpoint: UInt32, now: Instant) { sessions.withdraw(endpoint, now: now) }

  func send(
    _ data: [UInt8], in session: SessionHandle, to: MemberAddress, lane: Lane, now: Instant
  ) throws(SessionError) -> SessionMessageID {
    try sessions.send(data, in: session, to: [to], lane: lane, now: now, canSend: { _, _, _ in true }).id
  }

  func sendUnreliably(
    _ data: [UInt8], in session: SessionHandle, to: MemberAddress, now: Instant
  ) throws(SessionError) {
    _ = try sessions.sendUnreliably(data, in: session, to: [to], now: now)
  }

  func settle(_ clients: ClientRecords, _ now: Instant) {
    while true {
      while let output = sessions.nextOutput(now: now, canSend: { _, _, _ in true }) {
        sessions.completed(output.tag, isDelivered: true, now: now)
      }
      guard let event = sessions.nextEvent() else { return }
      clients.receive(event, now: now)
    }
  }
}
