import Primitives
import Seal
import SealSupport
import Testing

/// A client whose first message is lost, a second later.
private func begun() -> Pair {
  let pair = Pair()
  pair.onTheWay = { _, _, _ in nil }
  pair.client.seal.isWanted = true
  pair.pass(.seconds(1))
  return pair
}

@Suite struct ParkedTests {
  @Test func `the time in which a link is parked does not count against a handshake`() {
    let pair = begun()
    pair.client.seal.setParked(true, now: pair.now)
    pair.pass(.seconds(50))
    pair.client.seal.setParked(true, now: pair.now)
    pair.pass(.seconds(50))
    pair.client.seal.setParked(false, now: pair.now)
    pair.pass(.milliseconds(10_900))
    #expect(pair.client.events == [])
    pair.pass(.milliseconds(200))
    #expect(pair.client.events.first == .failed(.timedOut))
  }

  @Test func `retransmissions pause while the link is parked and continue with their remaining time`() {
    let pair = begun()
    var sent: [Instant] = []
    pair.onTheWay = { [unowned pair] isFromClient, _, _ in
      if isFromClient { sent.append(pair.now) }
      return nil
    }
    pair.client.seal.setParked(true, now: pair.now)
    pair.pass(.seconds(100))
    #expect(sent == [])
    pair.client.seal.setParked(false, now: pair.now)
    let resumed = pair.now
    pair.pass(.seconds(1))
    // Retransmissions are due 0.5 s, 1.5 s and 3.5 s after the first message. The link was parked after 1 s.
    #expect(sent == [resumed + .milliseconds(500)])
  }

  @Test func `a handshake whose link was parked continues`() {
    let pair = begun()
    pair.client.seal.setParked(true, now: pair.now)
    pair.pass(.seconds(100))
    pair.onTheWay = { _, _, payload in payload }
    pair.client.seal.setParked(false, now: pair.now)
    pair.pass(.seconds(1))
    #expect(pair.areOpen && pair.client.events == [.opened(milliseconds: 101_500)])
  }

  @Test func `a handshake whose link stays parked fails after two minutes without progress`() {
    let pair = begun()
    pair.client.seal.setParked(true, now: pair.now)
    pair.pass(.milliseconds(118_900))
    #expect(pair.client.events == [])
    pair.pass(.milliseconds(200))
    #expect(pair.client.events.first == .failed(.timedOut))
  }

  @Test func `a handshake whose link is parked is evicted for a handshake that needs its slot`() {
    let pair = begun()
    pair.client.seal.setParked(true, now: pair.now)
    #expect(pair.client.seal.isHandshakeOverdue(now: pair.now + SealLimits.claimTime))
  }
}
