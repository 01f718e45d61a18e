import Primitives
import Testing

@testable import Channel
@testable import Relay

/// Messages that wait for a listener for their kind.
struct MailboxTests {
  var mailbox = Mailbox()
  let start = Instant.zero + .seconds(100)
  let peer = NodeID(high: 1, low: 1)

  private mutating func add(_ kind: UInt8, _ lane: Lane = .interactive, after span: TimeSpan = .seconds(0)) {
    mailbox.add(PendingMessage(kind: kind, lane: lane, byteCount: 1), from: peer, now: start + span)
  }

  /// The kinds that are read by a listener for `wanted`, in order.
  private mutating func taken(_ wanted: [UInt8], after span: TimeSpan) -> [UInt8] {
    var kinds: [UInt8] = []
    while let next = mailbox.next(now: start + span, { kind, hasWaited in hasWaited || wanted.contains(kind) }) {
      kinds.append(next.message.kind)
    }
    return kinds
  }

  @Test mutating func `what somebody wants is taken at once, and once`() {
    add(3)
    #expect(taken([3], after: .seconds(0)) == [3])
    #expect(taken([3], after: .seconds(9)) == [] && mailbox.deadline(after: start) == .never)
  }

  @Test mutating func `an unwanted message waits five seconds and no longer`() {
    add(3)
    #expect(mailbox.deadline(after: start) == start + .seconds(5))
    #expect(taken([], after: .milliseconds(4999)) == [])
    #expect(taken([], after: .seconds(5)) == [3])
  }

  @Test mutating func `asking again does not make it wait anew`() {
    add(3)
    for second in 0..<5 as Range<UInt64> { #expect(taken([], after: .seconds(second)) == []) }
    #expect(taken([], after: .seconds(5)) == [3])
  }

  @Test mutating func `an unwanted message holds up no other lane`() {
    add(3)
    add(4, .bulk, after: .seconds(1))
    #expect(taken([4], after: .seconds(2)) == [4])
    #expect(taken([4], after: .seconds(5)) == [3])
  }

  @Test mutating func `messages are taken in the order in which they came`() {
    for kind in [7, 3, 5] as [UInt8] { add(kind) }
    #expect(taken([3, 5, 7], after: .seconds(1)) == [7, 3, 5])
  }

  @Test mutating func `who has waited long enough and finds no room sets no deadline of the past`() {
    add(3)
    add(4, .bulk, after: .seconds(1))
    let next = mailbox.next(now: start + .seconds(5)) { _, _ in false }
    #expect(next == nil && mailbox.deadline(after: start + .seconds(5)) == start + .seconds(6))
    #expect(mailbox.deadline(after: start + .seconds(6)) == .never)
    #expect(taken([], after: .seconds(6)) == [3, 4])
  }
}
