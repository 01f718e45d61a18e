import Bearer
import Channel
import Frame
import Link
import Node
import Primitives
import Reactor
import SecureTransport
import Testing

@testable import Relay

/// Streams that become links and end. The streams are in memory.
@Suite struct LinkDriverTests {
  @Test func `two drivers on one stream become a link on both nodes`() throws {
    let cable = try Cable.linked()
    #expect(cable.client.driver.peer == cable.server.identity.id)
    #expect(cable.server.driver.peer == cable.client.identity.id)
    #expect(cable.client.provedCount == 1 && cable.server.provedCount == 1)
    #expect(cable.client.ends == [] && cable.server.ends == [])
    // After the handshake the driver sets no timer.
    #expect(cable.client.io.wakeUp == .never && cable.server.io.wakeUp == .never)
  }

  @Test func `a handshake that takes too long ends at its deadline`() throws {
    let server = try Box(isInbound: true)
    server.driver.start([22, 3, 1], deadline: server.now + .seconds(5))
    #expect(server.io.wakeUp == server.now + .seconds(5))
    server.driver.timeUp()
    #expect(server.ends == ["no TLS handshake within 5 s"] && server.io.lingers == false)
    // After the end of the link the driver ignores every call.
    server.driver.timeUp()
    server.driver.finish()
    server.driver.transmit()
    #expect(server.ends.count == 1)
  }

  @Test func `bytes received before the driver started are used`() throws {
    let cable = try Cable()
    let early = cable.server.io.incoming
    cable.server.io.incoming = []
    let server = try Box(isInbound: true)
    server.driver.start(early, deadline: server.now + .seconds(5))
    #expect(!server.io.sends.isEmpty, "the server answers the hello at once")
  }

  @Test func `a step of a handshake waits until the delegate allows it, and a link needs no permission`() throws {
    let cable = try Cable()
    cable.server.stepsLeft = 0
    cable.run(wakeUpsMax: 20)
    #expect(cable.server.io.sends.isEmpty && !cable.server.io.incoming.isEmpty)
    cable.server.stepsLeft = 100
    cable.run()
    #expect((1..<100).contains(cable.server.stepsLeft))
    cable.server.stepsLeft = 0
    cable.pass(.seconds(5))
    #expect(cable.server.node.isLinked && cable.client.node.isLinked)
  }

  @Test func `a peer that does not speak TLS receives an alert, and the stream lingers`() throws {
    let server = try Box(isInbound: true)
    server.driver.start(Array("GET / HTTP/1.1\r\n\r\n".utf8), deadline: server.now + .seconds(5))
    #expect(server.ends.count == 1 && server.io.lingers == true)
    #expect(server.io.sends == [7])
  }

  @Test func `a refused peer is notified, and the stream lingers`() throws {
    let judge = Judge()
    judge.refuses = true
    judge.checksMade = 80
    let cable = try Cable(judge: judge)
    cable.run()
    #expect(cable.server.driver.checksMade == 80)
    #expect(cable.server.io.lingers == true && cable.server.driver.isRefused)
    #expect(cable.server.provedCount == 0)
    #expect(cable.client.ends == ["the peer refused with TLS alert 44 (certificate_revoked)"])
    #expect(cable.client.driver.isRefused)
  }

  @Test func `a linked peer that is refused later is disconnected`() throws {
    let judge = Judge()
    let cable = try Cable(judge: judge)
    cable.run()
    cable.server.driver.reconsider()
    #expect(cable.server.ends == [])
    judge.refuses = true
    cable.server.driver.reconsider()
    #expect(cable.server.ends.count == 1 && cable.server.io.lingers == true)
    cable.run()
    #expect(!cable.client.node.isLinked)
  }

  @Test func `a stream that the peer ended does not linger`() throws {
    let cable = try Cable.linked()
    cable.server.io.hasEnded = true
    cable.run()
    #expect(cable.server.ends == ["the other side closed the connection"] && cable.server.io.lingers == false)
    #expect(!cable.server.node.isLinked)
  }

  @Test func `a stream is silent until bytes arrive, before the driver starts or later`() throws {
    let cable = try Cable()
    let early = try Box(isInbound: true)
    early.driver.start(cable.server.io.incoming, deadline: early.now + .seconds(5))
    #expect(!early.driver.isSilent)
    #expect(cable.client.driver.isSilent && cable.server.driver.isSilent)
    cable.run()
    #expect(!cable.client.driver.isSilent && !cable.server.driver.isSilent)
  }

  @Test func `a stream that is superseded by another one ends at once`() throws {
    let cable = try Cable(bearer: .bluetoothLE)
    cable.client.driver.giveUp()
    #expect(cable.client.ends == ["another stream was established first"] && cable.client.io.lingers == false)
  }

  @Test func `a broken stream ends even if nothing can be read`() throws {
    let cable = try Cable.linked()
    cable.server.driver.ready(canRead: false, canWrite: false, isBroken: true)
    #expect(cable.server.ends == ["the connection broke"] && cable.server.io.lingers == false)
  }

  @Test func `a finishing link sends a goodbye and ends when its last byte has been sent`() throws {
    let cable = try Cable.linked()
    cable.client.node.shutDown(now: cable.client.now)
    cable.run()
    #expect(cable.client.ends == ["closed here"] && cable.client.io.lingers == true)
    #expect(cable.server.ends.count == 1 && !cable.server.node.isLinked)
  }

  @Test func `a finishing link that cannot send its goodbye ends after two seconds`() throws {
    let cable = try Cable.linked()
    cable.client.io.room = 0
    cable.client.driver.finish()
    #expect(cable.client.ends == [] && cable.client.io.wakeUp == cable.client.now + LinkDriver.lingerTime)
    cable.client.driver.timeUp()
    #expect(cable.client.ends == ["closed"] && cable.client.io.lingers == false)
  }

  @Test func `no write is longer than the unit of the channel`() throws {
    let cable = try Cable.linked(bearer: .bluetoothLE, unitBytesMax: 100)
    #expect(cable.client.io.sends.allSatisfy { $0 <= 100 } && cable.server.io.sends.allSatisfy { $0 <= 100 })
    #expect(cable.client.io.sends.contains(100))
  }

  @Test func `one wake-up reads a limited part of the received bytes`() throws {
    let cable = try Cable.linked(bearer: .bluetoothLE)
    try cable.fill()
    cable.server.io.incoming = [UInt8](repeating: 23, count: 3 * EventLoop.callBytesMax)
    cable.server.io.receives = []
    cable.server.driver.ready(canRead: true, canWrite: false, isBroken: false)
    #expect(cable.server.io.receives.reduce(0, +) <= EventLoop.callBytesMax)
  }

  @Test func `one wake-up sends a limited part of the queued bytes, and the next one continues`() throws {
    let cable = try Cable.linked()
    // The exchanges in this loop let the channel's window grow beyond the bytes that one pass sends.
    for _ in 0..<8 {
      try cable.fill()
      cable.run()
    }
    let before = cable.client.node.link(0).bytesOut
    try cable.fill()
    let first = cable.client.node.link(0).bytesOut - before
    // The pass ends with the frame that reaches the limit, so it can exceed the limit by part of a frame.
    #expect(first >= UInt64(EventLoop.callBytesMax) && first <= UInt64(2 * EventLoop.callBytesMax))
    #expect(cable.client.io.waitsForRoom)
    cable.client.driver.ready(canRead: false, canWrite: true, isBroken: false)
    #expect(cable.client.node.link(0).bytesOut - before > first)
  }

  @Test func `while the stream accepts no bytes, encryption ahead is limited`() throws {
    let cable = try Cable.linked()
    cable.client.io.room = 0
    try cable.fill()
    #expect(cable.client.io.waitsForRoom)
    // The bytes encrypted so far are sent as soon as the stream accepts bytes. The encrypted bytes are at most the
    // limit and two records.
    cable.client.io.other = nil
    cable.client.io.room = .max
    cable.client.io.sends = []
    cable.client.driver.finish()
    #expect(cable.client.io.sends.reduce(0, +) <= EncryptAhead.bytesMax + 2 * 17_000)
  }

  @Test func `a stream that accepts bytes again is filled until the queue is empty`() throws {
    let cable = try Cable.linked()
    cable.client.io.room = 0
    let sent = try cable.fill()
    #expect(sent > 0 && cable.client.io.waitsForRoom)
    cable.client.io.room = .max
    cable.run()
    cable.pass(.milliseconds(500))
    #expect(cable.server.messageCount == sent)
    #expect(!cable.client.io.waitsForRoom)
  }

  @Test func `on a slow bearer bulk frames wait until the stream reports room, and urgent frames do not`() throws {
    let cable = try Cable.linked(bearer: .bluetoothLE)
    let client = cable.client, io = client.io
    io.sends = []
    // The bulk message is long, because a short bulk frame would be sent together with the urgent frame.
    try client.send(20_000, .bulk, to: cable.server)
    #expect(io.sends == [] && io.waitsForRoom)
    try client.send(100, .interactive, to: cable.server)
    let urgent = io.sends.reduce(0, +)
    #expect(urgent > 100 && urgent < 1000 && io.waitsForRoom)
    client.driver.ready(canRead: false, canWrite: true, isBroken: false)
    #expect(io.sends.reduce(0, +) > urgent + 3000)
  }

  @Test func `on a slow bearer one report of room allows one bulk frame`() throws {
    let cable = try Cable.linked(bearer: .bluetoothLE)
    let client = cable.client
    try cable.fill()
    cable.run()
    cable.pass(.milliseconds(500))
    try cable.fill()
    let before = client.node.link(0).bytesOut
    client.driver.ready(canRead: false, canWrite: true, isBroken: false)
    let taken = client.node.link(0).bytesOut - before
    #expect(taken > 0 && taken <= UInt64(FrameHeader.byteCount + Link.payloadBytesMax(over: .bluetoothLE)))
    #expect(client.io.waitsForRoom)
  }

  @Test func `a frame queued after forwarded frames is sent in the same wake-up`() throws {
    let cable = try Cable.linked()
    let client = cable.client, io = client.io
    (io.other, io.sends, io.questionsForRoom) = (nil, [], 0)
    let frame = [UInt8](repeating: 0, count: 16_000)
    let header = FrameHeader(
      type: .sealed, priority: .bulk, payloadByteCount: frame.count, destination: cable.server.identity.id,
      source: cable.server.identity.id, identifier: 1)
    var count = 0
    while client.driver.take(header, frame.span.bytes) { count += 1 }
    #expect(count > 1)
    try client.send(1000, .bulk, to: cable.server)
    #expect(io.sends.count == 2 && io.questionsForRoom == 0)
  }

  @Test
  func `over Bluetooth LE a link survives fifteen seconds without progress and then sends its queue`()
    throws
  {
    let cable = try Cable.linked(bearer: .bluetoothLE)
    let client = cable.client
    try cable.fill()
    client.io.room = 0
    client.driver.ready(canRead: false, canWrite: true, isBroken: false)
    #expect(client.driver.hasUnsentBytes)
    cable.rest(.seconds(15))
    #expect(client.node.link(0).isStalled && client.ends == [])
    client.io.room = .max
    client.io.sends = []
    cable.run()
    #expect(!client.node.link(0).isStalled && !client.driver.hasUnsentBytes)
    #expect(client.io.sends.reduce(0, +) > 4000 && client.node.link(0).state == .up)
  }

  @Test func `over Bluetooth LE a link ends after half a minute without progress`() throws {
    let cable = try Cable.linked(bearer: .bluetoothLE)
    try cable.fill()
    cable.client.io.room = 0
    cable.client.driver.ready(canRead: false, canWrite: true, isBroken: false)
    cable.rest(.seconds(30))
    #expect(!cable.client.node.isLinked)
  }

  @Test func `room found within the wake-up causes no request for room`() throws {
    let cable = try Cable.linked()
    let io = cable.client.io
    (io.sends, io.questionsForRoom, io.room) = ([], 0, 0)
    let message = [UInt8](repeating: 1, count: 1000)
    _ = try cable.client.node.send(
      kind: 3, message.span.bytes, to: cable.server.identity.id, lane: .bulk, now: cable.client.now)
    cable.client.driver.transmit()
    #expect(io.sends.isEmpty)
    io.room = .max
    cable.client.drain()
    #expect(!io.sends.isEmpty && io.questionsForRoom == 0)
  }
}

extension Box {
  /// Sends a message of zeros to `other`, and carries out the outputs of the node.
  func send(_ byteCount: Int, _ lane: Lane, to other: Box) throws {
    let message = [UInt8](repeating: 0, count: byteCount)
    _ = try node.send(kind: 3, message.span.bytes, to: other.identity.id, lane: lane, now: now)
    drain()
  }
}

extension Cable {
  /// Advances time at the client for `span`. The server neither reads nor sends.
  func rest(_ span: TimeSpan) {
    let end = client.now + span
    while true {
      client.io.now = max(client.now, min(client.node.nextDeadline(now: client.now), end))
      client.node.handle(.timeout, now: client.now)
      client.drain()
      if client.now >= end { return }
    }
  }

  /// Passes messages to the client's node until the node accepts no more. Returns the number of messages.
  @discardableResult
  func fill() throws -> Int {
    let message = [UInt8](repeating: 1, count: 60_000)
    var count = 0
    while client.node.canSend(byteCount: message.count, to: server.identity.id, lane: .bulk) {
      _ = try client.node.send(kind: 3, message.span.bytes, to: server.identity.id, lane: .bulk, now: client.now)
      count += 1
    }
    client.drain()
    return count
  }
}
