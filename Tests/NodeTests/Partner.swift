import Channel
import Frame
import Node
import Primitives
import TestSupport
import Testing

/// A neighbour that exchanges messages with the bench, and the neighbour's end of the channel. The partner has epoch 1,
/// the bench has epoch 7.
struct Partner {
  let bench: Bench
  let person: Int
  let slot: Int
  let channel: Channel
  private var identifier: UInt64 = 0

  init(_ bench: Bench, _ person: Int, on slot: Int? = nil, meaning epoch: UInt64 = 7) {
    self.bench = bench
    self.person = person
    self.slot = slot ?? bench.neighbour(person)
    channel = Channel(localEpoch: 1, remoteEpoch: epoch)
    channel.routeChanged(pathMTU: 16_640, now: bench.now)
    bench.receive(bench.topology(person, [20]) + bench.profile(person, name: "p"), on: self.slot)
    _ = bench.sent(on: self.slot)
  }

  func say(_ text: String, kind: UInt8 = 3, _ lane: Lane = .interactive) throws {
    let bytes = [UInt8](text.utf8)
    _ = try channel.send(kind: kind, bytes.span.bytes, lane: lane, now: bench.now)
  }

  /// All frames that the partner's channel has ready to send.
  mutating func frames() -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_640, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while let payload = channel.nextFrame(into: buffer, now: bench.now) {
      guard let type = FrameType(rawValue: payload.type.rawValue) else { preconditionFailure("no frame type") }
      identifier += 1
      bytes += frame(
        type, ttl: 16, priority: .interactive, to: bench.identity.id, from: bench.id(person),
        identifier: 1 << 32 | identifier, [UInt8](buffer[..<payload.byteCount]))
    }
    return bytes
  }

  /// A frame with an unreliable message.
  mutating func unreliable(_ text: String) -> [UInt8] {
    let bytes = [UInt8](text.utf8)
    var payload = [UInt8](repeating: 0, count: 16_640)
    let count = payload.withUnsafeMutableBytes { channel.writeDatagram(kind: 9, bytes.span.bytes, into: $0) }
    identifier += 1
    return frame(
      .datagram, ttl: 16, priority: .realtime, to: bench.identity.id, from: bench.id(person),
      identifier: 1 << 32 | identifier, [UInt8](payload[..<count]))
  }

  /// Delivers the frames that the bench has sent to the partner since the last call. Returns these frames.
  func takeSent() throws -> [(header: FrameHeader, payload: [UInt8])] {
    let sent = bench.sent(on: slot)
    for frame in sent where frame.header.isRouted {
      let payload = frame.payload
      switch frame.header.knownType {
      case .segment: try channel.receiveSegment(payload.span.bytes, now: bench.now)
      case .acknowledgement: try channel.receiveAcknowledgement(payload.span.bytes, now: bench.now)
      case .datagram: try channel.receiveDatagram(payload.span.bytes, now: bench.now)
      case .reset: try channel.receiveReset(payload.span.bytes, now: bench.now)
      case .hello, .ping, .pong, .goodbye, .request, .advertisement, .denyList, .handshake, .sealed, .joined, nil: break
      }
    }
    return sent
  }
}

func read(_ bench: Bench) -> [String] {
  var texts: [String] = []
  while let (_, message) = bench.nextMessage() { texts.append(String(decoding: message.bytes, as: UTF8.self)) }
  return texts
}

func send(_ text: String, _ bench: Bench, to person: Int, _ lane: Lane = .interactive)
  throws(AssociationError)
{
  let bytes = [UInt8](text.utf8)
  _ = try bench.node.send(kind: 3, bytes.span.bytes, to: bench.id(person), lane: lane, now: bench.now)
  bench.drain()
}

/// Frames with the topologies of a neighbour and of up to 64 nodes behind that neighbour.
func crowdTopologies(
  _ bench: Bench, _ crowd: [Identity], behind relay: Int = 1, encryption: EncryptionPreference = .none
)
  -> [UInt8]
{
  func link(_ id: NodeID) -> Neighbour { Neighbour(node: id, cost: 10, payloadBytesMax: 16_640, bearer: .ethernet) }
  var bytes = frame(
    .advertisement, from: bench.id(relay),
    advertisement(
      of: Bench.people[relay], .topology,
      body: topologyBody(
        encryption: encryption, [link(bench.identity.id)] + crowd.prefix(Limits.neighboursMax - 1).map { link($0.id) }))
  )
  for (number, identity) in crowd.enumerated() {
    // The neighbour's topology has no room for the 64th node. So the 64th node is linked with the first node of the
    // crowd.
    let isLast = number == Limits.neighboursMax - 1
    var links = [link(isLast ? crowd[0].id : bench.id(relay))]
    if number == 0 && crowd.count >= Limits.neighboursMax { links.append(link(crowd[Limits.neighboursMax - 1].id)) }
    bytes += frame(
      .advertisement, from: identity.id,
      advertisement(of: identity, .topology, body: topologyBody(encryption: encryption, links)))
  }
  return bytes
}
