import LocalAPI
import DaemonClient
import Primitives
import Session
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private let bob = MemberAddress(node: NodeID(high: 1, low: 1), endpoint: 1)
private let carol = MemberAddress(node: NodeID(high: 2, low: 2), endpoint: 1)

@Suite struct OutboxTests {
  @Test func `a line is sent to all connected members and is complete when all have received it`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.connected(carol)
    outbox.add(bytes("hello"))
    let send = outbox.nextSend(as: 7)
    #expect(send?.line == bytes("hello"))
    #expect(send?.to == [bob, carol])
    #expect(outbox.sent(7, to: bob, .delivered) == 0)
    #expect(outbox.doneCount == 0)
    #expect(outbox.sent(7, to: carol, .delivered) == 0)
    #expect(outbox.doneCount == 1 && outbox.isEmpty)
  }

  @Test func `a member receives its lines one at a time, in order`() {
    var outbox = Outbox()
    outbox.connected(bob)
    for line in ["one", "two"] { outbox.add(bytes(line)) }
    #expect(outbox.nextSend(as: 1)?.line == bytes("one"))
    #expect(outbox.nextSend(as: 2) == nil)
    _ = outbox.sent(1, to: bob, .delivered)
    #expect(outbox.nextSend(as: 2)?.line == bytes("two"))
  }

  @Test func `a member without room keeps its position and delays no other member`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.connected(carol)
    for line in ["one", "two"] { outbox.add(bytes(line)) }
    _ = outbox.nextSend(as: 1)
    _ = outbox.sent(1, to: bob, .noRoom)
    _ = outbox.sent(1, to: carol, .delivered)
    let second = outbox.nextSend(as: 2)
    #expect(second?.line == bytes("two") && second?.to == [carol])
    #expect(outbox.nextSend(as: 3) == nil && outbox.hasStalled)
    outbox.room(bob)
    let again = outbox.nextSend(as: 3)
    #expect(again?.line == bytes("one") && again?.to == [bob])
  }

  @Test func `lines wait while a member is away and are sent when it returns`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.add(bytes("one"))
    _ = outbox.nextSend(as: 1)
    outbox.away(bob)
    _ = outbox.sent(1, to: bob, .failed)
    outbox.add(bytes("two"))
    #expect(outbox.nextSend(as: 2) == nil)
    #expect(outbox.lacking(bob) == 2)
    outbox.connected(bob)
    #expect(outbox.nextSend(as: 2)?.line == bytes("one"))
  }

  @Test func `lines wait for the first member that connects, and only that member receives them`() {
    var outbox = Outbox()
    outbox.add(bytes("early"))
    #expect(outbox.hasNobody && outbox.nextSend(as: 1) == nil)
    outbox.connected(bob)
    outbox.connected(carol)
    let send = outbox.nextSend(as: 1)
    #expect(send?.line == bytes("early") && send?.to == [bob])
  }

  @Test func `a member that connects later receives only later lines`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.add(bytes("old"))
    outbox.connected(carol)
    outbox.add(bytes("new"))
    #expect(outbox.nextSend(as: 1)?.to == [bob])
    let send = outbox.nextSend(as: 2)
    #expect(send?.line == bytes("new") && send?.to == [carol])
  }

  @Test func `lines that a departed member lacks are lost, unless no other member is connected`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.connected(carol)
    outbox.add(bytes("one"))
    #expect(outbox.gone(bob) == 1)
    _ = outbox.nextSend(as: 1)
    // The line is being sent to carol when she leaves. So the line is kept until the result is known.
    #expect(outbox.gone(carol) == 0)
    #expect(outbox.sent(1, to: carol, .failed) == 0)
    #expect(outbox.hasNobody && outbox.waitingCount == 1)
    outbox.connected(bob)
    #expect(outbox.nextSend(as: 2)?.line == bytes("one"))
  }

  @Test func `a line delivered to a member that has just left is not lost`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.connected(carol)
    outbox.add(bytes("one"))
    _ = outbox.nextSend(as: 1)
    #expect(outbox.gone(bob) == 0)
    #expect(outbox.sent(1, to: bob, .delivered) == 0)
    _ = outbox.sent(1, to: carol, .delivered)
    #expect(outbox.isEmpty)
  }

  @Test func `a refused request is tried again`() {
    var outbox = Outbox()
    outbox.connected(bob)
    outbox.add(bytes("one"))
    _ = outbox.nextSend(as: 1)
    outbox.refused(1)
    #expect(outbox.nextSend(as: 2) == nil)
    outbox.retry()
    #expect(outbox.nextSend(as: 2)?.line == bytes("one"))
  }

  @Test func `the number and the bytes of pending lines are limited`() {
    var outbox = Outbox()
    var count = 0
    while outbox.hasRoom(for: 1) {
      outbox.add([1])
      count += 1
    }
    #expect(count == Outbox.linesMax)
    var long = Outbox()
    while long.hasRoom(for: 65_000) { long.add([UInt8](repeating: 1, count: 65_000)) }
    #expect(long.waitingCount == 4)
  }
}
