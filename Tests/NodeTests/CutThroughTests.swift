import Frame
import Node
import Primitives
import TestSupport
import Testing

private final class Stream: FrameSink {
  var hasRoom = true
  var frames: [(header: FrameHeader, payload: [UInt8])] = []
  var askedCount = 0
  var hasUnsentBytes = false

  func take(_ header: FrameHeader, _ payload: RawSpan) -> Bool {
    askedCount += 1
    if hasRoom { frames.append((header, payload.withUnsafeBytes { [UInt8]($0) })) }
    return hasRoom
  }
}

/// A relay that is linked with nodes 1 and 2, and the stream of its link to node 2.
private struct Relay {
  let bench = Bench()
  let left, right: Int
  let stream = Stream()

  init() {
    left = bench.neighbour(1)
    right = bench.neighbour(2)
    bench.receive(bench.topology(1, [20]), on: left)
    bench.receive(bench.topology(2, [20]), on: right)
    _ = bench.sent(on: right)
    bench.node.attach(stream, to: right)
  }

  func pass(_ payload: [UInt8], isSealed: Bool = true) {
    let bytes = frame(
      .sealed, ttl: 5, priority: .bulk, to: bench.id(2), from: bench.id(1), identifier: 1, payload)
    bench.receive(bytes.with { $0[2] = isSealed ? 1 : 0 }, on: left)
  }
}

@Suite struct CutThroughTests {
  @Test func `a frame of the node itself is written to the stream of an idle link at once`() {
    let row = Row(2)
    row.say("first", from: 0, to: 1)
    row.pass(.seconds(1))
    let stream = Stream()
    row.boxes[0].node.attach(stream, to: row.boxes[0].slots[1]!)
    row.say("second", from: 0, to: 1)
    #expect(stream.frames.map(\.header.type) == [FrameType.sealed.rawValue])
  }

  @Test func `a sealed frame is written to the stream of an idle link at once, with one hop less`() {
    let relay = Relay()
    let before = relay.bench.node.link(relay.right).bytesOut
    relay.pass([1, 2, 3])
    #expect(relay.stream.frames.map(\.payload) == [[1, 2, 3]] && relay.stream.frames[0].header.ttl == 4)
    #expect(relay.bench.sent(on: relay.right).isEmpty)
    #expect(relay.bench.node.link(relay.right).bytesOut == before + 51)
    #expect(relay.bench.node.counters.framesForwarded == 1)
  }

  @Test func `a frame for which the stream has no room is queued`() {
    let relay = Relay()
    relay.stream.hasRoom = false
    relay.pass([1])
    #expect(relay.bench.sent(on: relay.right).map(\.payload) == [[1]])
  }

  @Test func `a frame behind a queued frame is queued too`() {
    let relay = Relay()
    relay.bench.carriesOutTransmit = false
    relay.stream.hasRoom = false
    relay.pass([1])
    relay.stream.hasRoom = true
    relay.pass([2])
    #expect(relay.stream.frames.isEmpty)
    #expect(relay.bench.sent(on: relay.right).map(\.payload) == [[1], [2]])
  }

  @Test func `a frame that must be sent inside TLS is queued`() {
    let relay = Relay()
    relay.pass([1], isSealed: false)
    #expect(relay.stream.askedCount == 0 && relay.bench.sent(on: relay.right).count == 1)
  }

  @Test func `the stream of a closed link is no longer used`() {
    let relay = Relay()
    relay.bench.handle(.linkClosed(relay.right))
    let again = relay.bench.neighbour(2, epoch: 2)
    relay.bench.receive(relay.bench.topology(2, [20], epoch: 2), on: again)
    _ = relay.bench.sent(on: again)
    relay.pass([1])
    #expect(again == relay.right && relay.stream.askedCount == 0)
    #expect(relay.bench.sent(on: again).count == 1)
  }
}
