import Frame
import Link
import Primitives
import TestSupport
import Testing

private let here = NodeID(high: 1, low: 1)
private let there = NodeID(high: 2, low: 2)
private let start = Instant.zero + .seconds(100)

/// A link that is up. The neighbour has answered one ping, and nothing after that.
private final class Bench {
  private let memory = Borrowed(FrameQueue.byteCount)
  private let poolMemory = Borrowed(FramePool.byteCount)
  var link: Link
  /// Whether the stream below the link has bytes that cannot be sent.
  var isHeld = false

  init(_ bearer: BearerKind) {
    link = Link(memory.bytes, FramePool(poolMemory.bytes))
    let local = Link.Local(node: here, epoch: 5, capabilities: .relay, name: DisplayName("here"))
    link.open(peer: there, bearer: bearer, isInbound: false, local: local, now: start)
    _ = pop()
    receive(.hello, helloPayload(there, epoch: 9, name: "there", capabilities: .bypass))
    receive(.pong, frames(in: pop())[0].payload)
  }

  func pop() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Limits.frameBytesMax) { buffer, count in
      count = link.pop(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  func receive(_ type: FrameType, _ payload: [UInt8], at now: Instant = start) {
    let header = FrameHeader(
      type: type, priority: .control, payloadByteCount: payload.count, source: there, identifier: 0)
    link.noteReceived(FrameHeader.byteCount + payload.count, now: now)
    let refusal = refusal { () throws(FrameError) in
      try link.receive(header, payload.span.bytes, type, local: here, now: now)
    }
    #expect(refusal == nil)
  }

  /// Handles each deadline and then calls `serve`, until `end` or until the link closes. Returns the time when the link
  /// closed, in milliseconds after `start`, or nil.
  func pass(to end: TimeSpan, _ serve: (TimeSpan) -> Void = { _ in }) -> UInt64? {
    while link.deadline <= start + end {
      let now = link.deadline
      link.handleTimeout(local: here, now: now, isHeld: isHeld)
      if case .closed(let reason) = link.state {
        #expect(reason == .timedOut)
        return (now - start).milliseconds
      }
      serve(now - start)
    }
    return nil
  }
}

@Suite struct StallTests {
  @Test func `over Bluetooth LE a neighbour whose ping cannot be sent has twenty seconds`() {
    let deaths: [(BearerKind, UInt64)] = [(.bluetoothLE, 23_000), (.bluetoothClassic, 5_000), (.wifi, 5_000)]
    for (bearer, death) in deaths {
      let bench = Bench(bearer)
      bench.isHeld = true
      #expect(bench.pass(to: .seconds(100)) == death)
    }
  }

  @Test func `a ping that waits in the queue does not count as sent`() {
    let bench = Bench(.bluetoothLE)
    // The first timeout, at 5 s, finds the ping still in the queue. The 20 s begin then.
    #expect(bench.pass(to: .seconds(100)) == 25_000)
  }

  @Test func `a neighbour that does not answer a sent ping is dead after five seconds`() {
    let bench = Bench(.bluetoothLE)
    #expect(bench.pass(to: .seconds(100)) { _ in _ = bench.pop() } == 5_000)
    #expect(!bench.link.isStalled && bench.link.stalledSpan(now: start + .seconds(5)) == .seconds(0))
  }

  @Test func `a link reports a stall when it would be dead over another bearer`() {
    let bench = Bench(.bluetoothLE)
    bench.isHeld = true
    #expect(bench.pass(to: .milliseconds(4_999)) == nil && !bench.link.isStalled)
    #expect(bench.pass(to: .seconds(5)) == nil && bench.link.isStalled)
    #expect(bench.link.stalledSpan(now: start + .seconds(10)) == .seconds(7))
  }

  @Test func `a neighbour that accepts frames again has the usual time to answer`() {
    let bench = Bench(.bluetoothLE)
    bench.isHeld = true
    #expect(bench.pass(to: .seconds(18)) == nil)
    bench.isHeld = false
    let ping = frames(in: bench.pop())[0].payload
    bench.link.goesOn(now: start + .seconds(18))
    #expect(!bench.link.isStalled && bench.link.deadline == start + .seconds(20))
    bench.receive(.pong, ping, at: start + .seconds(19))
    #expect(bench.pass(to: .seconds(21)) == nil && bench.link.state == .up)
  }

  @Test func `a neighbour that accepts the last bytes just before its deadline is pinged once more`() {
    let bench = Bench(.bluetoothLE)
    bench.isHeld = true
    #expect(bench.pass(to: .seconds(22)) == nil)
    _ = bench.pop()
    bench.isHeld = false
    #expect(bench.pass(to: .seconds(100)) == 30_000)
  }

  @Test func `a neighbour that accepts a few bytes now and then has twenty seconds for each`() {
    let bench = Bench(.bluetoothLE)
    bench.isHeld = true
    var took = 0
    let death = bench.pass(to: .seconds(100)) { span in
      if took < 1 && span >= .seconds(5) {
        _ = bench.pop()
        bench.link.goesOn(now: start + span)
        took += 1
      }
    }
    #expect(death == 27_000)
  }

  @Test func `a neighbour that sends but accepts no frames is dead, too`() throws {
    let bench = Bench(.bluetoothLE)
    bench.isHeld = true
    var death: UInt64?
    for second in 1...60 as ClosedRange<UInt64> where death == nil {
      death = bench.pass(to: .seconds(second))
      if death == nil {
        bench.link.noteReceived(100, now: start + .seconds(second))
        // The link queues no second ping behind the ping that still waits.
        if second > 15 { #expect(bench.link.queuedByteCount == FrameHeader.byteCount + 8) }
      }
    }
    #expect(try #require(death) == 45_000)
    #expect(frames(in: bench.pop()).map(\.header.knownType) == [.goodbye])
  }

  @Test func `a neighbour that sends and accepts a few bytes now and then keeps its link`() {
    let bench = Bench(.bluetoothLE)
    bench.isHeld = true
    for second in 1...60 as ClosedRange<UInt64> {
      #expect(bench.pass(to: .seconds(second)) == nil)
      bench.link.noteReceived(100, now: start + .seconds(second))
      if second % 10 == 0 { bench.link.passed(1) }
    }
  }
}
