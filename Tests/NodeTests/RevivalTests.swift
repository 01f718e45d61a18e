import Channel
import Frame
import Primitives
import Testing

@testable import Mesh
@testable import Node

@Suite struct RevivalTests {
  private let peer = NodeID(high: 1, low: 2)
  private let now = Instant.zero + .seconds(1000)

  /// Creates an association (the node's state for one peer) with a peer of epoch 9. The association has received one
  /// message that nobody has read.
  private func associationWithMessage(in associations: inout Associations) throws -> Association {
    let route = Route(link: 0, firstHop: peer, hops: 1, cost: 10, payloadBytesMax: 1400)
    let association = associations.begin(with: peer, epoch: 9, .clear, route: route, from: 0, now: now)
    let other = Channel(localEpoch: 9, remoteEpoch: association.channel.localEpoch)
    other.routeChanged(pathMTU: 1400, hops: 1, oldPathLives: false, now: now)
    let text = [UInt8]("unread".utf8)
    _ = try other.send(kind: 7, text.span.bytes, lane: .interactive, now: now)
    var buffer = [UInt8](repeating: 0, count: 1400)
    let count = try #require(buffer.withUnsafeMutableBytes { other.nextFrame(into: $0, now: now)?.byteCount })
    try association.channel.receiveSegment(buffer.span.bytes.extracting(0..<count), now: now)
    return association
  }

  @Test func `an acknowledged message can still be read after a refusal has ended`() throws {
    var associations = Associations(epoch: 3)
    let association = try associationWithMessage(in: &associations)
    association.channel.close()
    associations.revive(association, now: now)
    #expect(association.channel.nextMessage(.interactive).map { String(decoding: $0.bytes, as: UTF8.self) } == "unread")
  }

  @Test func `the peer gets a new channel once all messages are read`() throws {
    var associations = Associations(epoch: 3)
    let association = try associationWithMessage(in: &associations)
    association.channel.close()
    _ = association.channel.nextMessage(.interactive)
    associations.revive(association, now: now)
    #expect(!association.channel.isClosed && association.channel.localEpoch == 4)
  }
}
