import Channel
import Primitives
import Testing

@testable import Relay

/// Messages that wait for somebody who wants their kind.
struct MailboxTests {
  var mailbox = Mailbox()
  let start = Instant.zero + .seconds(100)
  let peer = NodeID(high: 1, low: 1)

  @Test mutating func `an unwanted message waits five seconds and no longer`() {
    #expect(mailbox.hasWaited(peer, .interactive, now: start) == false)
    #expect(mailbox.deadline == start + .seconds(5))
    #expect(mailbox.hasWaited(peer, .interactive, now: start + .milliseconds(4999)) == false)
    #expect(mailbox.hasWaited(peer, .interactive, now: start + .seconds(5)) == true)
  }

  @Test mutating func `asking again does not make it wait anew`() {
    for second in 0..<5 as Range<UInt64> {
      #expect(mailbox.hasWaited(peer, .interactive, now: start + .seconds(second)) == false)
    }
    #expect(mailbox.hasWaited(peer, .interactive, now: start + .seconds(5)) == true)
  }

  @Test mutating func `lanes and peers wait each for itself`() {
    _ = mailbox.hasWaited(peer, .interactive, now: start)
    _ = mailbox.hasWaited(peer, .bulk, now: start + .seconds(1))
    _ = mailbox.hasWaited(NodeID(high: 2, low: 2), .interactive, now: start + .seconds(2))
    let end = start + .seconds(5)
    #expect(mailbox.hasWaited(peer, .interactive, now: end) == true)
    #expect(mailbox.hasWaited(peer, .bulk, now: end) == false)
    #expect(mailbox.hasWaited(NodeID(high: 2, low: 2), .interactive, now: end) == false)
  }

  @Test mutating func `the next message of a lane waits anew`() {
    _ = mailbox.hasWaited(peer, .interactive, now: start)
    mailbox.taken(peer, .interactive)
    #expect(mailbox.deadline == .never)
    #expect(mailbox.hasWaited(peer, .interactive, now: start + .seconds(5)) == false)
  }

  @Test mutating func `who has waited long enough is forgotten, and no deadline of the past stays`() {
    _ = mailbox.hasWaited(peer, .interactive, now: start)
    _ = mailbox.hasWaited(peer, .bulk, now: start + .seconds(1))
    mailbox.forgetExpired(now: start + .seconds(5))
    #expect(mailbox.deadline == start + .seconds(6))
    mailbox.forgetExpired(now: start + .seconds(6))
    #expect(mailbox.deadline == .never)
  }
}
