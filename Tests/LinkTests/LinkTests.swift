import Frame
import Link
import Primitives
import TestSupport
import Testing

private let here = NodeID(high: 1, low: 1)
private let there = NodeID(high: 2, low: 2)
private let start = Instant.zero + .seconds(100)

/// A link from the node `here` to the node `there`, opened at `start`.
private final class Bench {
  private let memory = Borrowed(FrameQueue.byteCount)
  private let poolMemory = Borrowed(FramePool.byteCount)
  var link: Link

  init(bearer: BearerKind = .ethernet, isInbound: Bool = false) {
    link = Link(memory.bytes, FramePool(poolMemory.bytes))
    let local = Link.Local(node: here, epoch: 5, capabilities: .relay, name: DisplayName("here"))
    link.open(peer: there, bearer: bearer, isInbound: isInbound, local: local, now: start)
  }

  /// Removes and returns all frames in the link's queue.
  func sent() -> [(header: FrameHeader, payload: [UInt8])] {
    var all: [(header: FrameHeader, payload: [UInt8])] = []
    while true {
      let bytes = [UInt8](unsafeUninitializedCapacity: Limits.frameBytesMax) { buffer, count in
        count = link.pop(into: UnsafeMutableRawBufferPointer(buffer))
      }
      if bytes.isEmpty { return all }
      all += frames(in: bytes)
    }
  }

  /// Lets the link receive a frame, as the node would. Returns the reason why the link refused the frame, or nil.
  func receive(
    _ type: FrameType, _ payload: [UInt8], from source: NodeID = there, at now: Instant = start
  ) -> FrameError? {
    refusal { () throws(FrameError) in
      let header = FrameHeader(
        type: type, priority: .control, payloadByteCount: payload.count, source: source, identifier: 0)
      link.noteReceived(FrameHeader.byteCount + payload.count, now: now)
      try link.receive(header, payload.span.bytes, type, local: here, now: now)
    }
  }

  /// The reason why the link has closed. The link's state and the queued goodbye must have the same reason.
  func closed() throws -> CloseReason {
    let last = try #require(sent().last)
    let goodbye = try Goodbye(bytes: last.payload)
    #expect(last.header.knownType == .goodbye && link.state == .closed(goodbye.reason))
    return goodbye.reason
  }

  /// Brings the link up at `start` and removes all queued frames. Returns the payload of the first ping.
  func comeUp() -> [UInt8] {
    _ = sent()
    #expect(receive(.hello, helloPayload(there, epoch: 9, name: "there", capabilities: .bypass)) == nil)
    #expect(link.state == .up)
    return sent().last?.payload ?? []
  }
}

// MARK: Parked

@Test func `a parked link that is dialled again sends hello before queued frames`() {
  let bench = Bench(bearer: .bluetoothLE)
  _ = bench.comeUp()
  bench.link.park(retryAfterSeconds: 0, local: here, now: start)
  _ = bench.sent()
  _ = bench.link.rest()
  let header = FrameHeader(
    type: .segment, ttl: 9, priority: .interactive, payloadByteCount: 1, destination: there, source: here, identifier: 1
  )
  let payload: [UInt8] = [7]
  let isQueued = bench.link.append(header, payload.span.bytes, from: FramePool.ownIngress)
  #expect(isQueued)
  bench.link.resume(
    isInbound: false, local: Link.Local(node: here, epoch: 5, capabilities: .relay, name: DisplayName("here")),
    now: start)
  #expect(bench.sent().map(\.header.knownType) == [.hello])
  #expect(bench.receive(.hello, helloPayload(there)) == nil)
  #expect(bench.sent().contains { $0.header.knownType == .segment })
}

// MARK: Hello

@Test func `a link begins with a hello that contains the node's id`() throws {
  let bench = Bench()
  let sent = bench.sent()
  #expect(bench.link.state == .opening && sent.count == 1)
  let first = try #require(sent.first)
  #expect(first.header.knownType == .hello && first.header.source == here && first.header.priority == .control)
  let hello = try Hello(bytes: first.payload)
  #expect(hello.node == here && hello.epoch == 5 && hello.name == DisplayName("here") && hello.capabilities == .relay)
}

@Test(arguments: [
  (BearerKind.bluetoothLE, 4096 as UInt16), (.wifi, 16_640), (.wifiDirect, 16_640), (.ethernet, 16_640),
  (.loopback, 16_640),
]) func `a hello contains the frame length of its bearer`(bearer: BearerKind, payloadBytesMax: UInt16) throws {
  let hello = try Hello(bytes: #require(Bench(bearer: bearer).sent().first).payload)
  #expect(hello.payloadBytesMax == payloadBytesMax)
}

@Test func `a hello from the proven node brings the link up`() {
  let bench = Bench()
  let later = start + .milliseconds(30)
  #expect(bench.receive(.hello, helloPayload(there, epoch: 9, name: "there", capabilities: .bypass), at: later) == nil)
  #expect(bench.link.state == .up && bench.link.upSince == later)
  #expect(bench.link.peerEpoch == 9 && bench.link.peerName == DisplayName("there"))
  #expect(bench.link.peerCapabilities == .bypass)
}

@Test func `the link uses the shorter one of both frame lengths`() {
  let low = Bench(bearer: .bluetoothLE)
  _ = low.receive(.hello, helloPayload(there, payloadBytesMax: 16_640))
  #expect(low.link.payloadBytesMax == 4096)
  let high = Bench(bearer: .ethernet)
  _ = high.receive(.hello, helloPayload(there, payloadBytesMax: 3000))
  #expect(high.link.payloadBytesMax == 3000)
}

@Test func `a hello that claims another node closes the link with a goodbye`() throws {
  let bench = Bench()
  #expect(bench.receive(.hello, helloPayload(NodeID(high: 3, low: 3))) == .wrongSignature)
  #expect(try bench.closed() == .identityMismatch)
}

@Test func `a hello whose header claims another node closes the link with a goodbye`() throws {
  let bench = Bench()
  #expect(bench.receive(.hello, helloPayload(there), from: NodeID(high: 3, low: 3)) == .wrongSignature)
  #expect(try bench.closed() == .identityMismatch)
}

@Test func `a hello without a common version closes the link with that reason`() throws {
  let bench = Bench()
  #expect(bench.receive(.hello, [2, 2] + helloPayload(there).dropFirst(2)) == .unknownVersion)
  #expect(try bench.closed() == .unsupportedVersion)
}

@Test func `a malformed hello closes the link with a goodbye`() throws {
  let bench = Bench()
  #expect(bench.receive(.hello, [UInt8](helloPayload(there).prefix(20))) == .truncated)
  #expect(try bench.closed() == .protocolError)
}

@Test func `a second hello is unexpected and changes nothing`() {
  let bench = Bench()
  _ = bench.comeUp()
  #expect(bench.receive(.hello, helloPayload(there, epoch: 77)) == .unexpected)
  #expect(bench.link.state == .up && bench.link.peerEpoch == 9)
}

@Test func `a link without a hello times out with a goodbye`() throws {
  let bench = Bench()
  _ = bench.sent()
  #expect(bench.link.deadline == start + .seconds(5))
  bench.link.handleTimeout(local: here, now: start + .milliseconds(4999))
  #expect(bench.link.state == .opening)
  bench.link.handleTimeout(local: here, now: start + .seconds(5))
  #expect(bench.link.state == .closed(.timedOut) && bench.link.deadline == .never)
  let sent = bench.sent()
  #expect(sent.map(\.header.knownType) == [.goodbye])
  let goodbye = try Goodbye(bytes: #require(sent.first).payload)
  #expect(goodbye.reason == .timedOut)
}

// MARK: Liveness

@Test func `a link that comes up sends a ping at once`() {
  let bench = Bench()
  _ = bench.sent()
  _ = bench.receive(.hello, helloPayload(there))
  #expect(bench.sent().map(\.header.knownType) == [.ping])
}

@Test func `a pong contains the bytes of its ping`() {
  let bench = Bench()
  _ = bench.comeUp()
  #expect(bench.receive(.ping, [1, 2, 3, 4, 5, 6, 7, 8]) == nil)
  let sent = bench.sent()
  #expect(sent.map(\.header.knownType) == [.pong] && sent.map(\.payload) == [[1, 2, 3, 4, 5, 6, 7, 8]])
  #expect(sent.first?.header.source == here)
}

@Test func `a ping of another length, or before hello, is unexpected`() {
  let bench = Bench()
  #expect(bench.receive(.ping, [UInt8](repeating: 0, count: 8)) == .unexpected)
  _ = bench.comeUp()
  #expect(bench.receive(.ping, [1]) == .unexpected)
  #expect(bench.receive(.ping, [UInt8](repeating: 0, count: 9)) == .unexpected)
  #expect(bench.sent().isEmpty)
}

@Test func `a pong yields the round-trip time`() {
  let bench = Bench()
  let ping = bench.comeUp()
  #expect(bench.link.roundTrip == TimeSpan(nanoseconds: 0))
  #expect(bench.receive(.pong, ping, at: start + .milliseconds(42)) == nil)
  #expect(bench.link.roundTrip == .milliseconds(42))
}

@Test func `a link is proven after a pong and two seconds up`() {
  let bench = Bench()
  let ping = bench.comeUp()
  _ = bench.receive(.pong, ping, at: start + .milliseconds(42))
  #expect(!bench.link.isProven && bench.link.deadline == start + .seconds(2))
  bench.link.handleTimeout(local: here, now: start + .seconds(2))
  #expect(bench.link.isProven && bench.sent().isEmpty)
}

@Test func `a link without a pong is not proven`() {
  let bench = Bench()
  _ = bench.comeUp()
  bench.link.noteReceived(100, now: start + .seconds(4))
  bench.link.handleTimeout(local: here, now: start + .seconds(4))
  #expect(!bench.link.isProven)
}

@Test func `a pong without a matching ping is unexpected`() {
  let bench = Bench()
  let ping = bench.comeUp()
  #expect(bench.receive(.pong, ping.dropLast() + [ping[7] ^ 1], at: start + .seconds(1)) == .unexpected)
  #expect(bench.receive(.pong, [1, 2], at: start + .seconds(1)) == .truncated)
  #expect(bench.link.roundTrip == TimeSpan(nanoseconds: 0))
}

@Test func `a pong counts once`() {
  let bench = Bench()
  let ping = bench.comeUp()
  #expect(bench.receive(.pong, ping, at: start + .milliseconds(42)) == nil)
  #expect(bench.receive(.pong, ping, at: start + .milliseconds(900)) == .unexpected)
  #expect(bench.link.roundTrip == .milliseconds(42))
}

@Test func `a silent link sends pings and then closes`() throws {
  let bench = Bench()
  let ping = bench.comeUp()
  _ = bench.receive(.pong, ping, at: start + .milliseconds(1))
  var pings: [UInt64] = []
  var now = start
  while bench.link.state == .up {
    now = bench.link.deadline
    bench.link.handleTimeout(local: here, now: now)
    if bench.link.state == .up, bench.sent().contains(where: { $0.header.knownType == .ping }) {
      pings.append((now - start).milliseconds)
    }
  }
  #expect(pings == [2201] && now == start + .milliseconds(2901))
  #expect(try bench.closed() == .timedOut)
}

@Test func `any received bytes keep a link alive`() {
  let bench = Bench()
  _ = bench.comeUp()
  bench.link.noteReceived(1, now: start + .seconds(9))
  bench.link.handleTimeout(local: here, now: start + .seconds(10))
  #expect(bench.link.state == .up)
}

@Test func `a ping that is due soon is sent early`() {
  let bench = Bench()
  let ping = bench.comeUp()
  _ = bench.receive(.pong, ping)
  let soon = start + .seconds(2)
  let isSent = [199, 200, 1000].map { bench.link.pingEarly(dueWithin: .milliseconds($0), local: here, now: soon) }
  #expect(isSent == [false, true, false])
  #expect(bench.sent().map(\.header.knownType) == [.ping])
}

@Test func `a timeout before its deadline does nothing`() {
  let bench = Bench()
  _ = bench.comeUp()
  bench.link.handleTimeout(local: here, now: start + .milliseconds(2199))
  #expect(bench.sent().isEmpty && bench.link.state == .up)
}

// MARK: The end

@Test func `closing drops queued frames and sends a goodbye`() throws {
  let bench = Bench()
  _ = bench.comeUp()
  let header = FrameHeader(type: .segment, priority: .bulk, payloadByteCount: 1, source: here, identifier: 1)
  let payload: [UInt8] = [1]
  _ = bench.link.append(header, payload.span.bytes, from: 0)
  #expect(bench.link.hasFrames)
  bench.link.close(.full, retryAfterSeconds: 30, local: here)
  let sent = bench.sent()
  #expect(sent.map(\.header.knownType) == [.goodbye])
  let goodbye = try Goodbye(bytes: #require(sent.first).payload)
  #expect(goodbye == Goodbye(reason: .full, retryAfterSeconds: 30))
  #expect(bench.link.state == .closed(.full))
}

@Test func `the first reason to close is kept`() {
  let bench = Bench()
  bench.link.close(.shutdown, retryAfterSeconds: 0, local: here)
  bench.link.close(.full, retryAfterSeconds: 9, local: here)
  #expect(bench.link.state == .closed(.shutdown))
  #expect(bench.sent().count == 1)
}

@Test func `a goodbye closes the link and states how long not to dial`() {
  let bench = Bench()
  _ = bench.comeUp()
  #expect(bench.receive(.goodbye, hex("03 00 001e")) == nil)
  #expect(bench.link.state == .closed(.full) && bench.link.retryAfterSeconds == 30)
  #expect(bench.link.deadline == .never)
}

@Test(arguments: [FrameType.advertisement, .segment, .acknowledgement, .datagram, .reset])
func `a frame type that neighbours do not exchange is unexpected`(type: FrameType) {
  let bench = Bench()
  _ = bench.comeUp()
  #expect(bench.receive(type, [UInt8](repeating: 0, count: 100)) == .unexpected)
  #expect(bench.link.state == .up)
}

@Test func `a reset link is idle and has no frames`() {
  let bench = Bench()
  bench.link.reset()
  #expect(bench.link.state == .idle && bench.link.peer == .none)
  #expect(!bench.link.hasFrames && bench.link.deadline == .never)
}

@Test func `a link that is opened again keeps no state of the former one`() {
  let bench = Bench()
  let ping = bench.comeUp()
  _ = bench.receive(.pong, ping, at: start + .milliseconds(42))
  _ = bench.receive(.goodbye, hex("03 00 001e"))
  bench.link.reset()
  let local = Link.Local(node: here, epoch: 5, capabilities: .relay, name: DisplayName("here"))
  bench.link.open(peer: there, bearer: .wifi, isInbound: true, local: local, now: start + .seconds(60))
  #expect(bench.link.state == .opening && bench.link.isInbound && bench.link.bearer == .wifi)
  #expect(bench.link.peerEpoch == 0 && bench.link.peerName == nil && bench.link.retryAfterSeconds == 0)
  #expect(bench.link.roundTrip == TimeSpan(nanoseconds: 0) && bench.link.bytesIn == 0 && bench.link.bytesOut == 0)
  #expect(bench.link.deadline == start + .seconds(65))
}

@Test func `bytes are counted in both directions`() {
  let bench = Bench()
  let hello = bench.sent().reduce(0) { $0 + $1.header.frameByteCount }
  #expect(bench.link.bytesOut == UInt64(hello))
  bench.link.noteReceived(123, now: start)
  #expect(bench.link.bytesIn == 123)
}
