import Frame
import Primitives
import Seal
import SealSupport
import Testing
import TestSupport

@Suite struct SealTests {
  @Test func `a client with data begins a session, and both ends exchange messages`() throws {
    let pair = try Pair.open()
    pair.say([1, 2, 3], from: pair.client)
    pair.say([4], from: pair.server)
    #expect(pair.server.received == [[1, 2, 3]] && pair.client.received == [[4]])
    #expect(pair.client.events == [.opened(milliseconds: 0)] && pair.server.events == [.opened(milliseconds: 0)])
  }

  @Test func `each end receives the channel epoch of the other`() {
    let pair = Pair()
    pair.server.seal.channelEpoch += 2
    pair.client.seal.isWanted = true
    pair.settle()
    #expect(pair.client.channelEpochHeard == 11 && pair.server.channelEpochHeard == 5)
  }

  @Test func `no session begins while neither end has data to send`() {
    let pair = Pair()
    pair.pass(.seconds(100))
    #expect(!pair.areOpen && pair.client.cryptography.sessionCount == 0)
    #expect(pair.client.seal.nextDeadline(hasRoute: true) == .never)
  }

  /// The client has proved its key, but its sealed hello, which accepts the server, has not arrived. Until then the
  /// server opens no other record.
  @Test func `a server opens no session before the client's hello`() throws {
    let people = [Identity(1), Identity(2)].sorted { $0.id < $1.id }
    let now = Instant.zero + .seconds(1000)
    let server = Seal(
      local: people[1].id, peer: people[0].id, localEpoch: 9, peerEpoch: 5, ownFlags: required, peerFlags: required)
    let maker = StandInCryptography(people[1])
    let name = SessionName(local: people[0].id, peer: people[1].id, localEpoch: 5, peerEpoch: 9)
    let client = try #require(StandInCryptography(people[0]).beginSession(name, now: now))
    var buffer = [UInt8](repeating: 0, count: 2048)
    for _ in 0..<4 {
      while case let count = buffer.withUnsafeMutableBytes({ client.nextHandshake(into: $0) }), count > 0 {
        let datagram = [UInt8](buffer[..<count])
        let answer = buffer.withUnsafeMutableBytes {
          maker.answerHello(datagram.span.bytes, server.sessionName, reply: $0, now: now)
        }
        switch answer {
        case .reply(let count):
          let verify = [UInt8](buffer[..<count])
          client.receiveHandshake(verify.span.bytes, now: now)
        case .accepted:
          let made = maker.acceptSession(datagram.span.bytes, server.sessionName, now: now)
          server.accept(try #require(made), now: now)
        case .refused: _ = server.receiveHandshake(datagram.span.bytes, now: now)
        }
      }
      while let frame = buffer.withUnsafeMutableBytes({ server.nextFrame(into: $0, now: now) }) {
        guard case .handshake(let count) = frame else { continue }
        let datagram = [UInt8](buffer[16..<count])
        client.receiveHandshake(datagram.span.bytes, now: now)
      }
    }
    #expect(client.state == .established)
    let count = ([32, 1, 2] as [UInt8]).withUnsafeBytes { plaintext in
      buffer.withUnsafeMutableBytes { client.seal(plaintext, into: $0) }
    }
    let record = [UInt8](buffer[..<count])
    #expect(count > 0)
    #expect(buffer.withUnsafeMutableBytes { server.open(record.span.bytes, into: $0, now: now) } == nil)
  }

  @Test(arguments: [true, false])
  func `an unanswered attempt is reported at once, until an answer arrives`(isClient: Bool) {
    let pair = Pair()
    let end = isClient ? pair.client : pair.server
    let began = pair.now
    pair.onTheWay = { _, _, _ in nil }
    pair.settle()
    #expect(end.seal.unanswered?.since == nil)
    end.seal.isWanted = true
    pair.settle()
    #expect(end.seal.unanswered?.since == began && end.seal.unanswered?.last == began)
    pair.pass(.seconds(20))
    #expect(end.seal.unanswered?.since == began && end.seal.unanswered?.last != began)
    pair.onTheWay = { _, _, payload in payload }
    pair.pass(.seconds(40))
    #expect(pair.areOpen && end.seal.unanswered?.since == nil)
  }

  @Test func `a cookie does not count as an answer to an attempt`() {
    let pair = Pair()
    var answers = 0
    pair.onTheWay = { isFromClient, _, payload in
      if !isFromClient { answers += 1 }
      return isFromClient || answers == 1 ? payload : nil
    }
    pair.client.seal.isWanted = true
    pair.settle()
    #expect(answers > 1 && !pair.areOpen && pair.client.seal.unanswered != nil)
  }

  @Test func `a server with data requests a session`() {
    let pair = Pair()
    pair.server.seal.isWanted = true
    pair.settle()
    #expect(pair.areOpen)
  }

  @Test func `an idle session sets no deadline before its keys are old`() throws {
    let pair = try Pair.open()
    pair.pass(.seconds(60))
    let deadline = pair.client.seal.nextDeadline(hasRoute: true)
    #expect(deadline > pair.now + .seconds(23 * 3600) && pair.server.seal.nextDeadline(hasRoute: true) == .never)
  }

  @Test(arguments: 1...50)
  func `a session opens over a path that loses a fifth of its frames`(seed: UInt64) {
    let pair = Pair(seed: seed)
    pair.lossPerThousand = 200
    pair.server.seal.isWanted = seed % 2 == 0
    pair.client.seal.isWanted = seed % 2 == 1
    pair.pass(.seconds(60))
    #expect(pair.areOpen)
    pair.lossPerThousand = 0
    pair.pass(.seconds(30))
    pair.say([1], from: pair.client)
    pair.say([2], from: pair.server)
    #expect(pair.server.received.last == [1] && pair.client.received.last == [2])
  }

  @Test func `a client that gave up begins again with a server that had finished its part`() {
    var frames = 0, lastFrame = Int.max
    func pair() -> Pair {
      let pair = Pair()
      frames = 0
      pair.onTheWay = { isFromClient, type, payload in
        if !isFromClient && type == 36 { frames += 1 }
        return isFromClient || frames < lastFrame ? payload : nil
      }
      pair.client.seal.isWanted = true
      pair.settle()
      return pair
    }
    #expect(pair().areOpen)
    // The last handshake frame of the server, and every later frame, is lost until the client has given up.
    lastFrame = frames
    let broken = pair()
    broken.pass(SealLimits.stallTime)
    #expect(broken.client.events == [.failed(.timedOut)] && !broken.areOpen)
    broken.onTheWay = { _, _, payload in payload }
    broken.pass(.seconds(3))
    #expect(broken.areOpen)
  }

  @Test func `a handshake without progress fails before its retransmissions end`() {
    let pair = Pair()
    // The client returns the cookie, but its proof is always lost.
    pair.onTheWay = { isFromClient, type, payload in
      isFromClient && type == 36 && payload[SealLimits.handshakeHeaderBytes] != 1 ? nil : payload
    }
    pair.client.seal.isWanted = true
    let start = pair.now
    pair.pass(.milliseconds(11_900))
    #expect(pair.server.seal.progressAt == start)
    pair.pass(.milliseconds(200))
    #expect(pair.server.events.first == .failed(.timedOut))
    #expect(pair.server.seal.obstacle?.reason == .failed(.timedOut))
  }

  @Test func `the other end is notified that its session was ended for another peer, and may return`() throws {
    let pair = try Pair.open()
    var buffer = [UInt8](repeating: 0, count: 2_048)
    let frame = buffer.withUnsafeMutableBytes { pair.server.seal.end(.busy, into: $0, now: pair.now) }
    guard case .sealed(let count)? = frame else {
      Issue.record("nothing is sent")
      return
    }
    var plaintext = [UInt8](repeating: 0, count: count)
    let record = [UInt8](buffer[..<count])
    _ = plaintext.withUnsafeMutableBytes { pair.client.seal.open(record.span.bytes, into: $0, now: pair.now) }
    #expect(!pair.client.seal.isOpen && pair.client.seal.refusal == nil)
    #expect(pair.client.seal.obstacle?.reason == .failed(.busy))
    #expect(pair.client.seal.nextDeadline(hasRoute: true) <= pair.now + SealLimits.busyPauseMax)
  }

  @Test func `a peer without a slot for a handshake retries at intervals of at most four seconds`() {
    let pair = Pair()
    pair.client.seal.isWanted = true
    for _ in 0..<8 {
      #expect(pair.client.seal.needsSession(now: pair.now))
      pair.client.seal.postpone(now: pair.now)
      #expect(pair.client.seal.obstacle?.reason == .noSlotHere)
      let next = pair.client.seal.nextDeadline(hasRoute: true)
      #expect(next > pair.now && next <= pair.now + SealLimits.busyPauseMax)
      pair.now = next
    }
  }

  @Test func `an unanswered attempt is repeated at growing intervals`() {
    let pair = Pair()
    var count = 0
    pair.onTheWay = { _, _, _ in
      count += 1
      return nil
    }
    pair.client.seal.isWanted = true
    pair.pass(.seconds(300))
    #expect(pair.client.events.allSatisfy { $0 == .failed(.timedOut) } && pair.client.events.count > 5)
    #expect(count < 200)
    pair.onTheWay = { _, _, payload in payload }
    pair.pass(.seconds(30))
    #expect(pair.areOpen)
  }

  @Test func `the server keeps no state for a hello without a cookie`() {
    let pair = Pair()
    // The answer to the hello never arrives, as if the hello had a false source.
    pair.onTheWay = { fromClient, _, payload in fromClient ? payload : nil }
    pair.client.seal.isWanted = true
    pair.pass(.seconds(60))
    #expect(pair.server.cryptography.sessionCount == 0 && !pair.server.seal.isHandshaking)
  }

  @Test func `altered or replayed records are dropped, and the session continues`() throws {
    let pair = try Pair.open()
    var kept: [[UInt8]] = []
    pair.onTheWay = { _, _, payload in
      kept.append(payload)
      return payload
    }
    for number in 0..<10 as Range<UInt8> { pair.say([number], from: pair.client) }
    #expect(pair.server.received.count == 10)
    pair.onTheWay = { _, _, _ in kept.removeFirst() }
    for _ in 0..<10 { pair.say([99], from: pair.client) }
    #expect(pair.server.received.count == 10 && pair.server.notOpened == 10)
    pair.onTheWay = { _, _, payload in payload.with { $0[$0.count / 2] ^= 1 } }
    for _ in 0..<10 { pair.say([99], from: pair.client) }
    #expect(pair.server.received.count == 10 && pair.server.notOpened == 20)
    pair.onTheWay = { _, _, payload in payload }
    pair.say([11], from: pair.client)
    #expect(pair.server.received.last == [11] && pair.client.cryptography.sessionCount == 1)
  }

  @Test func `records that arrive out of order are all decrypted`() throws {
    let pair = try Pair.open()
    var kept: [[UInt8]] = []
    pair.onTheWay = { _, _, payload in
      kept.append(payload)
      return nil
    }
    for number in 0..<30 as Range<UInt8> { pair.say([number], from: pair.client) }
    pair.onTheWay = { _, _, _ in kept.removeLast() }
    for _ in 0..<30 { pair.say([0], from: pair.client) }
    #expect(pair.server.received == (0..<30 as Range<UInt8>).reversed().map { [$0] })
  }

  @Test func `a preference or capability that was altered in transit causes a refusal`() {
    // In the first case the client received altered flags of the server. In the second case the server received altered
    // flags of the client.
    for (clientSeen, serverSeen) in [(required, optional), (TopologyFlags(rawValue: 0), required)] {
      let pair = Pair(clientFlags: (required, clientSeen), serverFlags: (required, serverSeen))
      pair.client.seal.isWanted = true
      pair.pass(.seconds(1))
      #expect(!pair.areOpen)
      #expect(pair.client.seal.refusal == .contradiction && pair.server.seal.refusal == .contradiction)
      pair.say([1], from: pair.client)
      #expect(pair.server.received == [])
      pair.pass(.seconds(300))
      #expect(!pair.areOpen && pair.client.cryptography.sessionCount < 8)
    }
  }

  @Test func `a different epoch inside and outside of the encryption is refused`() {
    let pair = Pair(epochs: (5, 9), known: (5, 8))
    pair.client.seal.isWanted = true
    pair.pass(.seconds(1))
    #expect(!pair.client.seal.isOpen && pair.client.seal.refusal == .contradiction)
  }

  @Test func `keys are renewed after a number of records`() throws {
    var lifetime = SessionLifetime()
    lifetime.recordsMax = 100
    let pair = try Pair.open(lifetime)
    pair.pass(.seconds(10))
    for number in 0..<250 {
      // Records of both directions are counted: the client also counts the records that it decrypts.
      pair.say([UInt8(number)], from: number < 125 ? pair.client : pair.server)
      pair.pass(.milliseconds(100))
    }
    #expect(pair.server.received.count == 125 && pair.client.received.count == 125)
    #expect(pair.client.events.count == 3 && pair.server.events.count == 3)
  }

  @Test func `keys are renewed by age`() throws {
    var lifetime = SessionLifetime()
    lifetime.age = .seconds(100)
    let pair = try Pair.open(lifetime)
    pair.pass(.seconds(350))
    #expect(pair.client.events.count == 4 && pair.areOpen)
  }

  @Test func `a record that was encrypted before a renewal is still decrypted afterwards`() throws {
    var lifetime = SessionLifetime()
    lifetime.age = .seconds(100)
    let pair = try Pair.open(lifetime)
    var late: [UInt8] = []
    pair.onTheWay = { _, _, payload in
      late = payload
      return nil
    }
    pair.say([7], from: pair.server)
    pair.onTheWay = { _, _, payload in payload }
    pair.pass(.seconds(101))
    #expect(pair.client.events.count == 2)
    pair.onTheWay = { _, _, _ in late }
    pair.say([8], from: pair.server)
    #expect(pair.client.received == [[7]])
  }

  @Test func `a failed renewal leaves the old keys in use`() throws {
    var lifetime = SessionLifetime()
    lifetime.age = .seconds(100)
    let pair = try Pair.open(lifetime)
    pair.onTheWay = { _, type, payload in type == 36 ? nil : payload }
    pair.pass(.seconds(200))
    pair.say([1], from: pair.client)
    pair.say([2], from: pair.server)
    #expect(pair.server.received == [[1]] && pair.client.received == [[2]])
  }

  @Test func `a session that the other end has lost is established again`() throws {
    for clientForgets in [false, true] {
      let pair = try Pair.open()
      pair.pass(.seconds(10))
      // The new end has the same boot epoch as the end that was replaced.
      let fresh = clientForgets ? Pair().client : Pair().server
      // Draws one random number, so that the new session's number differs from that of the forgotten session.
      _ = fresh.cryptography.beginSession(fresh.seal.sessionName, now: pair.now)
      if clientForgets { pair.client = fresh } else { pair.server = fresh }
      let (speaker, listener) = clientForgets ? (pair.server, pair.client) : (pair.client, pair.server)
      pair.say([1], from: speaker)
      pair.pass(.seconds(1))
      pair.say([2], from: speaker)
      #expect(listener.received == [[2]])
    }
  }

  @Test func `a request for a session does not disturb a working one`() throws {
    let pair = try Pair.open()
    pair.say([1], from: pair.server)
    for _ in 0..<100 {
      pair.client.seal.noteUndecryptable(now: pair.now)
      pair.settle()
    }
    #expect(pair.client.cryptography.sessionCount == 1)
  }

  @Test func `a session is requested once, and not while it works`() throws {
    let pair = try Pair.open()
    pair.say([1], from: pair.server)
    #expect(!pair.client.seal.mayBeAsked(now: pair.now))
    pair.pass(SealLimits.undecryptableTime)
    #expect(pair.client.seal.mayBeAsked(now: pair.now))
    pair.client.seal.noteUndecryptable(now: pair.now)
    #expect(!pair.client.seal.mayBeAsked(now: pair.now))
  }

  @Test func `a handshake is overdue when it makes no progress, or takes too long in total`() {
    let pair = Pair()
    let seal = pair.server.seal
    let start = pair.now
    seal.accept(EndlessHandshake(), now: start)
    #expect(!seal.isHandshakeOverdue(now: start + .milliseconds(999)))
    #expect(seal.isHandshakeOverdue(now: start + SealLimits.claimTime))
    let datagram: [UInt8] = [1]
    for step in 1...9 as ClosedRange<UInt64> {
      _ = seal.receiveHandshake(datagram.span.bytes, now: start + .milliseconds(500 * step))
      #expect(!seal.isHandshakeOverdue(now: start + .milliseconds(500 * step + 499)))
    }
    #expect(seal.isHandshakeOverdue(now: start + SealLimits.wholeTime))
  }

  @Test func `no message is exchanged before the application has decided`() {
    let pair = Pair(asks: true)
    pair.client.seal.isWanted = true
    pair.pass(.seconds(20))
    #expect(
      pair.server.events == [
        .decisionWanted(chain: [Identity(1), Identity(2)].min { $0.id < $1.id }.map { [$0.point] }!)
      ])
    #expect(!pair.areOpen && !pair.client.seal.isOpen)
    pair.server.seal.decide(isAccepted: true, now: pair.now)
    pair.pass(.seconds(20))
    #expect(pair.areOpen)
  }

  @Test func `a peer that the application rejects is notified`() {
    let pair = Pair(asks: true)
    pair.client.seal.isWanted = true
    pair.settle()
    pair.server.seal.decide(isAccepted: false, now: pair.now)
    pair.settle()
    #expect(pair.client.events.last == .refused(.rejected, byPeer: true) && pair.client.seal.refusal == .rejected)
    #expect(pair.server.seal.refusal == .rejected && !pair.areOpen)
  }

  @Test func `a peer that is refused after a change of trust is notified, and may retry after a minute`() throws {
    let pair = try Pair.open()
    var asked = 0
    pair.server.seal.reconsider(now: pair.now) { _ in
      asked += 1
      return false
    }
    #expect(asked == 1 && pair.areOpen)
    pair.server.seal.reconsider(now: pair.now) { chain in chain == pair.server.seal.peerChain }
    pair.settle()
    #expect(!pair.server.seal.isOpen && !pair.client.seal.isOpen)
    #expect(pair.client.events.last == .refused(.rejected, byPeer: true) && pair.server.seal.refusal == .rejected)
    pair.pass(SealLimits.refusedTime)
    pair.say([1], from: pair.client)
    #expect(pair.areOpen && pair.server.received == [[1]])
  }

  @Test func `an accepted but unconfirmed chain is refused after a change of trust`() throws {
    let pair = Pair(asks: true)
    pair.client.seal.isWanted = true
    // The client's hello, which confirms the session, does not arrive.
    pair.onTheWay = { fromClient, type, payload in fromClient && type == 37 ? nil : payload }
    pair.settle()
    pair.server.seal.decide(isAccepted: true, now: pair.now)
    #expect(!pair.server.seal.isOpen)
    pair.server.seal.reconsider(now: pair.now) { _ in true }
    pair.onTheWay = { _, _, payload in payload }
    pair.settle()
    #expect(!pair.areOpen && pair.server.seal.refusal == .rejected && pair.client.seal.refusal == .rejected)
  }

  @Test func `an application that does not decide in time rejects the peer`() {
    let pair = Pair(asks: true)
    pair.client.seal.isWanted = true
    pair.pass(SealLimits.decisionTime * 2)
    #expect(pair.server.events.contains(.refused(.undecided, byPeer: false)))
    #expect(pair.client.events.contains(.refused(.undecided, byPeer: true)))
  }

  @Test func `a renewal with the same certificate chain requires no new decision`() throws {
    var lifetime = SessionLifetime()
    lifetime.age = .seconds(100)
    let pair = Pair(lifetime: lifetime, asks: true)
    pair.client.seal.isWanted = true
    pair.settle()
    pair.server.seal.decide(isAccepted: true, now: pair.now)
    pair.pass(.seconds(150))
    #expect(pair.server.events.count { if case .opened = $0 { true } else { false } } == 2)
    #expect(pair.server.events.count { if case .decisionWanted = $0 { true } else { false } } == 1)
  }
}

/// A handshake that progresses with each received datagram and never ends.
private final class EndlessHandshake: PeerSession {
  let state = SessionState.handshaking
  let peerChain: [[UInt8]] = []
  private(set) var progress: UInt32 = 0
  let nextDeadline = Instant.never

  func began(with hello: RawSpan) -> Bool { false }
  func abandon() {}
  func receiveHandshake(_ datagram: RawSpan, now: Instant) { progress += 1 }
  func nextHandshake(into buffer: UnsafeMutableRawBufferPointer) -> Int { 0 }
  func handleTimeout(now: Instant) {}
  func seal(_ plaintext: UnsafeRawBufferPointer, into record: UnsafeMutableRawBufferPointer) -> Int { 0 }
  func open(_ record: RawSpan, into plaintext: UnsafeMutableRawBufferPointer) -> Int? { nil }
}
